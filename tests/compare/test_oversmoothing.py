"""The oversmoothing rate, by hand and on the bundled model."""

import math

import pytest
import torch

from espnet_lenbias import Speech2Text
from espnet_lenbias.compare.compare import ComparedSearch, encode, row_search
from espnet_lenbias.compare.oversmoothing import (
    Oversmoothing,
    oversmoothed,
    oversmoothing,
)
from espnet_lenbias.compare.utterances import Utterance, read_set
from tests.bundled import SLICE, bundled
from tests.toys import logs

A, B, END = 0, 1, 2


def test_by_hand():
    # The rest of aba$ is .6 * .7 * .7 * .7 = .2058, .343, .49, then .7 of the end itself.
    rows = [
        logs(0.6, 0.15, 0.25),  # .25 > .2058
        logs(0.2, 0.7, 0.1),  # .1
        logs(0.7, 0.2, 0.5),  # .5 > .49
        logs(0.2, 0.1, 0.7),
    ]
    found = oversmoothed(torch.tensor(rows), [A, B, A], END)
    assert found.tolist() == [True, False, True]
    measured = Oversmoothing("set", "key", 3, 2, True)
    assert measured.rate == pytest.approx(2 / 3)


def test_what_cannot_end_is_not_oversmoothed():
    rows = torch.tensor([logs(0.5, 0.5, 0.0), logs(0.0, 0.0, 1.0)])
    assert oversmoothed(rows, [A], END).tolist() == [False]
    # nor where neither is possible
    rows = torch.tensor([logs(0.0, 1.0, 0.0), logs(0.0, 0.0, 1.0)])
    assert oversmoothed(rows, [A], END).tolist() == [False]


def test_of_a_model():
    """By ESPnet's decoder, which scores the whole reference at once."""
    model = Speech2Text.from_pretrained(
        str(bundled("asr_transformer")), ctc_weight=0.0, lm_weight=0.0
    )
    search = row_search(model, ComparedSearch("", "explicit_length", 1))
    utterance = read_set(SLICE, "dev-other")[0]
    empty = Utterance(utterance.dataset, "nothing", "", utterance.audio)
    [found] = oversmoothing(model, search, [utterance, empty])

    ids = model.converter.tokens2ids(model.tokenizer.text2tokens(utterance.reference))
    eos = search.eos
    x = encode(model, utterance.audio)[None]
    path = torch.tensor([[eos, *ids]])
    with torch.no_grad():
        logits, _ = model.asr_model.decoder(
            x, torch.tensor([x.size(1)]), path, torch.tensor([len(ids) + 1])
        )
    log_probs = logits[0].double().log_softmax(dim=1).tolist()
    ends = 0
    for n in range(len(ids)):
        following = zip(log_probs[n:], [*ids[n:], eos], strict=True)
        ends += log_probs[n][eos] > math.fsum(row[label] for row, label in following)
    assert (found.dataset, found.utterance) == ("dev-other", utterance.key)
    assert (found.positions, found.oversmoothed) == (len(ids), ends)
    assert found.positions > 10
