import numpy as np
import pytest

from espnet_lenbias.report import bootstrap
from espnet_lenbias.report.bootstrap import difference, interval, resampled_totals
from espnet_lenbias.report.scoring import ResampledErrors

R = bootstrap.RESAMPLES


def wer(counts):
    """Word error rates of n utterances, (n, 4) counts, in each resample."""
    return ResampledErrors(len(counts), *resampled_totals(np.array(counts)).T).wer


def test_a_resample_draws_as_many_utterances_as_there_are():
    totals = resampled_totals(np.ones((7, 1)))
    assert totals.shape == (R, 1)
    assert (totals == 7).all()


def test_an_utterance_is_drawn_as_often_as_chance_has_it():
    # of 2 utterances, the first is drawn 0, 1 or 2 times with 1/4, 1/2, 1/4
    times = resampled_totals(np.array([1, 0]))
    share = [(times == n).mean() for n in (0, 1, 2)]
    assert share == pytest.approx([0.25, 0.5, 0.25], abs=0.02)


def test_systems_scored_together_or_apart_have_the_same_draws():
    values = np.arange(12.0).reshape(6, 2)
    together = resampled_totals(values)
    assert (together[:, 0] == resampled_totals(values[:, 0])).all()
    assert (together[:, 1] == resampled_totals(values[:, 1])).all()


def test_resamples_are_cut_into_pieces_of_any_size(monkeypatch):
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 3)
    assert (resampled_totals(np.ones(4), resamples=10) == np.full(10, 4)).all()


def test_each_piece_has_draws_of_its_own(monkeypatch):
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 3)
    totals = resampled_totals(np.arange(50.0), resamples=12)
    assert len({tuple(piece) for piece in totals.reshape(4, 3)}) == 4


def test_no_utterances():
    assert (resampled_totals(np.zeros((0, 2, 4)), 5) == np.zeros((5, 2, 4))).all()


def test_interval_of_a_known_distribution():
    # 0, 1, ..., 1000: 2.5 % of it are below 25 and 2.5 % above 975
    assert interval(np.arange(1001.0)) == pytest.approx((25.0, 975.0))


def test_interval_leaves_out_what_is_not_a_number():
    assert interval(np.array([3.0, np.nan, 3.0])) == (3.0, 3.0)
    assert np.isnan(interval(np.full(3, np.nan))).all()


def test_all_wrong_is_certain():
    # hits, substitutions, deletions, insertions
    assert interval(wer([[0, 3, 0, 0], [0, 0, 2, 0], [0, 4, 0, 0]])) == (100.0, 100.0)


def test_identical_systems_do_not_differ():
    samples = wer([[5, 1, 0, 0], [2, 0, 1, 1], [4, 0, 0, 0]])
    result = difference(30.0, 30.0, samples, samples)
    assert (result.value, result.low, result.high, result.p) == (0.0, 0.0, 0.0, 1.0)


def test_all_right_against_all_wrong():
    right, wrong = wer([[3, 0, 0, 0]] * 4), wer([[0, 3, 0, 0]] * 4)
    result = difference(0.0, 100.0, right, wrong)
    assert (result.value, result.low, result.high) == (-100.0, -100.0, -100.0)
    assert result.p == pytest.approx(2 / (R + 1))


def test_p_is_the_chance_of_drawing_the_deciding_utterance():
    # the two differ in one of 4 utterances; without it, in (3/4)^4 of the resamples,
    # they are level: p = 2 * 0.3164
    better, worse = [[3, 0, 0, 0]] * 4, [[2, 1, 0, 0]] + [[3, 0, 0, 0]] * 3
    result = difference(0.0, 100 / 12, wer(better), wer(worse))
    assert result.p == pytest.approx(2 * 0.75**4, abs=0.03)
    assert result.value == pytest.approx(-100 / 12)
    assert result.high == 0.0


def test_the_test_is_a_paired_one():
    # on each utterance one word more is wrong, whichever utterances are drawn, although
    # each system's own error rate varies from 0 to 90 %
    first = wer([[1, 9, 0, 0], [9, 1, 0, 0]] * 5)
    second = wer([[2, 8, 0, 0], [10, 0, 0, 0]] * 5)
    result = difference(50.0, 40.0, first, second)
    assert (result.low, result.high) == pytest.approx((10.0, 10.0))
