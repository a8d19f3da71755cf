"""Inputs that users of beam search decoders have been bitten by.

The heading of each part says what has gone wrong in decoders, and what must hold.

Labels of the tables: a, b and the end label $.
"""

import logging
import math
import re
import weakref

import pytest
import torch

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.errors import ScorerError
from espnet_lenbias.espnet_compat import BeamSearch
from espnet_lenbias.search.log_best import LIMIT
from espnet_lenbias.search.loop import BatchDecoding
from tests import reference
from tests.tables import END, MOSTLY_END, A, B, near
from tests.toys import (
    AllFramesScorer,
    BatchPartialScorer,
    BufferScorer,
    FinalScorer,
    NanScorer,
    OneLabelScorer,
    PartialScorer,
    PlainAllFramesScorer,
    PlainFinalScorer,
    PlainRandomScorer,
    PlainTableScorer,
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
    padded,
)

SIMPLE = [
    {},
    {"length_norm": True},
    {"keep_ended": "separate"},
    {"eos_threshold": 1.5},
    {"length_reward": 0.5},
]
SEARCHES = [
    (ExplicitLengthBeamSearch, {}),
    *[(SimpleBeamSearch, options) for options in SIMPLE],
]
both = pytest.mark.parametrize("kind", [ExplicitLengthBeamSearch, SimpleBeamSearch])
every = pytest.mark.parametrize("kind, options", SEARCHES)


def searching(kind, scorer, beam, **options):
    return build(
        kind, {"decoder": scorer}, {"decoder": 1.0}, beam, scorer.vocab, **options
    )


def facts(hyps):
    return [
        (h.yseq.tolist(), h.score, h.original_score, h.forced, dict(h.scores))
        for h in hyps
    ]


def assert_alike(hyps, others):
    assert [h.yseq.tolist() for h in hyps] == [h.yseq.tolist() for h in others]
    assert [h.score for h in hyps] == near([h.score for h in others])
    assert [h.original_score for h in hyps] == near([h.original_score for h in others])


# The end label is among the best at the first position. The best hypothesis is not
# empty because of it, and a minimum length keeps it away.


@pytest.mark.parametrize("beam", [2, 3, 10])
def test_an_end_label_in_the_first_beam_does_not_win(beam):
    # $ has .3 at once, a$ has .6 * .7 = .42.
    table = {(): logs(0.6, 0.1, 0.3), (A,): logs(0.1, 0.2, 0.7)}
    scorer = TableScorer(table, MOSTLY_END)
    hyps = searching(ExplicitLengthBeamSearch, scorer, beam)(encoder_output(0, 9))
    assert labels(hyps[0]) == (A, END)


@every
@pytest.mark.parametrize("minimum", [1, 2])
def test_a_minimum_length_keeps_the_empty_output_away(kind, options, minimum):
    # $ would have .9 of everything.
    scorer = TableScorer({(): logs(0.07, 0.03, 0.9)}, MOSTLY_END)
    hyps = searching(kind, scorer, 3, **options)(
        encoder_output(0, 9), minlenratio=-minimum
    )
    assert hyps
    assert min(len(labels(h)[:-1]) for h in hyps) >= minimum


@every
@pytest.mark.parametrize("partial", [PartialScorer, BatchPartialScorer])
def test_a_masked_end_label_takes_no_place_in_the_pre_beam(kind, options, partial):
    # Beam 1: the pre-beam is one label, for which $ has .9 and may not have it.
    scorers = {"decoder": TableScorer([logs(0.07, 0.03, 0.9)]), "ctc": partial(0, 3)}
    weights = {"decoder": 1.0, "ctc": 0.1}
    search = build(kind, scorers, weights, 1, 3, pre_beam_score_key="full", **options)
    hyps = search(encoder_output(0, 9), minlenratio=-1)
    assert min(len(labels(h)) for h in hyps) >= 2
    assert math.isfinite(hyps[0].score)


# The first hypotheses to end are the shortest. The search does not stop with as many of
# them as the beam holds: it stops when nothing that comes later could win.


