"""What the tests of scorers share."""

import pytest

from espnet_lenbias.scorers import products


@pytest.fixture(autouse=True)
def small_matrices_too(monkeypatch):
    """Lay out the matrices of the tests' models, which are smaller than others."""
    monkeypatch.setattr(products, "_LARGE", 0)
    monkeypatch.setattr(products, "is_intel", lambda: False)  # whatever this one is
