import numpy as np
import pytest

from espnet_lenbias.report.lengths import LengthLine, length_bins, length_lines
from tests.report.made import REFERENCES, cells, system


def test_ranges_hold_about_equally_many():
    words = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 30, 40])
    assert length_bins(words, 4) == [(1, 3), (4, 6), (7, 9), (20, 40)]


def test_lengths_that_are_the_same_are_one_range():
    assert length_bins(np.array([2, 2, 2, 2, 9]), 3) == [(2, 2), (9, 9)]
    assert length_bins(np.array([5, 5]), 3) == [(5, 5)]


def test_error_rate_of_each_range():
    # of 2 words one is wrong, of 4 none, of 6 the last two are lost
    texts = {"s1-u1": "the cat sat on", "s1-u2": "oh no", "s2-u3": "a b c d"}
    row = system("simple", 4, lm_weight=0.6)
    assert length_lines(cells((row, {"texts": texts}))) == [
        LengthLine("dev", "simple", 0.6, 4, 2, 2, 1, 50.0, 1.0),
        LengthLine("dev", "simple", 0.6, 4, 4, 4, 1, 0.0, 1.0),
        LengthLine(
            "dev",
            "simple",
            0.6,
            4,
            6,
            6,
            1,
            pytest.approx(100 / 3),
            pytest.approx(2 / 3),
        ),
    ]


def test_unfinished_rows_have_no_line():
    half = {"s1-u1": REFERENCES["s1-u1"]}
    assert length_lines(cells((system(), {"texts": half}))) == []