def test_the_search_goes_on_when_as_many_as_the_beam_have_ended():
    # N=1: a .6, $ .25: final($) = .294, not ended .706. N=2: ab .42, aa .12.
    # N=3: aba .294, aa$ .096: two have ended; final(aa$) = .174, not ended .532, so on.
    # N=4: aba$ .2058 of .2646: final(aba$) = .778 * .532 = .414.
    table = {
        (): logs(0.6, 0.15, 0.25),
        (A,): logs(0.2, 0.7, 0.1),
        (A, B): logs(0.7, 0.2, 0.1),
        (A, B, A): logs(0.2, 0.1, 0.7),
    }
    scorer = TableScorer(table, MOSTLY_END)
    search = searching(ExplicitLengthBeamSearch, scorer, 2, nbest=2)
    best = search(encoder_output(0, 9))[0]
    assert labels(best) == (A, B, A, END)
    assert best.score == near(math.log(0.2058 / 0.2646 * 0.6 / 0.85 * 0.294 / 0.39))


@pytest.mark.parametrize("beam", [2, 4, 8])
@pytest.mark.parametrize("seed", range(10))
def test_the_stop_changes_no_result(seed, beam):
    scorer = RandomScorer(seed, 5, end_bias=0.5)
    model = reference.Model({"decoder": scorer}, {"decoder": 1.0}, 5)
    to_the_end = reference.explicit_length(model, 12, beam, early_stop=False)
    best = searching(ExplicitLengthBeamSearch, scorer, beam)(encoder_output(0, 12))[0]
    assert tuple(best.yseq.tolist()) == to_the_end.hyps[0].prefix


# With maxlenratio 1.0 decoding took ten times as long for the same text. The search
# stops early whatever the ratio.


@pytest.mark.parametrize("maxlenratio", [0.0, 0.5, 1.0, 3.0, -40])
@both
def test_an_early_stop_whatever_the_ratio(kind, maxlenratio):
    table = {
        (): logs(0.9, 0.06, 0.04),
        (A,): logs(0.06, 0.9, 0.04),
        (A, B): logs(0.06, 0.04, 0.9),
    }
    search = searching(kind, TableScorer(table, MOSTLY_END), 2)
    hyps = search(encoder_output(0, 50), maxlenratio=maxlenratio)
    assert labels(hyps[0]) == (A, B, END)
    assert search.trace[0].steps <= 4
    assert search.trace[0].stopped in ("bound", "ended")


# Many hypotheses have ended. A step costs no more for them, and when all have ended the
# search stops at once.


@pytest.mark.parametrize(
    "kind, options",
    [
        (ExplicitLengthBeamSearch, {"nbest": 1000, "exact_nbest": True}),
        (SimpleBeamSearch, {"keep_ended": "separate"}),
        (SimpleBeamSearch, {}),
    ],
)
def test_ended_hypotheses_are_not_scored_again(kind, options):
    scorer = RandomScorer(1, 6, end_bias=1.0)
    search = searching(kind, scorer, 20, **options)
    hyps = search(encoder_output(0, 12))
    assert len(hyps) >= 20
    assert len(scorer.rows) == search.trace[0].steps
    assert max(scorer.rows) <= 20


@every
def test_the_search_stops_at_once_when_all_have_ended(kind, options):
    # N=1: a and b. N=2: the end label alone is possible.
    scorer = TableScorer(
        [logs(0.7, 0.3, 0.0), logs(0.0, 0.0, 1.0), logs(0.0, 0.0, 0.0)]
    )
    search = searching(kind, scorer, 4, **options)
    hyps = search(encoder_output(0, 30))
    assert [labels(h) for h in hyps] == [(A, END), (B, END)]
    assert len(scorer.rows) == search.trace[0].steps == 2


def test_an_utterance_that_is_through_is_not_scored_on():
    # The first has one frame (and one position more to be forced to end), the second seven.
    scorer = TableScorer([logs(0.6, 0.4, 0.0)])
    search = searching(ExplicitLengthBeamSearch, scorer, 1)
    x, lengths = padded([encoder_output(0, 1), encoder_output(0, 7)])
    search(x, x_lengths=lengths)
    assert [trace.steps for trace in search.trace] == [2, 8]
    assert sum(scorer.rows) == 2 + 8


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
        assert found[1][0].score == -math.inf  # no end label is possible there


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


