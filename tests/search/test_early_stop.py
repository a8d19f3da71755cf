"""The stops that are not safe by proof, by hand. Labels: a, b and the end label $."""

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.options.search_conf import ExplicitLengthOptions
from tests import reference
from tests.toys import RandomScorer, TableScorer, build, encoder_output, labels, logs

A, B, END = 0, 1, 2

# Beam 2. N=1: a .5, $ .45, mass .95; final($) = .474, .526 run on. Behind it nothing ends
# within a beam of two: aa .3, ab .15 (a$ .05), then aaa .18, then aaaa .108 and so on.
ROWS = [logs(0.5, 0.05, 0.45), logs(0.6, 0.3, 0.1)]


def decode(table, beam=2, maxlenratio=-40, **conf):
    """Hypotheses and trace of one utterance."""
    search = build(
        ExplicitLengthBeamSearch,
        {"decoder": TableScorer(table)},
        {"decoder": 1.0},
        beam,
        vocab=3,
        **conf,
    )
    hyps = search(encoder_output(0, 9), maxlenratio=maxlenratio)
    return hyps, search.trace[0]


def test_without_it_the_search_runs_to_the_limit():
    hyps, trace = decode(ROWS)
    assert [labels(h) for h in hyps] == [(END,)]
    assert (trace.steps, trace.stopped) == (40, "limit")


@pytest.mark.parametrize(
    "margin, steps",
    [
        (0, 2),  # .5 is above .45, .3 is not
        (1, 4),  # .45 / e = .1655: .18 is above it, .108 is not
        (2.0, 6),  # .45 / e^2 = .0609: .0648 is above it, .0389 is not
    ],
)
def test_a_margin(margin, steps):
    hyps, trace = decode(ROWS, stop_margin=margin)
    assert [labels(h) for h in hyps] == [(END,)]
    assert (trace.steps, trace.stopped) == (steps, "early")


@pytest.mark.parametrize("factor, steps", [(1, 22), (3, 24), (1.5, 22), (2.5, 23)])
def test_a_length(factor, steps):
    """The first position above the factor times one label, and 20."""
    hyps, trace = decode(ROWS, stop_length=factor)
    assert [labels(h) for h in hyps] == [(END,)]
    assert (trace.steps, trace.stopped) == (steps, "early")


def test_the_margin_of_a_later_winner():
    # N=1: a .7, $ .3: final($) = .3, and a .7 is above it.
    # N=2: ab .364, a$ .336: final(a$) = .336 wins, .364 run on, and .364 is above .336.
    # N=3: aba .3276 is not, though it is above .3. Nothing ends here: .364 run on.
    table = [logs(0.7, 0.0, 0.3), logs(0.0, 0.52, 0.48), logs(0.9, 0.1, 0.0)]
    hyps, trace = decode(table, stop_margin=0)
    assert [labels(h) for h in hyps] == [(A, END), (END,)]
    assert (trace.steps, trace.stopped) == (3, "early")


def test_the_length_of_a_later_winner():
    """It moves the stop: labels 2 times 1 and 20, so 23, where 22 would be of one."""
    table = [logs(0.7, 0.0, 0.3), logs(0.0, 0.52, 0.48), logs(0.6, 0.4, 0.0)]
    hyps, trace = decode(table, stop_length=1)
    assert labels(hyps[0]) == (A, END)
    assert (trace.steps, trace.stopped) == (23, "early")


def test_nothing_is_given_up_before_something_has_ended():
    table = [logs(0.6, 0.4, 0.0)]
    _, trace = decode(table, stop_margin=0, stop_length=1)
    assert (trace.steps, trace.stopped) == (41, "forced")


@pytest.mark.parametrize("seed", range(30))
def test_lengths_against_the_reference(seed):
    scorer = RandomScorer(seed, 5, end_bias=-1.0 if seed % 2 else 1.0, spread=3.0)
    conf = {"stop_length": [1, 1.5, 3][seed % 3], "nbest": 1}
    search = build(
        ExplicitLengthBeamSearch, {"decoder": scorer}, {"decoder": 1.0}, 3, 5, **conf
    )
    best = search(encoder_output(1, 60))[0]
    model = reference.Model({"decoder": scorer}, {"decoder": 1.0}, 5, utterance=1)
    expected = reference.explicit_length(model, 60, 3, **conf)
    assert expected.gap > 1e-6  # no tie, where either order would be right
    assert tuple(best.yseq.tolist()) == expected.hyps[0].prefix
    trace = search.trace[0]
    assert (trace.steps, trace.stopped) == (expected.steps, expected.stopped)


@pytest.mark.parametrize("conf", [{"stop_margin": 2.0}, {"stop_length": 3.0}])
def test_a_whole_list_cannot_be_waited_for(conf):
    assert ExplicitLengthOptions(**conf).stops_early
    with pytest.raises(
        ValueError, match=f"{next(iter(conf))} may stop before the n-best"
    ):
        ExplicitLengthOptions(nbest=2, exact_nbest=True, **conf)
