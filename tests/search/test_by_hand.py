"""Both searches on tables small enough to search by hand.

Labels: a, b and the end label $.
"""

import math

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch
from tests.tables import (
    BIASED,
    END,
    LONG,
    MOSTLY_END,
    SHORT,
    A,
    B,
    explicit,
    near,
    outputs,
    scores,
    simple,
)
from tests.toys import TableScorer, build, encoder_output, labels, logs

# The explicit length model


def test_beam_of_three():
    # N=1: kept a .6, $ .3, b .1; p_end = .3; final($) = .3; not ended: .7 > .3, so on.
    # N=2: kept a$ .42, ab .12, aa .06, mass .60; p_end = .7;
    #      final(a$) = .42 / .60 * .7 = .49; not ended: .7 * .3 = .21 <= .49, stop.
    hyps, trace = explicit(SHORT, 3)
    assert outputs(hyps) == [(A, END), (END,)]
    assert scores(hyps) == near(logs(0.49, 0.3))
    assert [h.original_score for h in hyps] == near(logs(0.42, 0.3))
    assert not any(h.forced for h in hyps)
    assert (trace.steps, trace.stopped) == (2, "bound")
    assert list(trace.p_end) == near([0.3, 0.7])
    assert list(trace.log_not_ended) == near(logs(1.0, 0.7))
    assert list(trace.kept) == [3, 3]
    assert list(trace.running) == [2, 2]
    assert list(trace.best_final) == near(logs(0.3, 0.49))


def test_beam_of_two():
    # N=1: a .6, $ .3, mass .9; p_end = 1/3 = final($); not ended 2/3.
    # N=2: a$ .42, ab .12, mass .54; p_end = 7/9; final(a$) = 7/9 * 2/3 = 14/27;
    #      not ended 2/3 * 2/9 = 4/27, stop.
    hyps, trace = explicit(SHORT, 2)
    assert outputs(hyps) == [(A, END), (END,)]
    assert scores(hyps) == near(logs(14 / 27, 1 / 3))
    assert list(trace.p_end) == near([1 / 3, 7 / 9])
    assert list(trace.kept) == [2, 2]
    assert list(trace.running) == [1, 1]


def test_beam_of_one_is_greedy_with_probability_one():
    # N=1: a alone, p_end = 0. N=2: a$ alone, p_end = 1, final = 1.
    hyps, trace = explicit(SHORT, 1)
    assert outputs(hyps) == [(A, END)]
    assert scores(hyps) == near([0.0])
    assert hyps[0].original_score == near(math.log(0.42))
    assert list(trace.p_end) == [0.0, 1.0]
    assert trace.best_final[0] == -math.inf
    assert (trace.steps, trace.stopped) == (2, "bound")


def test_nbest_cuts_the_list():
    hyps, _ = explicit(SHORT, 3, nbest=1)
    assert outputs(hyps) == [(A, END)]


def test_exact_nbest_waits_until_no_later_one_can_be_among_them():
    # At N=2 .49 and .30 have ended and .21 has not: two are safe, a third is not there yet.
    hyps, trace = explicit(SHORT, 3, nbest=2, exact_nbest=True)
    assert (trace.steps, outputs(hyps)) == (2, [(A, END), (END,)])
    # N=3: ab$ .096, aa$ .048, aba .018 (aaa .009, abb .006, aab .003), mass .162;
    #      final(ab$) = .096 / .162 * .21 = .1244; not ended .21 * .018 / .162 = .0233.
    hyps, trace = explicit(SHORT, 3, nbest=3, exact_nbest=True)
    assert (trace.steps, trace.stopped) == (3, "bound")
    assert outputs(hyps) == [(A, END), (END,), (A, B, END)]
    assert scores(hyps) == near(logs(0.49, 0.3, 0.096 / 0.162 * 0.21))


def test_exact_nbest_needs_a_number():
    with pytest.raises(ValueError, match="nbest"):
        explicit(SHORT, 3, exact_nbest=True)


def test_threshold_is_a_distance_to_the_best():
    # log(.6 / .3) = .69 and log(.6 / .1) = 1.79: 1.5 drops b, as a beam of two would.
    # N=2: log(.42 / .12) = 1.25 stays, log(.42 / .06) = 1.95 goes.
    hyps, trace = explicit(SHORT, 3, score_threshold=1.5)
    assert list(trace.kept) == [2, 2]
    assert scores(hyps) == near(logs(14 / 27, 1 / 3))
    # .5 leaves the best alone at each position.
    hyps, trace = explicit(SHORT, 3, score_threshold=0.5)
    assert list(trace.kept) == [1, 1]
    assert outputs(hyps) == [(A, END)]
    assert scores(hyps) == near([0.0])