# The end label has probability 1. There is no NaN and no endless search, and the
# threshold of the end label still lets it end.


@every
@pytest.mark.parametrize("frames", [2, 3, 20])
def test_an_end_of_probability_one(kind, options, frames):
    scorer = TableScorer([logs(0.75, 0.25, 0.0), logs(0.0, 0.0, 1.0)])
    search = searching(kind, scorer, 2, **options)
    hyps = search(encoder_output(0, frames))
    assert [labels(h) for h in hyps] == [(A, END), (B, END)]
    assert [h.original_score for h in hyps] == near(logs(0.75, 0.25))
    assert not any(math.isnan(h.score) for h in hyps)
    assert search.trace[0].steps == 2


def test_an_end_of_probability_one_at_the_first_position():
    search = searching(ExplicitLengthBeamSearch, TableScorer([logs(0.0, 0.0, 1.0)]), 5)
    hyps = search(encoder_output(0, 20))
    assert [labels(h) for h in hyps] == [(END,)]
    assert hyps[0].score == 0.0
    assert list(search.trace[0].p_end) == [1.0]


def test_an_almost_certain_end_keeps_the_scores_of_what_comes_later():
    # N=1: $ all but 1e-6. N=2: a$ .8e-6, aa .15e-6, ab .05e-6: final(a$) = .8 * 1e-6.
    scorer = TableScorer({(): logs(1e-6, 0.0, 1 - 1e-6)}, MOSTLY_END)
    search = searching(ExplicitLengthBeamSearch, scorer, 5, nbest=2, exact_nbest=True)
    hyps = search(encoder_output(0, 20))
    assert [labels(h) for h in hyps] == [(END,), (A, END)]
    assert hyps[1].score == pytest.approx(math.log(0.8e-6), abs=1e-3)


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


@both
def test_numbers_that_are_text(kind):
    """As in a config, which is read so everywhere else."""

    def made(beam_size, weight, eos, ratio, maxlenratio):
        search = kind(
            {"decoder": RandomScorer(0, 3)},
            {"decoder": weight},
            beam_size,
            vocab_size=3,
            sos=eos,
            eos=eos,
            pre_beam_ratio=ratio,
            normalize_length="false",
        )
        found = search(encoder_output(0, 5), maxlenratio=maxlenratio)
        return [(hyp.yseq.tolist(), float(hyp.score)) for hyp in found]

    assert made("2", "5e-1", "2", "1.5", "-4") == made(2, 0.5, 2, 1.5, -4)


@both
@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"beam_size": "0"}, "beam_size must be a whole number of 1 or more, not '0'"),
        ({"beam_size": 2.5}, "beam_size must be a whole number of 1 or more, not 2.5"),
        ({"weights": {"decoder": "x"}}, "weights: decoder must be a number, not 'x'"),
        (
            {"weights": {"decoder": -1e39}},
            r"weights: decoder has -1e\+39, which is ",
        ),
        ({"eos": "end"}, "eos must be a whole number, not 'end'"),
    ],
)
def test_numbers_that_are_none(kind, wrong, message):
    options = {"weights": {"decoder": 1.0}, "beam_size": 2, "eos": 2, **wrong}
    with pytest.raises(ValueError, match=message):
        kind({"decoder": RandomScorer(0, 3)}, vocab_size=3, sos=2, **options)


@both
@pytest.mark.parametrize("eos", [-1, 4, 70])
def test_the_end_label_is_one_of_the_labels(kind, eos):
    with pytest.raises(ValueError, match=f"eos must be .* 0 to 3, not {eos}"):
        kind({"decoder": RandomScorer(0, 4)}, {"decoder": 1.0}, 2, 4, sos=3, eos=eos)


