"""The length limits: what they count, and what happens there.

The heading of each part says what has gone wrong in decoders, and what must hold.

Labels of the tables: a, b and the end label $.
"""

import logging
import math

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.espnet_compat import BeamSearch
from espnet_lenbias.search.log_best import LIMIT
from tests.search.kinds import both, every, searching
from tests.tables import END, A, B, near
from tests.toys import (
    OneLabelScorer,
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
    padded,
)

# The length limit. What ends there has one end label, scored once. Where nothing has
# ended there is a result all the same, with a scored end label, marked as forced.
# Output as long as the limit is no error; a warning comes only if the limit has cut it.


@every
@pytest.mark.parametrize("frames", [3, 4])
def test_one_end_label_scored_once_at_the_limit(kind, options, frames):
    scorer = TableScorer(
        [logs(0.9, 0.1, 0.0), logs(0.1, 0.9, 0.0), logs(0.04, 0.01, 0.95)]
    )
    search = searching(kind, scorer, 1, **options)
    best = search(encoder_output(0, frames))[0]
    assert best.yseq.tolist() == [END, A, B, END]
    assert best.original_score == near(math.log(0.9 * 0.9 * 0.95))
    assert float(best.scores["decoder"]) == near(math.log(0.9 * 0.9 * 0.95))
    assert not best.forced


@every
@pytest.mark.parametrize("frames", [1, 2, 5])
def test_what_is_cut_ends_with_a_scored_end_label(kind, options, frames):
    scorer = TableScorer([logs(0.9, 0.06, 0.04)])
    hyps = searching(kind, scorer, 1, **options)(encoder_output(0, frames))
    if options.get("keep_ended") == "separate":  # it has a place for the empty output
        assert hyps[0].original_score == near(math.log(0.04))
    else:
        assert [labels(h) for h in hyps] == [(A,) * frames + (END,)]
        assert hyps[0].original_score == near(math.log(0.9) * frames + math.log(0.04))
        assert hyps[0].forced


@every
@pytest.mark.parametrize("frames", [1, 3])
def test_what_is_cut_where_no_end_is_possible(kind, options, frames, caplog):
    """As within a segment of OWSM's: the end is not scored, as in ESPnet."""
    scorer = TableScorer([logs(0.6, 0.4, 0.0)])
    search = searching(kind, scorer, 2, **options)
    best, second = search(encoder_output(0, frames))[:2]
    assert labels(best) == (A,) * frames + (END,)
    expected = frames * math.log(0.6)
    assert best.original_score == best.scores["decoder"] == near(expected)
    assert second.original_score == near(expected + math.log(0.4 / 0.6))
    assert best.forced and second.forced
    if kind is ExplicitLengthBeamSearch:  # one of the two ends so, for sure
        probabilities = [math.exp(hyp.score) for hyp in (best, second)]
        assert probabilities == near([0.6, 0.4])
    cut = f"no hypothesis had ended within {frames} positions, so the output was cut"
    assert cut in caplog.text
    theirs = build(BeamSearch, {"decoder": scorer}, {"decoder": 1.0}, 2, 3)
    assert theirs(encoder_output(0, frames))[0].score == near(expected)


@every
def test_what_is_cut_in_a_batch(kind, options):
    # One utterance ends by itself, one is cut, in either order.
    class OneThatNeverEnds(TableScorer):
        def log_probs(self, utterance, prefix):
            if utterance == 1:
                return logs(0.9, 0.1, 0.0)
            return super().log_probs(utterance, prefix)

    scorer = OneThatNeverEnds([logs(0.9, 0.1, 0.0), logs(0.04, 0.01, 0.95)])
    search = searching(kind, scorer, 2, **options)
    for ids in [(0, 1), (1, 0)]:
        x, lengths = padded([encoder_output(i, 3) for i in ids])
        found = dict(zip(ids, search(x, x_lengths=lengths)))
        assert labels(found[0][0]) == (A, END)
        assert not found[0][0].forced
        assert len(labels(found[1][0])) == 4
        assert found[1][0].forced
        # no end label is possible there
        assert found[1][0].original_score == near(3 * math.log(0.9))


@both
@pytest.mark.parametrize("frames", [1, 2, 3, 4])
@pytest.mark.parametrize("beam", [1, 2, 9])
def test_output_as_long_as_the_limit(kind, frames, beam):
    scorer = RandomScorer(4, 4, end_bias=-3.0)
    hyps = searching(kind, scorer, beam)(encoder_output(0, frames))
    assert hyps
    assert max(len(labels(h)) for h in hyps) <= frames + 1


@both
def test_a_warning_only_when_the_limit_cut_the_output(kind, caplog):
    search = searching(kind, TableScorer([logs(0.9, 0.1, 0.0), logs(0.0, 0.0, 1.0)]), 1)
    with caplog.at_level(logging.INFO):
        search(encoder_output(0, 2))
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    with caplog.at_level(logging.INFO):
        search(encoder_output(0, 1))
    assert [r for r in caplog.records if r.levelno == logging.WARNING]


