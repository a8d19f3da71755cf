"""End labels: when the search stops for them, and which of them wins.

The heading of each part says what has gone wrong in decoders, and what must hold.

Labels of the tables: a, b and the end label $.
"""

import math

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from tests import reference
from tests.search.kinds import both, every, searching
from tests.tables import END, MOSTLY_END, A, B, near
from tests.toys import (
    BatchPartialScorer,
    PartialScorer,
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
    padded,
)

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