@both
def test_scores_can_be_used_as_those_of_espnets_hypotheses(kind):
    search = searching(kind, RandomScorer(0, 4), 2)
    for frames in (0, 5):
        best = search(encoder_output(0, frames))[0]
        assert best.score.item() == float(best.score) == float(best.score.cpu())
        assert {k: float(v.cpu()) for k, v in best.scores.items()} == best.scores
        assert all(type(v.item()) is float for v in best.scores.values())


# The beam is larger than the vocabulary, or than all candidates. The search works, and
# the n-best list has no place without a hypothesis.


@every
@pytest.mark.parametrize("beam", [3, 4, 7, 1000])
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_beam_larger_than_all_candidates(kind, options, beam, frames):
    hyps = searching(kind, RandomScorer(2, 3), beam, **options)(
        encoder_output(0, frames)
    )
    assert hyps
    assert len({tuple(h.yseq.tolist()) for h in hyps}) == len(hyps)
    assert all(-100 < h.score and math.isfinite(h.original_score) for h in hyps)
    assert all(labels(h).count(END) == 1 and labels(h)[-1] == END for h in hyps)


@both
def test_impossible_candidates_take_no_place(kind):
    # Two labels of eight are possible at each position.
    scorer = TableScorer([logs(0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4)])
    hyps = searching(kind, scorer, 6)(encoder_output(0, 4))
    assert all(set(labels(h)) <= {0, 7} and math.isfinite(h.score) for h in hyps)


@both
def test_a_vocabulary_of_the_end_label_alone(kind):
    hyps = searching(kind, TableScorer([[0.0]]), 5)(encoder_output(0, 4))
    assert [h.yseq.tolist() for h in hyps] == [[0, 0]]
    assert hyps[0].score == 0.0


# A scorer returns NaN or +inf: an error names it and the position. It returns -inf for
# all labels but one: the search works.


@both
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("position", [1, 3])
def test_nan_is_an_error_that_names_scorer_and_position(kind, position, value):
    scorers = {
        "decoder": TableScorer([logs(0.9, 0.07, 0.03)]),
        "lm": NanScorer(3, position, value),
    }
    search = build(kind, scorers, {"decoder": 1.0, "lm": 0.3}, 2, 3)
    with pytest.raises(ScorerError, match="lm") as caught:
        search(encoder_output(0, 9))
    assert re.search(rf"\b{position}\b", str(caught.value))
    assert "decoder" not in str(caught.value)


@both
@pytest.mark.parametrize("weight, smallest", [(-0.3, 0.0), (-1e38, 1e-9)])
def test_a_weighted_sum_that_is_no_number(kind, weight, smallest):
    """Each scorer gives what it may: -0.3 * -inf is too large, and so is 1e38 * 21."""
    lm = TableScorer([logs(smallest, 0.5, 0.5)])
    scorers = {"decoder": TableScorer([logs(0.9, 0.07, 0.03)]), "lm": lm}
    search = build(kind, scorers, {"decoder": 1.0, "lm": weight}, 2, 3)
    said = r"weighted sum of \['decoder', 'lm'\].* at position 1: a weight is too l"
    with pytest.raises(ScorerError, match=said):
        search(encoder_output(0, 9))


@both
@pytest.mark.parametrize("partial", [PartialScorer, BatchPartialScorer])
def test_nan_of_a_partial_scorer(kind, partial):
    class Broken(partial):
        def log_probs(self, utterance, prefix):
            return [math.nan] * 3 if self.position(prefix) == 2 else logs(*[1 / 3] * 3)

    scorers = {"decoder": TableScorer([logs(0.9, 0.07, 0.03)]), "ctc": Broken(0, 3)}
    with pytest.raises(ScorerError, match="ctc") as caught:
        build(kind, scorers, {"decoder": 1.0, "ctc": 0.3}, 2, 3)(encoder_output(0, 9))
    assert re.search(r"\b2\b", str(caught.value))


@every
@pytest.mark.parametrize("beam", [1, 4])
def test_one_possible_label_at_each_position(kind, options, beam):
    scorer = OneLabelScorer(5, [3, 0, 2, 4])
    hyps = searching(kind, scorer, beam, **options)(encoder_output(0, 9))
    assert [labels(h) for h in hyps] == [(3, 0, 2, 4)]
    assert hyps[0].original_score == 0.0


