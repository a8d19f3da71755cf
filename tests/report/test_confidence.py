import math

import numpy as np
import pytest

from espnet_lenbias.report.confidence import (
    FINAL,
    PER_LABEL,
    confidence_line,
    confidence_of,
    rated,
    reliability_lines,
)
from espnet_lenbias.report.reliability import Bin, auc, calibration_error, reliability
from tests.report.made import REFERENCES, cells, system

# Five utterances: two of the highest bin, one of which is wrong.
CONFIDENCE = np.array([0.95, 0.91, 0.62, 0.35, 0.31])
RIGHT = np.array([True, False, True, False, True])


def test_five_points_in_three_bins():
    assert reliability(CONFIDENCE, RIGHT) == [
        Bin(0.3, 0.4, 2, pytest.approx(0.33), 0.5),
        Bin(0.6, 0.7, 1, pytest.approx(0.62), 1.0),
        Bin(0.9, 1.0, 2, pytest.approx(0.93), 0.5),
    ]


def test_calibration_error_of_five_points():
    # (2 |0.33 - 0.5| + |0.62 - 1| + 2 |0.93 - 0.5|) / 5 = (0.34 + 0.38 + 0.86) / 5
    assert calibration_error(reliability(CONFIDENCE, RIGHT)) == pytest.approx(0.316)


def test_auc_of_five_points():
    # of the 3 * 2 pairs of a right and a wrong one, the right one leads in
    # 0.95 > 0.91, 0.35; 0.62 > 0.35: 3 of 6
    assert auc(CONFIDENCE, RIGHT) == pytest.approx(3 / 6)


def test_a_tie_counts_half():
    # 0.8 beats 0.5; 0.5 ties with 0.5
    confidence = np.array([0.8, 0.5, 0.5])
    assert auc(confidence, np.array([True, True, False])) == pytest.approx(1.5 / 2)


def test_the_ends_of_the_scale():
    confidence, right = np.array([0.0, 1.0]), np.array([False, True])
    bins = reliability(confidence, right)
    assert [(b.low, b.high) for b in bins] == [(0.0, 0.1), (0.9, 1.0)]
    assert calibration_error(bins) == 0.0
    assert auc(confidence, right) == 1.0
    assert auc(1 - confidence, right) == 0.0


@pytest.mark.parametrize("right", [True, False])
def test_auc_needs_both_kinds(right):
    assert math.isnan(auc(np.array([0.5, 0.6]), np.array([right, right])))


# --- Of decodings ---------------------------------------------------------------------

ONE_WRONG = {**REFERENCES, "s1-u2": "oh no"}
LOGS = {"s1-u1": math.log(0.9), "s1-u2": math.log(0.2), "s2-u3": math.log(0.8)}
PROPOSED = (system("explicit_length"), {"texts": ONE_WRONG, "score": LOGS})
# exp(q / labels): sqrt(0.25) = 0.5, 0.5 and 0.125 ** (1/3) = 0.5
SIMPLE = (
    system("simple"),
    {
        "texts": ONE_WRONG,
        "score": dict.fromkeys(REFERENCES, -9.0),
        "original_score": {
            "s1-u1": math.log(0.25),
            "s1-u2": math.log(0.5),
            "s2-u3": math.log(0.125),
        },
        "labels": {"s1-u1": 2, "s1-u2": 1, "s2-u3": 3},
    },
)


def test_confidence_of_the_proposed_search_is_its_final_score():
    (cell,) = cells(PROPOSED)
    measure, confidence, right = confidence_of(cell)
    assert measure == FINAL
    assert confidence == pytest.approx([0.9, 0.2, 0.8])
    assert right.tolist() == [True, False, True]
    line = confidence_line(cell)
    assert (line.utterances, line.auc) == (3, 1.0)
    assert line.right == pytest.approx(2 / 3)
    assert line.mean_confidence == pytest.approx(1.9 / 3)
    assert line.calibration_error == pytest.approx((0.1 + 0.2 + 0.2) / 3)


def test_confidence_of_simple_search_is_the_score_of_a_label():
    (cell,) = cells(SIMPLE)
    measure, confidence, _ = confidence_of(cell)
    assert measure == PER_LABEL
    assert confidence == pytest.approx([0.5, 0.5, 0.5])
    (line,) = reliability_lines(cell)
    assert (line.utterances, line.mean_confidence) == (3, pytest.approx(0.5))
    assert line.right == pytest.approx(2 / 3)
    assert confidence_line(cell).auc == 0.5


def test_utterances_without_a_score_are_left_out():
    row, files = PROPOSED
    (cell,) = cells((row, {**files, "score": {**LOGS, "s1-u2": math.nan}}))
    assert confidence_of(cell)[1] == pytest.approx([0.9, 0.8])


def test_a_score_above_zero_is_certain_and_no_more():
    row, files = PROPOSED
    (cell,) = cells((row, {**files, "score": {**LOGS, "s1-u2": 0.3}}))
    assert confidence_of(cell)[1][1] == 1.0


def test_rated_are_the_proposed_search_and_the_plainest_simple_one_beside_it():
    files = SIMPLE[1]
    rows = [
        PROPOSED,
        (system("simple + x", search="simple", options=frozenset("x")), files),
        SIMPLE,
        (system("simple", 64), files),
        (system("simple", lm_weight=0.5), files),
        (system("espnet"), {"texts": ONE_WRONG, "score": LOGS}),
    ]
    chosen = [(c.system.name, c.system.beam_size) for c in rated(cells(*rows))]
    assert chosen == [("simple", 4), ("explicit_length", 4)]
    assert rated(cells(SIMPLE)) == []


def test_cells_without_scores_or_not_finished_are_not_rated():
    row, files = PROPOSED
    assert rated(cells((row, {"texts": ONE_WRONG}))) == []
    half = {"s1-u1": "the cat"}
    assert rated(cells((row, {**files, "texts": half}))) == []
