"""The choice of the best extensions."""

import math

import pytest
import torch

from espnet_lenbias import beam
from espnet_lenbias.beam import Grid, make_spans


@pytest.mark.parametrize("k", [1, 7, 12, 40])
@pytest.mark.parametrize("seed", range(10))
def test_best_of_many_are_the_best_of_all(seed, k, monkeypatch):
    """Small numbers take the way of large ones; sorting says what is right."""
    monkeypatch.setattr(beam, "_MANY", 0)
    rng = torch.Generator().manual_seed(seed)
    values = torch.randint(30, (6, 11), generator=rng).float()  # with ties
    values[torch.rand(6, 11, generator=rng) < 0.3] = -math.inf
    found = Grid(make_spans([0], [6]), values.device).top(values, k)
    expected = sorted(values.flatten().tolist(), reverse=True)[:k]
    assert found.values[0].tolist() == expected
    assert values[found.parents[0], found.labels[0]].tolist() == expected
    chosen = list(zip(found.parents[0].tolist(), found.labels[0].tolist()))
    assert len(set(chosen)) == k


def test_nan_is_not_lost_among_many(monkeypatch):
    monkeypatch.setattr(beam, "_MANY", 0)
    values = torch.arange(20.0).view(4, 5)
    values[1, 1] = math.nan
    found = Grid(make_spans([0], [4]), values.device).top(values, 3)
    assert math.isnan(found.values[0, 0])
    assert found.values[0, 1:].tolist() == [19.0, 18.0]