@every
def test_no_possible_label_is_a_result_all_the_same(kind, options):
    scorer = OneLabelScorer(5, [3, 0, None])
    hyps = searching(kind, scorer, 4, **options)(encoder_output(0, 9))
    assert [labels(h) for h in hyps] == [(3, 0, 4)]
    assert hyps[0].score == -math.inf
    assert hyps[0].forced


@both
def test_running_hypotheses_die_out_beside_an_ended_one(kind):
    # $ .4 at once; a .6 has nothing behind it.
    scorer = TableScorer([logs(0.6, 0.0, 0.4), logs(0.0, 0.0, 0.0)])
    search = searching(kind, scorer, 3)
    hyps = search(encoder_output(0, 9))
    assert [labels(h) for h in hyps] == [(END,)]
    assert hyps[0].score == near(math.log(0.4))
    assert (search.trace[0].steps, search.trace[0].stopped) == (2, "ended")


@both
def test_scorers_that_exclude_each_others_labels(kind):
    # Only b is possible for both, then only $.
    scorers = {
        "decoder": TableScorer([logs(0.5, 0.5, 0.0), logs(0.0, 0.5, 0.5)]),
        "lm": TableScorer([logs(0.0, 0.5, 0.5), logs(0.5, 0.0, 0.5)]),
    }
    (best,) = build(kind, scorers, {"decoder": 1.0, "lm": 0.5}, 3, 3)(
        encoder_output(0, 9)
    )
    assert labels(best) == (B, END)
    assert best.original_score == near(1.5 * math.log(0.25))


# Scores were kept as views of a tensor that a later step overwrote. A hypothesis keeps
# its own numbers.


@every
def test_scores_do_not_live_in_a_scorers_buffer(kind, options):
    scorer = BufferScorer(5, 6)
    search = searching(kind, scorer, 6, **options)
    hyps = search(encoder_output(0, 8))
    usual = searching(kind, RandomScorer(5, 6), 6, **options)(encoder_output(0, 8))
    assert_alike(hyps, usual)
    for h in hyps:
        seen = labels(h)
        q = sum(scorer.log_probs(0, (5, *seen[:n]))[seen[n]] for n in range(len(seen)))
        assert h.original_score == near(q)
        assert float(h.scores["decoder"]) == near(q)


@every
def test_a_later_search_leaves_earlier_results_alone(kind, options):
    search = searching(kind, BufferScorer(6, 6), 6, **options)
    hyps, trace = search(encoder_output(0, 8)), search.trace[0]
    before, seen = facts(hyps), list(trace.best_final)
    search(encoder_output(1, 9))
    x, lengths = padded([encoder_output(2, 5), encoder_output(3, 9)])
    search(x, x_lengths=lengths)
    assert facts(hyps) == before
    assert list(trace.best_final) == seen


@every
def test_a_scorers_own_tensors_are_left_alone(kind, options):
    class Stored(TableScorer):
        stored = torch.tensor([logs(0.5, 0.3, 0.2)] * 20)

        def batch_score(self, ys, states, xs):
            return self.stored[: len(ys)], super().batch_score(ys, states, xs)[1]

    scorer = Stored([logs(0.5, 0.3, 0.2)], finals={(): -1.0, (A,): -1.0, (B,): -1.0})
    scorers = {"decoder": scorer, "ctc": BatchPartialScorer(0, 3)}
    weights = {"decoder": 1.0, "ctc": 0.3}
    options = {"pre_beam_score_key": "decoder", "pre_beam_ratio": 1.0, **options}
    search = build(kind, scorers, weights, 2, 3, **options)
    before = scorer.stored.clone()
    search(encoder_output(0, 6), minlenratio=-2)
    assert scorer.stored.equal(before)


# A scorer has a final score, as a language model's. It is added once, when the
# hypothesis ends, whether batched or not.