def test_two_weighted_scorers():
    # a .6 * .64^.5 = .48, b .1 * .2^.5 = .0447, $ .3 * .16^.5 = .12.
    # A beam of two keeps a and $: p_end = .12 / .60.
    scorers = {
        "decoder": TableScorer(SHORT, MOSTLY_END),
        "lm": TableScorer([logs(0.64, 0.2, 0.16)]),
    }
    search = build(
        ExplicitLengthBeamSearch, scorers, {"decoder": 1.0, "lm": 0.5}, 2, vocab=3
    )
    hyps = search(encoder_output(0, 8))
    empty = next(h for h in hyps if labels(h) == (END,))
    assert search.trace[0].p_end[0] == near(0.2)
    assert empty.score == near(math.log(0.2))
    assert empty.original_score == near(math.log(0.12))
    assert {k: float(v) for k, v in empty.scores.items()} == near(
        {"decoder": math.log(0.3), "lm": math.log(0.16)}
    )


def test_scorer_of_weight_zero_is_not_asked():
    scorers = {
        "decoder": TableScorer(SHORT, MOSTLY_END),
        "lm": TableScorer([logs(0.64, 0.2, 0.16)]),
    }
    search = build(
        ExplicitLengthBeamSearch, scorers, {"decoder": 1.0, "lm": 0.0}, 3, vocab=3
    )
    hyps = search(encoder_output(0, 8))
    assert scores(hyps) == near(logs(0.49, 0.3))
    assert set(hyps[0].scores) == {"decoder"}
    assert scorers["lm"].rows == []


def test_final_score_of_a_scorer_counts_in_the_masses():
    # The end label at N=1 has .3 * .5 = .15: mass .6 + .15 + .1 = .85.
    hyps, trace = explicit(SHORT, 3, finals={(): math.log(0.5)})
    empty = next(h for h in hyps if labels(h) == (END,))
    assert trace.p_end[0] == near(0.15 / 0.85)
    assert empty.original_score == near(math.log(0.15))
    assert float(empty.scores["decoder"]) == near(math.log(0.15))


def test_minimum_length_masks_the_end_label():
    # One label. N=1: $ is masked, p_end = 0.
    # N=2: kept a$ .42, ab .12, aa .06: final(a$) = .7; not ended .3, stop.
    hyps, trace = explicit(SHORT, 3, minlenratio=-1)
    assert outputs(hyps) == [(A, END)]
    assert scores(hyps) == near(logs(0.7))
    assert list(trace.p_end) == near([0.0, 0.7])
    # Two labels. N=1: a, b. N=2: ab .12, aa .06, ba .05.
    # N=3: ab$ .096, aa$ .048, ba$ .04, mass .184; all have ended.
    hyps, trace = explicit(SHORT, 3, minlenratio=-2)
    assert outputs(hyps) == [(A, B, END), (A, A, END), (B, A, END)]
    assert scores(hyps) == near(logs(0.096 / 0.184, 0.048 / 0.184, 0.04 / 0.184))
    assert list(trace.kept) == [2, 3, 3]
    assert list(trace.p_end) == near([0.0, 0.0, 1.0])
    assert (trace.steps, trace.stopped) == (3, "bound")


def test_minimum_length_as_a_ratio_of_the_input():
    # 8 frames * .2 = 1.6: one label. 8 * .3 = 2.4: two.
    assert outputs(explicit(SHORT, 3, minlenratio=0.2)[0]) == [(A, END)]
    hyps, _ = explicit(SHORT, 3, minlenratio=0.3)
    assert outputs(hyps) == [(A, B, END), (A, A, END), (B, A, END)]


def test_limit_stops_the_search():
    # The third of three would end at N=3.
    hyps, trace = explicit(SHORT, 3, maxlenratio=-2, nbest=3, exact_nbest=True)
    assert outputs(hyps) == [(A, END), (END,)]
    assert (trace.steps, trace.stopped) == (2, "limit")


