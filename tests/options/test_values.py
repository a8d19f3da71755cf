"""Whole numbers of command lines."""

import argparse

import pytest

from espnet_lenbias.options.values import from_one, from_zero


@pytest.mark.parametrize(
    "read, right, wrong",
    [(from_one, ["1", "20"], ["0", "-4", "x", "1.5"]), (from_zero, ["0"], ["-1", ""])],
)
def test_what_is_below_is_refused(read, right, wrong):
    assert [read(text) for text in right] == list(map(int, right))
    for text in wrong:
        with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number"):
            read(text)