@every
@pytest.mark.parametrize("scorer_kind", [FinalScorer, PlainFinalScorer])
@pytest.mark.parametrize("batch", [False, True])
def test_the_final_score_is_added_once(kind, options, scorer_kind, batch):
    scorer = scorer_kind(8, 5)
    search = build(kind, {"lm": scorer}, {"lm": 0.5}, 4, 5, **options)
    if batch:
        x, lengths = padded([encoder_output(1, 3), encoder_output(0, 6)])
        hyps = search(x, x_lengths=lengths)[1]
    else:
        hyps = search(encoder_output(0, 6))
    assert hyps
    for h in hyps:
        seen = (4, *labels(h))
        total = sum(scorer.log_probs(0, seen[:n])[seen[n]] for n in range(1, len(seen)))
        total += scorer.final(0, seen[:-1])
        assert float(h.scores["lm"]) == near(total)
        assert h.original_score == near(0.5 * total)


@both
def test_the_final_score_of_a_forced_end(kind):
    table = [logs(0.9, 0.1, 0.0)] * 3 + [logs(0.4, 0.1, 0.5)]
    scorer = TableScorer(table, finals={(A,) * 3: math.log(0.25)})
    (best,) = searching(kind, scorer, 1)(encoder_output(0, 3))
    assert best.forced
    assert best.original_score == near(math.log(0.9**3 * 0.5 * 0.25))


# Batches and short input. An utterance has the labels and scores in a padded batch that
# it has alone. One that is too short for the encoder gets an empty result and leaves
# the others alone. Empty input, or one frame, has a result, never an empty list.


@every
@pytest.mark.parametrize(
    "scorer_kind",
    [RandomScorer, PlainRandomScorer, AllFramesScorer, PlainAllFramesScorer],
)
def test_the_same_alone_and_in_a_padded_batch(kind, options, scorer_kind):
    search = searching(kind, scorer_kind(9, 5), 5, **options)
    xs = [encoder_output(i, T) for i, T in enumerate([3, 7, 5, 1])]
    alone = [search(x) for x in xs]
    for garbage in [0.0, 7.0, 1e4]:
        x, lengths = padded(xs, frames=10, garbage=garbage)
        for hyps, others in zip(search(x, x_lengths=lengths), alone, strict=True):
            assert_alike(hyps, others)


@every
@pytest.mark.parametrize("frames", [[0], [0, 6], [4, 0, 6, 0], [0, 0]])
def test_an_utterance_without_frames_leaves_its_batch_alone(kind, options, frames):
    search = searching(kind, RandomScorer(10, 5), 3, **options)
    xs = [encoder_output(i, T) for i, T in enumerate(frames)]
    alone = [search(x) for x in xs]
    x, lengths = padded(xs, frames=2)
    found = search(x, x_lengths=lengths)
    assert len(found) == len(search.trace) == len(frames)
    for hyps, others, T, trace in zip(found, alone, frames, search.trace):
        assert_alike(hyps, others)
        if T == 0:
            assert [h.yseq.tolist() for h in hyps] == [[4, 4]]
            assert (hyps[0].score, hyps[0].forced, trace.stopped) == (
                0.0,
                True,
                "empty",
            )


@every
@pytest.mark.parametrize("beam", [1, 8])
@pytest.mark.parametrize(
    "maxlenratio, minlenratio", [(0, 0), (0.1, 0), (-3, 0), (0, -2), (0, 1.0)]
)
@pytest.mark.parametrize("frames", [0, 1])
@pytest.mark.parametrize("end_bias", [-9.0, 9.0])
def test_a_result_for_every_length(
    kind, options, beam, maxlenratio, minlenratio, frames, end_bias
):
    search = searching(kind, PlainRandomScorer(11, 4, end_bias), beam, **options)
    hyps = search(encoder_output(0, frames), maxlenratio, minlenratio)
    assert hyps
    for h in hyps:
        assert h.yseq.dtype == torch.int64
        assert h.yseq[0] == h.yseq[-1] == 3
        assert labels(h).count(3) == 1


