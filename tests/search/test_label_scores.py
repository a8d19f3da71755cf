"""The score of each label, where a search is to keep it."""

import math

import pytest
import torch

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from tests.tables import BIASED, END, MOSTLY_END, A, B
from tests.toys import TableScorer, build, encoder_output, labels, logs, padded


def search_of(kind, *scorers, keep=True, **conf):
    names = [f"scorer{i}" for i in range(len(scorers))]
    weights = dict(zip(names, (1.0, 0.5)))
    search = build(kind, dict(zip(names, scorers)), weights, 3, vocab=3, **conf)
    search.keep_label_scores = keep
    return search


def biased():
    return TableScorer(BIASED, otherwise=MOSTLY_END)


@pytest.mark.parametrize("kind", [ExplicitLengthBeamSearch, SimpleBeamSearch])
def test_each_label_has_its_log_prob(kind):
    hyps = {labels(h): h for h in search_of(kind, biased())(encoder_output(0, 8))}
    assert hyps[A, B, A, END].label_scores == pytest.approx(logs(0.6, 0.7, 0.7, 0.7))
    for hyp in hyps.values():
        assert len(hyp.label_scores) == len(labels(hyp))
        assert sum(hyp.label_scores) == pytest.approx(hyp.original_score, abs=1e-5)


def test_it_is_the_weighted_sum_of_all_scorers():
    other = TableScorer({(): logs(0.2, 0.3, 0.5)}, otherwise=logs(0.2, 0.3, 0.5))
    search = search_of(ExplicitLengthBeamSearch, biased(), other)
    hyps = {labels(h): h for h in search(encoder_output(0, 8))}
    assert hyps[A, B, A, END].label_scores == pytest.approx(
        [
            math.log(0.6) + 0.5 * math.log(0.2),
            math.log(0.7) + 0.5 * math.log(0.3),
            math.log(0.7) + 0.5 * math.log(0.2),
            math.log(0.7) + 0.5 * math.log(0.5),
        ]
    )


def test_utterances_of_a_batch_have_their_own():
    search = search_of(ExplicitLengthBeamSearch, biased())
    alone = [search(encoder_output(0, frames)) for frames in (8, 3)]
    x, x_lengths = padded([encoder_output(0, frames) for frames in (8, 3)])
    together = search(x, x_lengths=x_lengths)
    for one, other in zip(alone, together):
        assert [h.label_scores for h in one] == [h.label_scores for h in other]


def test_nothing_is_kept_unless_it_is_asked_for():
    hyps = search_of(ExplicitLengthBeamSearch, biased(), keep=False)(
        encoder_output(0, 8)
    )
    assert all(h.label_scores is None for h in hyps)


def test_a_hypothesis_keeps_what_it_carries_when_a_field_is_replaced():
    [hyp, *_] = search_of(ExplicitLengthBeamSearch, biased())(encoder_output(0, 8))
    hyp.word_confidence = [0.5]
    other = hyp._replace(yseq=torch.tensor([1]), forced=True)
    assert other.yseq.tolist() == [1]
    assert other.label_scores == hyp.label_scores
    assert (other.forced, other.word_confidence) == (True, [0.5])
    assert (hyp.forced, other.steps) == (False, hyp.steps)