# aaa... runs on; $ ends at N=1. At the limit 2 the product .9 * .9 is above .1 of $, at
# the limit 9 (.9 ** 9 = .39) too, at the limit 30 (.042) it is not.
@pytest.mark.parametrize(
    "options", [{}, {"keep_ended": "separate"}, {"length_reward": 0.0}]
)
@pytest.mark.parametrize("frames, cut", [(2, True), (9, True), (30, False)])
def test_simple_warns_where_what_runs_on_ranks_higher(options, frames, cut, caplog):
    scorer = TableScorer([logs(0.9, 0.0, 0.1)])
    search = searching(SimpleBeamSearch, scorer, 3, **options)
    best = search(encoder_output(0, frames))[0]
    assert labels(best) == (END,)
    trace = search.trace[0]
    assert trace.stopped == "limit" or not trace.running[-1]
    found = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert bool(found) == cut
    if cut:
        assert trace.best_running == near(
            [math.log(0.9) * n for n in range(1, frames + 1)]
        )
        ended, running = math.log(0.1), math.log(0.9) * frames
        assert f"score {ended:.2f}, less than the {running:.2f} of" in caplog.text
        assert all(getattr(record, LIMIT) for record in found)


def test_simple_warns_by_the_score_that_it_ranks_by(caplog):
    """Divided by the length, aaa has log .9, and $ log .1, whatever the limit."""
    scorer = TableScorer([logs(0.9, 0.0, 0.1)])
    search = searching(SimpleBeamSearch, scorer, 99, length_norm=True)
    search(encoder_output(0, 40))
    best = math.log(0.9**39 * 0.1) / 40  # what has ended last
    running = math.log(0.9)
    assert f"score {best:.2f}, less than the {running:.2f} of" in caplog.text


@both
@pytest.mark.parametrize(
    "path, loops", [([0] * 9, True), ([0, 1, 1, 0, 0, 0, 1, 0, 1], False)]
)
def test_what_to_try_where_the_output_was_cut(kind, path, loops, caplog):
    table = {
        tuple(path[:n]): logs(*(0.9 if v == path[n] else 0.1 for v in (0, 1)), 0.0)
        for n in range(9)
    }
    search = searching(kind, TableScorer(table, otherwise=logs(0.4, 0.4, 0.2)), 1)
    search(encoder_output(0, 9))
    (record,) = (r for r in caplog.records if r.levelno == logging.WARNING)
    said = record.getMessage()
    assert ("search_conf: {repeat_limit: 3} breaks such loops" in said) == loops
    assert ("a larger maxlenratio leaves it more room" in said) != loops


@both
def test_no_such_warning_where_no_label_was_possible(kind, caplog):
    searching(kind, OneLabelScorer(5, [3, 0, None]), 2)(encoder_output(0, 9))
    assert not [r for r in caplog.records if "maxlenratio" in r.getMessage()]


# Some decoders count the end label, some do not. The position N counts it, as in the
# paper; the minimum length counts the labels of the text alone, as in ESPnet.


@every
def test_the_minimum_counts_the_labels_of_the_text_as_in_espnet(kind, options):
    scorer = TableScorer([logs(0.06, 0.04, 0.9)])
    shortest = []
    for search in (
        searching(kind, scorer, 2, **options),
        searching(BeamSearch, scorer, 2),
    ):
        hyps = search(encoder_output(0, 9), minlenratio=-3)
        shortest.append(min(len(labels(h)[:-1]) for h in hyps))
    assert shortest == [3, 3]


@every
def test_the_maximum_counts_the_end_label(kind, options):
    # aa$ ends at N=3. A limit of 3 lets it; a limit of 2 forces it, one position behind.
    scorer = TableScorer(
        [logs(0.9, 0.1, 0.0), logs(0.8, 0.2, 0.0), logs(0.04, 0.01, 0.95)]
    )
    search = searching(kind, scorer, 1, **options)
    (within,) = search(encoder_output(0, 9), maxlenratio=-3)
    (behind,) = search(encoder_output(0, 9), maxlenratio=-2)
    assert labels(within) == labels(behind) == (A, A, END)
    assert (within.forced, behind.forced) == (False, True)


def test_length_normalisation_counts_the_end_label():
    scorer = TableScorer([logs(0.9, 0.1, 0.0), logs(0.04, 0.01, 0.95)])
    best = searching(SimpleBeamSearch, scorer, 1, length_norm=True)(
        encoder_output(0, 9)
    )[0]
    assert best.score == near(math.log(0.9 * 0.95) / 2)


def test_the_primer_is_not_counted():
    scorer = TableScorer([logs(0.9, 0.1, 0.0), logs(0.04, 0.01, 0.95)], start=4)
    primer = [END, B, B, B]
    search = searching(SimpleBeamSearch, scorer, 1, primer=primer, length_norm=True)
    (best,) = search(encoder_output(0, 9), maxlenratio=-2, minlenratio=-1)
    assert labels(best, start=4) == (A, END)
    assert best.score == near(math.log(0.9 * 0.95) / 2)
    assert not best.forced


@pytest.mark.parametrize("ratio", ["maxlenratio", "minlenratio"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_length_ratios_are_finite(ratio, value):
    search = searching(ExplicitLengthBeamSearch, RandomScorer(0, 4), 2)
    with pytest.raises(ValueError, match=f"{ratio} must be a finite number"):
        search(encoder_output(0, 4), **{ratio: value})


# Sequential attention has a first source of its own, in whose frames lengths count.


@both
@pytest.mark.parametrize("frames, pre_frames", [(9, 3), (3, 9)])
def test_the_limit_counts_the_frames_of_the_first_source(kind, frames, pre_frames):
    never_ends = TableScorer([logs(0.6, 0.4, 0.0)])
    search = build(kind, {"lm": never_ends}, {"lm": 1.0}, 1, 3)
    search(encoder_output(0, frames), pre_x=encoder_output(0, pre_frames))
    assert search.trace[0].steps == pre_frames + 1  # where it is forced to end
