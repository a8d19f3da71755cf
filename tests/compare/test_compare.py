"""A model of one table.

Labels: the blank, which has no probability, a, b and the end label $. aba$ has
.6 * .7 * .7 * .7 = .2058, and the empty output .25.
"""

import math
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from espnet_lenbias.compare import compare as module
from espnet_lenbias.compare.compare import ComparedSearch, compare, row_search
from espnet_lenbias.compare.utterances import Utterance
from espnet_lenbias.espnet_compat import BeamSearch
from tests.releases import needs_batches
from tests.tables import BIASED_WITH_BLANK, MOSTLY_END_WITH_BLANK
from tests.toys import PlainTableScorer, TableScorer, build, encoder_output


def encode(speech, speech_lengths):
    """As many frames as samples; the utterances are all the same."""
    return encoder_output(0, speech.size(1)).unsqueeze(0), speech_lengths


class OneTableScorer(TableScorer):
    """The same for all utterances, however ESPnet hands their encoder output over."""

    def utterance(self, x):
        return 0


def make_model(scorer=OneTableScorer):
    scorers = {"decoder": scorer(BIASED_WITH_BLANK, otherwise=MOSTLY_END_WITH_BLANK)}
    return SimpleNamespace(
        beam_search=build(BeamSearch, scorers, {"decoder": 1.0}, beam=1, vocab=4),
        asr_model=SimpleNamespace(encode=encode),
        converter=SimpleNamespace(ids2tokens=lambda ids: ["_ab$"[i] for i in ids]),
        tokenizer=SimpleNamespace(tokens2text=" ".join),
        device="cpu",
        dtype="float32",
        maxlenratio=0.0,
        minlenratio=0.0,
    )


ROWS = [
    ComparedSearch(name, name, 2) for name in ("espnet", "simple", "explicit_length")
]

# At beam 2, N = 1 leaves a and $, N = 2 ab and aa, N = 3 aba and aa$, N = 4 aba$ and
# abaa. For explicit_length:
# N      kept mass  p_end          not ended before  best final probability
# 1      .85        .25/.85        1                 .25/.85 = .294
# 2      .54        0              .6/.85 = .7059    the same
# 3      .39        .096/.39       .7059             the same; aa$ has .1738
# 4      .2646      .2058/.2646    .5321             .4139, .1182 are left: the search stops
FINAL = math.log((0.2058 / 0.2646) * (0.6 / 0.85) * (0.294 / 0.39))


@pytest.fixture
def utterances(tmp_path):
    """Two utterances, of 5 and 6 frames."""
    made = []
    for frames in (5, 6):
        path = tmp_path / f"u{frames}.wav"
        soundfile.write(path, np.zeros(frames), 8000)
        made.append(Utterance("dev", path.stem, "a b a", path))
    return made


@pytest.fixture
def ticking(monkeypatch):
    """A clock that is 2 s later each time it is read."""
    clock = count(0, 2)
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(clock)))


def run(utterances, rows=ROWS, batch_size=1, model=None):
    return [
        list(batch)
        for batch in compare(model or make_model(), rows, utterances, batch_size)
    ]


def test_every_search_decodes_an_utterance_before_the_next_one(utterances):
    batches = run(utterances)
    assert [[(r.utterance, r.search) for r in batch] for batch in batches] == [
        [("u5", "espnet"), ("u5", "simple"), ("u5", "explicit_length")],
        [("u6", "espnet"), ("u6", "simple"), ("u6", "explicit_length")],
    ]


@pytest.mark.parametrize("batch_size", [1, pytest.param(2, marks=needs_batches)])
def test_text_scores_and_steps_of_each_search(utterances, batch_size):
    results = [r for batch in run(utterances, batch_size=batch_size) for r in batch]
    espnet, simple, explicit = (
        [r for r in results if r.search == row.label] for row in ROWS
    )
    # ESPnet's search goes on to the last frame, since what ends there is no 10 nats below
    # the best
    assert [(r.text, r.steps) for r in espnet] == [("", 5), ("", 6)]
    # both places have ended at N = 4
    assert [(r.text, r.steps) for r in simple] == [("", 4), ("", 4)]
    assert [(r.text, r.steps) for r in explicit] == [("a b a", 4), ("a b a", 4)]
    for r in espnet + simple:
        assert (r.score, r.original_score) == pytest.approx(
            (math.log(0.25), math.log(0.25)), abs=1e-5
        )
    for r in explicit:
        assert (r.score, r.original_score) == pytest.approx(
            (FINAL, math.log(0.2058)), abs=1e-5
        )
    assert {(r.dataset, r.beam_size, r.reference) for r in results} == {
        ("dev", 2, "a b a")
    }


@pytest.mark.parametrize(
    "batch_size, seconds", [(1, 2.0), pytest.param(2, 1.0, marks=needs_batches)]
)
def test_seconds_are_those_of_the_search_shared_by_the_batch(
    utterances, ticking, batch_size, seconds
):
    assert {
        r.seconds for batch in run(utterances, batch_size=batch_size) for r in batch
    } == {seconds}


def test_an_utterance_is_encoded_once(utterances):
    model, calls = make_model(), []
    model.asr_model.encode = lambda **batch: calls.append(1) or encode(**batch)
    run(utterances, model=model)
    assert len(calls) == 2


def test_a_row_sets_beam_and_options_and_leaves_the_model_alone():
    model = make_model()
    search = row_search(model, ComparedSearch("x", "simple", 3, {"length_norm": True}))
    assert (search.beam_size, search.pre_beam_size) == (3, 4)  # ESPnet's 1.5 times
    assert search.options.length_norm
    assert (model.beam_search.beam_size, type(model.beam_search)) == (1, BeamSearch)


@pytest.mark.parametrize(
    "row, message",
    [
        (
            ComparedSearch("x", "espnet", 5),
            "needs a beam within the 4 labels of the model's vocabulary, not 5",
        ),
        (ComparedSearch("x", "explicit", 2), "did you mean explicit_length"),
        (
            ComparedSearch("x", "explicit_length", 2, {"eos_threshold": 1.5}),
            "is an option of search: simple",
        ),
    ],
)
def test_rows_that_cannot_be_made(utterances, row, message):
    with pytest.raises(ValueError, match=message):
        run(utterances, rows=[row])


def test_batches_for_a_search_that_takes_none(utterances):
    with pytest.raises(
        ValueError,
        match="espnet decodes this model one utterance at a time: set batch_size to 1",
    ):
        run(utterances, rows=ROWS[:1], batch_size=2, model=make_model(PlainTableScorer))