# Limit 2. Of SHORT, final($) = .3, final(a$) = .7 * .7 = .49, and .21 run on. Of
# UNLIKELY, final($) = .006, final(a$) = .994 * .01 = .00994, and .98406 run on.
UNLIKELY = {(): logs(0.994, 0.0, 0.006), (A,): logs(0.99, 0.0, 0.01)}


@pytest.mark.parametrize("table, exact", [(SHORT, True), (UNLIKELY, False)])
def test_a_warning_where_more_was_still_running(table, exact, caplog):
    """At the limit; not for two of an n-best list of which the best one is likely."""
    hyps, trace = explicit(table, 3, maxlenratio=-2, nbest=3, exact_nbest=exact)
    assert (hyps[0].yseq[1:].tolist(), trace.stopped) == ([A, END], "limit")
    warnings = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert warnings == [
        "the best hypothesis that had ended within 2 positions has a probability of "
        "0.0099, less than the 0.98 of what was still running, so the output may be too "
        "short; a larger maxlenratio leaves it more room, and if what runs on repeats "
        "itself, search_conf: {repeat_limit: 3} breaks such loops"
    ] * (table is UNLIKELY)


def test_nothing_runs_on():
    # Three are asked for and there are two. N=1: a .9, $ .1. N=2: a$ alone: final 1 * .9.
    table = {(): logs(0.9, 0.0, 0.1), (A,): logs(0.0, 0.0, 1.0)}
    hyps, trace = explicit(table, 4, nbest=3, exact_nbest=True)
    assert outputs(hyps) == [(A, END), (END,)]
    assert scores(hyps) == near(logs(0.9, 0.1))
    assert (trace.steps, trace.stopped) == (2, "ended")


def test_end_by_force_behind_the_limit():
    # Limit 2. N=1: a .7, b .3. N=2: aa .42, ab .28 (ba .18, bb .12).
    # N=3, the end label alone: aa$ .042, ab$ .14, mass .182.
    hyps, trace = explicit(LONG, 2, frames=2)
    assert outputs(hyps) == [(A, B, END), (A, A, END)]
    assert scores(hyps) == near(logs(0.14 / 0.182, 0.042 / 0.182))
    assert [h.original_score for h in hyps] == near(logs(0.14, 0.042))
    assert all(h.forced for h in hyps)
    assert (trace.steps, trace.stopped) == (3, "forced")


def test_no_label_is_possible():
    # b has .5 and nothing behind it; the beam of one is forced to end there.
    table = {(): logs(0.4, 0.5, 0.1), (B,): logs(0.0, 0.0, 0.0)}
    hyps, trace = explicit(table, 1)
    assert outputs(hyps) == [(B, END)]
    assert hyps[0].score == -math.inf
    assert hyps[0].forced
    assert (trace.steps, trace.stopped) == (2, "forced")


def test_hypothesis_is_primer_labels_and_end_label():
    hyps, _ = explicit(SHORT, 3)
    assert hyps[0].yseq.tolist() == [END, A, END]
    scorer = TableScorer(SHORT, MOSTLY_END, start=3)
    search = build(
        ExplicitLengthBeamSearch,
        {"decoder": scorer},
        {"decoder": 1.0},
        3,
        vocab=3,
        primer=[END, B, B],
    )
    hyps = search(encoder_output(0, 8))
    assert [h.yseq.tolist() for h in hyps] == [[END, B, B, A, END], [END, B, B, END]]
    assert scores(hyps) == near(logs(0.49, 0.3))


# Simple search


def test_simple_beam_of_three():
    # N=1: a .6, $ .3, b .1. N=2: a$ .42, $ .3, ab .12 (aa .06).
    # N=3: a$ .42, $ .3, ab$ .096 (aba .018): all have ended.
    hyps, trace = simple(SHORT, 3)
    assert outputs(hyps) == [(A, END), (END,), (A, B, END)]
    assert scores(hyps) == near(logs(0.42, 0.3, 0.096))
    assert [h.original_score for h in hyps] == near(logs(0.42, 0.3, 0.096))
    assert list(trace.running) == [2, 1, 0]
    assert (trace.steps, trace.stopped) == (3, "ended")
    assert list(trace.p_end) == list(trace.log_not_ended) == []


@pytest.mark.parametrize("beam, expected", [(1, [(A, END)]), (2, [(A, END), (END,)])])
def test_simple_small_beams(beam, expected):
    # N=1: a .6 (and $ .3). N=2: a$ .42 (and $ .3, before ab .12): all ended.
    hyps, trace = simple(SHORT, beam)
    assert outputs(hyps) == expected
    assert trace.steps == 2