@both
def test_empty_input_ends_behind_the_primer(kind):
    scorer = RandomScorer(0, 4, start=3)
    search = searching(kind, scorer, 2, primer=[3, 0, 1])
    (best,) = search(encoder_output(0, 0))
    assert best.yseq.tolist() == [3, 0, 1, 3]
    assert (best.score, best.forced) == (0.0, True)


@both
@pytest.mark.parametrize("scorer_kind", [TableScorer, PlainTableScorer])
def test_one_frame(kind, scorer_kind):
    # Limit 1: the end label .3 is within the beam of two, and alone within the limit.
    hyps = searching(kind, scorer_kind([logs(0.6, 0.1, 0.3)]), 2)(encoder_output(0, 1))
    assert [labels(h) for h in hyps] == [(END,)]
    assert not hyps[0].forced


# The memory is too small for a large beam or long audio. The work is split and goes on,
# or an error says of which utterance, and what to lower.


@pytest.fixture
def room_for(monkeypatch):
    """Let the memory hold only so many utterances at once."""

    def limit(most, error):
        def run(decoding):
            if len(decoding.limits) > most:
                raise error
            return whole_run(decoding)

        whole_run = BatchDecoding.run
        monkeypatch.setattr(BatchDecoding, "run", run)

    return limit


@both
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        # as torch says it of the memory of the CPU
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
            "allocate memory: you tried to allocate 4000000000000000 bytes"
        ),
    ],
    ids=["GPU", "CPU"],
)
def test_a_batch_too_large_for_the_memory_is_halved(kind, error, room_for, caplog):
    frames = [7, 9, 5]
    x, lengths = padded([encoder_output(b, n) for b, n in enumerate(frames)])
    search = searching(kind, RandomScorer(5, 6), 4)
    expected = search(x, x_lengths=lengths)
    room_for(1, error)
    found = search(x, x_lengths=lengths)
    for mine, whole in zip(found, expected, strict=True):
        assert [labels(h) for h in mine] == [labels(h) for h in whole]
        assert [h.score for h in mine] == pytest.approx([h.score for h in whole])
    assert [len(t.kept) for t in search.trace] == [h[0].steps for h in expected]
    # three are one and two, and the two are one and one
    assert caplog.text.count("going on in halves") == 2


def test_what_was_too_large_is_gone_when_the_halves_begin(monkeypatch):
    """Caches of the whole batch in the memory would leave its halves no room."""
    started, run = [], BatchDecoding.run

    def run_if_alone(decoding):
        gone = [other() is None for other in started]
        assert all(gone)
        started.append(weakref.ref(decoding))
        if len(decoding.limits) > 1:
            raise torch.OutOfMemoryError("no room")
        return run(decoding)

    monkeypatch.setattr(BatchDecoding, "run", run_if_alone)
    x, lengths = padded([encoder_output(b, 4) for b in range(4)])
    searching(ExplicitLengthBeamSearch, RandomScorer(5, 6), 4)(x, x_lengths=lengths)
    assert len(started) == 7


@both
def test_one_utterance_too_large_says_what_to_lower(kind, room_for):
    x, lengths = padded([encoder_output(b, n) for b, n in enumerate([7, 9])])
    room_for(0, torch.OutOfMemoryError("no room"))
    with pytest.raises(MemoryError, match="beam_size 4 and 7 encoder frames.* lower"):
        searching(kind, RandomScorer(5, 6), 4)(x, x_lengths=lengths)


def test_other_errors_stay_what_they_are():
    class Broken(RandomScorer):
        def batch_score(self, ys, states, xs):
            raise RuntimeError("shapes do not fit")

    x, lengths = padded([encoder_output(b, 4) for b in range(2)])
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        searching(ExplicitLengthBeamSearch, Broken(5, 6), 4)(x, x_lengths=lengths)


@both
def test_a_pre_beam_of_all_scorers_where_there_is_none_but_partial_ones(kind):
    """As ESPnet's translators have it with `ctc_weight: 1.0`."""
    scorers, weights = {"ctc": BatchPartialScorer(0, 6)}, {"ctc": 1.0}
    found = [
        build(kind, scorers, weights, 3, 6, nbest=1, pre_beam_score_key=key)(
            encoder_output(0, 5)
        )
        for key in ("full", None)
    ]
    assert found[0][0].yseq.tolist() == found[1][0].yseq.tolist()


