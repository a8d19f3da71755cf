"""A rule and a search of another package, as CONTRIBUTING shows them."""

import inspect
import math
from importlib.metadata import EntryPoint

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.espnet_compat import BeamSearch
from espnet_lenbias.options import registry
from tests.search.third_party import FirstEndBeamSearch
from tests.toys import (
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
    padded,
)

A, B, END = 0, 1, 2


def test_it_stops_at_the_first_end():
    # N=1: a .6, b .3; $ .1 is third. N=2: a$ .36, b$ .15, aa .18: the beam is a$, aa.
    table = {
        (): logs(0.6, 0.3, 0.1),
        (A,): logs(0.3, 0.1, 0.6),
        (B,): logs(0.3, 0.2, 0.5),
    }
    search = build(
        FirstEndBeamSearch,
        {"decoder": TableScorer(table, logs(0.3, 0.3, 0.4))},
        {"decoder": 1.0},
        2,
        3,
    )
    hyps = search(encoder_output(0, 9))
    assert [labels(h) for h in hyps] == [(A, END)]
    assert hyps[0].score == pytest.approx(math.log(0.36), abs=1e-5)
    trace = search.trace[0]
    assert (trace.steps, trace.stopped) == (2, "bound")
    assert (trace.kept, trace.running) == ([2, 2], [2, 1])


def test_its_batches_are_its_utterances():
    utts = [encoder_output(b, n) for b, n in enumerate([4, 9, 6])]
    search = build(
        FirstEndBeamSearch, {"decoder": RandomScorer(0, 6)}, {"decoder": 1.0}, 3, 6
    )
    x, lengths = padded(utts)
    together = search(x, x_lengths=lengths)
    alone = [search(utt) for utt in utts]
    assert [[labels(h) for h in hyps] for hyps in together] == [
        [labels(h) for h in hyps] for hyps in alone
    ]


def test_it_is_chosen_by_name(monkeypatch):
    point = EntryPoint(
        "first_end",
        f"{FirstEndBeamSearch.__module__}:FirstEndBeamSearch",
        registry.GROUP,
    )
    points = {**registry._entry_points(), "first_end": point}
    monkeypatch.setattr(registry, "_entry_points", lambda: points)
    assert registry.search_options("first_end") == {"nbest": None}
    like = build(
        ExplicitLengthBeamSearch,
        {"decoder": RandomScorer(0, 6)},
        {"decoder": 1.0},
        3,
        6,
    )
    search = registry.build_search("first_end", like, 5, nbest=2)
    assert type(search) is FirstEndBeamSearch
    assert (search.beam_size, search.options.nbest) == (5, 2)


@pytest.mark.parametrize("search", [ExplicitLengthBeamSearch, FirstEndBeamSearch])
def test_signatures_begin_with_espnets_arguments(search):
    espnets = list(inspect.signature(BeamSearch).parameters)
    assert list(inspect.signature(search).parameters)[: len(espnets)] == espnets