def test_simple_nbest_cuts_the_list():
    assert outputs(simple(SHORT, 3, nbest=2)[0]) == [(A, END), (END,)]


def test_simple_running_ones_push_ended_ones_out():
    # N=1: a .6, b .25, $ .15. N=2: aa .36, ab .21, ba .175, and $ .15 comes fourth.
    table = {
        (): logs(0.6, 0.25, 0.15),
        (A,): logs(0.6, 0.35, 0.05),
        (B,): logs(0.7, 0.2, 0.1),
    }
    _, trace = simple(table, 3)
    assert list(trace.running)[:2] == [2, 3]
    assert (END,) not in outputs(simple(table, 3)[0])
    assert (END,) in outputs(simple(table, 3, keep_ended="separate")[0])


def test_simple_is_cut_at_the_limit_with_what_has_ended():
    # The run of test_simple_beam_of_three up to N=2: ab is still running.
    hyps, trace = simple(SHORT, 3, maxlenratio=-2)
    assert outputs(hyps) == [(A, END), (END,)]
    assert (trace.steps, trace.stopped) == (2, "limit")


def test_simple_minimum_length():
    # N=1: a .6, b .1. N=2: a$ .42, ab .12, aa .06. N=3: a$ .42, ab$ .096, aa$ .048.
    hyps, _ = simple(SHORT, 3, minlenratio=-1)
    assert outputs(hyps) == [(A, END), (A, B, END), (A, A, END)]


def test_simple_end_by_force():
    # As in the explicit case: ab$ .14, aa$ .042, at N=3.
    hyps, trace = simple(LONG, 2, frames=2)
    assert outputs(hyps) == [(A, B, END), (A, A, END)]
    assert scores(hyps) == near(logs(0.14, 0.042))
    assert all(h.forced for h in hyps)
    assert (trace.steps, trace.stopped) == (3, "forced")
    hyps, _ = simple(LONG, 2, frames=2, length_norm=True)
    assert scores(hyps) == near([math.log(0.14) / 3, math.log(0.042) / 3])


def test_simple_no_label_is_possible():
    table = {(): logs(0.4, 0.5, 0.1), (B,): logs(0.0, 0.0, 0.0)}
    hyps, trace = simple(table, 1)
    assert outputs(hyps) == [(B, END)]
    assert hyps[0].score == -math.inf
    assert (hyps[0].forced, trace.stopped) == (True, "forced")


def test_length_norm():
    # N=1: a log(.6) = -.511, $ log(.25) = -1.386.
    # N=2: ab log(.42)/2 = -.434, aa log(.12)/2 = -1.060: $ is pushed out.
    # N=3: aba log(.294)/3 = -.408, aa$ log(.096)/3 = -.781 (abb -.826).
    # N=4: aba$ log(.2058)/4 = -.395, abaa log(.0588)/4 = -.708: aa$ is pushed out.
    # N=5: abaa$ log(.04704)/5 = -.611 (abaaa -.946). All ended.
    hyps, trace = simple(BIASED, 2, length_norm=True)
    assert outputs(hyps) == [(A, B, A, END), (A, B, A, A, END)]
    assert scores(hyps) == near([math.log(0.2058) / 4, math.log(0.04704) / 5])
    assert [h.original_score for h in hyps] == near(logs(0.2058, 0.04704))
    assert (trace.steps, trace.stopped) == (5, "ended")


def test_length_reward():
    # N=1: a log(.6) + .5 = -.011, $ log(.25) + .5 = -.886.
    # N=2: ab .132, $ -.886 (aa -1.120). N=3: aba .276, $ -.886 (abb -.977).
    # N=4: aba$ .419, abaa -.834 ($ -.886). N=5: abaa$ log(.04704) + 2.5 = -.557. All ended.
    hyps, trace = simple(BIASED, 2, length_reward=0.5)
    assert outputs(hyps) == [(A, B, A, END), (A, B, A, A, END)]
    assert scores(hyps) == near([math.log(0.2058) + 2.0, math.log(0.04704) + 2.5])
    assert [h.original_score for h in hyps] == near(logs(0.2058, 0.04704))
    assert trace.steps == 5


