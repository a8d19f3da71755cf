"""The scores of a given text."""

import math

import pytest
import torch

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.errors import ScorerError
from espnet_lenbias.search.given_text import scores_along
from tests.tables import BIASED, END, MOSTLY_END, A, B
from tests.toys import (
    BatchPartialScorer,
    BufferScorer,
    FinalScorer,
    NanScorer,
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
)


def test_by_hand():
    scorer = TableScorer(BIASED, otherwise=MOSTLY_END)
    search = build(
        ExplicitLengthBeamSearch, {"decoder": scorer}, {"decoder": 1.0}, 2, vocab=3
    )
    rows = scores_along(search, encoder_output(0, 4), [A, B])
    expected = [logs(0.6, 0.15, 0.25), logs(0.2, 0.7, 0.1), logs(0.7, 0.2, 0.1)]
    assert rows.tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


def test_the_label_smoothing_of_the_search_applies():
    scorer = TableScorer(BIASED, otherwise=MOSTLY_END)
    search = build(
        ExplicitLengthBeamSearch,
        {"decoder": scorer},
        {"decoder": 1.0},
        2,
        vocab=3,
        label_smoothing=0.1,
    )
    [row] = scores_along(search, encoder_output(0, 4), [])
    assert row.tolist() == pytest.approx(logs(0.55 / 0.85, 0.1 / 0.85, 0.2 / 0.85))


@pytest.mark.parametrize("kind", [RandomScorer, FinalScorer, BufferScorer])
def test_a_text_that_was_found_has_the_score_that_it_was_found_with(kind):
    scorers = {"decoder": kind(5, 6), "ctc": BatchPartialScorer(6, 6)}
    weights = {"decoder": 0.7, "ctc": 0.3}
    primer = [END, A]
    for scorer in scorers.values():
        scorer.start = len(primer)
    search = build(
        ExplicitLengthBeamSearch,
        scorers,
        weights,
        8,
        vocab=6,
        primer=primer,
        pre_beam_score_key="decoder",
        pre_beam_ratio=0.5,
    )
    x = encoder_output(3, 7)
    for hyp in search(x)[:4]:
        found = labels(hyp, start=len(primer))
        rows = scores_along(search, x, found[:-1])
        assert rows.shape == (len(found), 6)
        of_path = rows[torch.arange(len(found)), torch.tensor(found)]
        assert float(of_path.sum()) == pytest.approx(hyp.original_score, abs=1e-4)
        assert rows.isfinite().all()  # no pre-beam


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_that_is_no_number(value):
    scorers = {"decoder": NanScorer(3, 2, value)}
    search = build(ExplicitLengthBeamSearch, scorers, {"decoder": 1.0}, 2, vocab=3)
    with pytest.raises(ScorerError, match="'decoder' returned NaN .* at position 2"):
        scores_along(search, encoder_output(0, 4), [A, B])