@both
@pytest.mark.parametrize(
    "frames, message",
    [
        ({"x": (4,)}, r"x must be .*, not \(4,\)"),
        ({"x": (1, 1, 4, 2)}, r"x must be .*, not \(1, 1, 4, 2\)"),
        ({"x": (4, 2), "pre_x": (2, 5, 2)}, r"pre_x must be .* not \(2, 5, 2\)"),
        ({"x": (2, 4, 2), "pre_x": (3, 5, 2)}, r"pre_x must be .* not \(3, 5, 2\)"),
        ({"x": (2, 4, 2), "pre_x": (5, 2)}, r"pre_x must be .* not \(5, 2\)"),
    ],
)
def test_frames_of_a_wrong_shape(kind, frames, message):
    search = searching(kind, RandomScorer(0, 6), 2)
    with pytest.raises(ValueError, match=message):
        search(**{name: torch.zeros(shape) for name, shape in frames.items()})


@both
@pytest.mark.parametrize("name, longest", [("x_lengths", 4), ("pre_x_lengths", 5)])
@pytest.mark.parametrize("lengths", [[4, 6], [-1, 4], [4], [4, 4, 4]])
def test_lengths_that_are_not_those_of_the_frames(kind, name, longest, lengths):
    search = searching(kind, RandomScorer(0, 6), 2)
    frames = {"x": torch.zeros(2, 4, 2), "pre_x": torch.zeros(2, 5, 2)}
    said = f"{name} must be 2 numbers from 0 to {longest}, not {lengths}"
    with pytest.raises(ValueError, match=re.escape(said)):
        search(**frames, **{name: torch.tensor(lengths)})


# Sequential attention has a first source of its own, in whose frames lengths count.


@both
@pytest.mark.parametrize("frames, pre_frames", [(9, 3), (3, 9)])
def test_the_limit_counts_the_frames_of_the_first_source(kind, frames, pre_frames):
    never_ends = TableScorer([logs(0.6, 0.4, 0.0)])
    search = build(kind, {"lm": never_ends}, {"lm": 1.0}, 1, 3)
    search(encoder_output(0, frames), pre_x=encoder_output(0, pre_frames))
    assert search.trace[0].steps == pre_frames + 1  # where it is forced to end


@both
def test_nothing_is_heard_in_a_first_source_without_frames(kind):
    ends_at_three = TableScorer([logs(0.6, 0.4, 0.0)] * 2 + [logs(0.0, 0.0, 1.0)])
    search = build(kind, {"lm": ends_at_three}, {"lm": 1.0}, 1, 3)
    x, lengths = padded([encoder_output(0, 4), encoder_output(1, 4)])
    pre_lengths = torch.tensor([3, 0])
    found = search(x, pre_x=x, x_lengths=lengths, pre_x_lengths=pre_lengths)
    assert [labels(hyps[0]) for hyps in found] == [(A, A, END), (END,)]
    assert search.trace[1].stopped == "empty" != search.trace[0].stopped


@both
def test_an_empty_primer_of_one_utterance(kind):
    search = searching(kind, RandomScorer(0, 6), 2)
    search.set_hyp_primer([[5], []])
    with pytest.raises(ValueError, match=r"empty for the utterances \[1\]"):
        search(torch.zeros(2, 4, 2))


@both
@pytest.mark.parametrize("ratio", [-1.0, 0.2])
def test_a_pre_beam_of_no_label(kind, ratio):
    scorers = {"decoder": RandomScorer(0, 9), "ctc": BatchPartialScorer(1, 9)}
    options = {"pre_beam_score_key": "decoder", "pre_beam_ratio": ratio}
    with pytest.raises(ValueError, match=f"pre_beam_ratio is {ratio}, .* one or more"):
        build(kind, scorers, dict.fromkeys(scorers, 0.5), 3, 9, **options)