def test_length_reward_is_normalised_with_the_rest():
    # Beam 1: a, ab, aba, aba$: (log(.2058) + 4 * .5) / 4.
    hyps, _ = simple(BIASED, 1, length_reward=0.5, length_norm=True)
    assert scores(hyps) == near([(math.log(0.2058) + 2.0) / 4])


def test_length_penalty():
    # The score over the square root of N.
    # N=1: a log(.6) = -.511, $ log(.25) = -1.386.
    # N=2: ab log(.42)/1.414 = -.613, $ -1.386 (aa log(.12)/1.414 = -1.499).
    # N=3: aba log(.294)/1.732 = -.707, $ -1.386 (abb log(.084)/1.732 = -1.430).
    # N=4: aba$ log(.2058)/2 = -.790, $ -1.386 (abaa log(.0588)/2 = -1.417). All ended.
    hyps, trace = simple(BIASED, 2, length_penalty=0.5)
    assert outputs(hyps) == [(A, B, A, END), (END,)]
    assert scores(hyps) == near([math.log(0.2058) / 2, math.log(0.25)])
    assert [h.original_score for h in hyps] == near(logs(0.2058, 0.25))
    assert (trace.steps, trace.stopped) == (4, "ended")
    # aba$: -1.581 / 4 ** .1 = -1.376, and / 4 ** .09 = -1.395; $ -1.386 between them.
    assert outputs(simple(BIASED, 2, length_penalty=0.1)[0])[0] == (A, B, A, END)
    assert outputs(simple(BIASED, 2, length_penalty=0.09)[0])[0] == (END,)


def test_length_penalty_of_one_is_length_norm():
    of_one, of_norm = (
        simple(BIASED, 2, **conf)[0]
        for conf in ({"length_penalty": 1}, {"length_norm": True})
    )
    assert outputs(of_one) == outputs(of_norm)
    assert scores(of_one) == scores(of_norm)


def test_length_reward_is_under_the_length_penalty():
    # Beam 1: a, ab, aba, aba$: (log(.2058) + 4 * .5) / 4 ** 2.
    hyps, _ = simple(BIASED, 1, length_reward=0.5, length_penalty=2)
    assert scores(hyps) == near([(math.log(0.2058) + 2.0) / 16])


@pytest.mark.parametrize("factor, running", [(1.5, 2), (2.5, 1)])
def test_eos_threshold(factor, running):
    # log(.35) = -1.050, log(.6) = -.511: 1.5 times that is -.766, 2.5 times it is -1.277.
    table = {(): logs(0.6, 0.05, 0.35)}
    _, trace = simple(table, 2, eos_threshold=factor)
    assert trace.running[0] == running


def test_eos_threshold_does_not_hold_behind_the_limit():
    hyps, _ = simple(LONG, 2, frames=2, eos_threshold=0.1)
    assert outputs(hyps) == [(A, B, END), (A, A, END)]


def test_separate_runs_to_the_limit():
    # N=1: ended $ .25; running a .6, b .15.
    # N=2: ended $ .25, b$ .12 (a$ .06); running ab .42, aa .12.
    # N=3: ended the same (aa$ .096, ab$ .042); running aba .294, abb .084.
    # N=4: ended $ .25, aba$ .2058 (abb$ .0672).
    hyps, trace = simple(BIASED, 2, frames=4, keep_ended="separate")
    assert outputs(hyps) == [(END,), (A, B, A, END)]
    assert scores(hyps) == near(logs(0.25, 0.2058))
    assert list(trace.running)[:3] == [2, 2, 2]
    assert (trace.steps, trace.stopped) == (4, "limit")
    # Joint pruning is through at N=4 whatever the limit; separate pruning is not.
    assert simple(BIASED, 2, frames=7)[1].steps == 4
    assert simple(BIASED, 2, frames=7, keep_ended="separate")[1].steps == 7


def test_separate_is_more_biased_than_joint():
    # Joint: a, ab, aba, aba$, and $ has no place. Separate: it has one, and .25 > .2058.
    assert outputs(simple(BIASED, 1)[0]) == [(A, B, A, END)]
    assert outputs(simple(BIASED, 1, keep_ended="separate")[0]) == [(END,)]


# Patience: what is looked at, best first, up to the K-th one that runs on


def patient(table, beam, patience, **conf):
    return simple(table, beam, keep_ended="separate", patience=patience, **conf)


def test_patience_of_one_stops_when_as_many_have_ended_as_the_beam_has_places():
    # N=1: a .6 runs, $ .3 has ended, b .1 runs. N=2: a$ .42 is the second one.
    hyps, trace = patient(SHORT, 2, 1)
    assert outputs(hyps) == [(A, END), (END,)]
    assert scores(hyps) == near(logs(0.42, 0.3))
    assert (trace.steps, trace.stopped) == (2, "early")
    # to the limit without it
    assert simple(SHORT, 2, keep_ended="separate")[1].steps == 8


@pytest.mark.parametrize(
    "patience, also", [(1.5, [(A, B, END)]), (2, [(A, B, END), (A, A, END)])]
)
def test_more_patience(patience, also):
    # N=1, 2: as above; ab .12 and aa .06 run on, and b$ .02 comes behind them.
    # N=3: ab$ .096, then aa$ .048 (aba .018, aaa .009): the third and the fourth.
    hyps, trace = patient(SHORT, 2, patience)
    assert outputs(hyps) == [(A, END), (END,), *also]
    assert scores(hyps) == near(logs(0.42, 0.3, 0.096, 0.048)[: len(hyps)])
    assert list(trace.running)[:2] == [2, 2]
    assert list(trace.kept)[:2] == [3, 4]
    assert (trace.steps, trace.stopped) == (3, "early")


def test_patience_counts_only_what_ends_before_the_worst_that_runs_on():
    # Beam 1: a .6, ab .42, aba .294, aba$ .2058, the first that is the best.
    # One of K places apart: $ .25, at once.
    hyps, trace = patient(BIASED, 1, 1)
    assert outputs(hyps) == [(A, B, A, END)]
    assert trace.steps == 4
    assert outputs(simple(BIASED, 1, keep_ended="separate")[0]) == [(END,)]


def test_less_than_one_place_of_patience_is_one():
    assert outputs(patient(BIASED, 1, 0.1)[0]) == [(A, B, A, END)]
    # Beam 2: a .6 runs, then $ .25.
    hyps, trace = patient(BIASED, 2, 0.5)
    assert (outputs(hyps), trace.steps) == ([(END,)], 1)


def test_patience_does_not_pass_the_limit():
    hyps, trace = patient(SHORT, 2, 5, maxlenratio=-2)
    assert outputs(hyps) == [(A, END), (END,)]
    assert (trace.steps, trace.stopped) == (2, "limit")
    # Nothing ends within two labels.
    hyps, trace = patient(LONG, 2, 1, frames=2)
    assert outputs(hyps) == [(A, B, END), (A, A, END)]
    assert (trace.steps, trace.stopped) == (3, "forced")


def test_patience_ranks_by_the_length_penalty():
    # As with Hugging Face's search: q / N. $ log(.3), a$ log(.42) / 2, ab$ log(.096) / 3.
    hyps, _ = patient(SHORT, 2, 1.5, length_penalty=1)
    assert outputs(hyps) == [(A, END), (A, B, END), (END,)]
    expected = [math.log(0.42) / 2, math.log(0.096) / 3, math.log(0.3)]
    assert scores(hyps) == near(expected)


# The length bias


def test_larger_beam_shortens_the_output_of_simple_search_alone():
    # Simple, beam 2. N=1: a .6, $ .25. N=2: ab .42, $ .25. N=3: aba .294, $ .25.
    # N=4: $ .25, aba$ .2058.
    assert outputs(simple(BIASED, 1)[0])[0] == (A, B, A, END)
    assert outputs(simple(BIASED, 2)[0])[0] == (END,)
    # Explicit, beam 2. N=1: a .6, $ .25, mass .85; final($) = .2941; not ended .7059.
    # N=2: ab .42, aa .12; p_end = 0.
    # N=3: aba .294, aa$ .096, mass .39; final(aa$) = .1738; not ended .5321.
    # N=4: aba$ .2058, abaa .0588, mass .2646; final(aba$) = .7778 * .5321 = .4139;
    #      not ended .1183, stop.
    hyps, trace = explicit(BIASED, 2)
    assert outputs(hyps) == [(A, B, A, END), (END,), (A, A, END)]
    not_ended = 0.6 / 0.85 * 0.294 / 0.39
    assert scores(hyps) == near(
        logs(0.2058 / 0.2646 * not_ended, 0.25 / 0.85, 0.096 / 0.39 * 0.6 / 0.85)
    )
    assert (trace.steps, trace.stopped) == (4, "bound")
    assert outputs(explicit(BIASED, 1)[0])[0] == (A, B, A, END)
