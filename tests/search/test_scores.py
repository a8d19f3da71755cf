"""The scores of a hypothesis: its own numbers, each added once.

The heading of each part says what has gone wrong in decoders, and what must hold.

Labels of the tables: a, b and the end label $.
"""

import math

import pytest
import torch

from tests.search.kinds import assert_alike, both, every, searching
from tests.tables import A, B, near
from tests.toys import (
    BatchPartialScorer,
    BufferScorer,
    FinalScorer,
    PlainFinalScorer,
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
    padded,
)


def facts(hyps):
    return [
        (h.yseq.tolist(), h.score, h.original_score, h.forced, dict(h.scores))
        for h in hyps
    ]


@both
def test_scores_can_be_used_as_those_of_espnets_hypotheses(kind):
    search = searching(kind, RandomScorer(0, 4), 2)
    for frames in (0, 5):
        best = search(encoder_output(0, frames))[0]
        assert best.score.item() == float(best.score) == float(best.score.cpu())
        assert {k: float(v.cpu()) for k, v in best.scores.items()} == best.scores
        assert all(type(v.item()) is float for v in best.scores.values())


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
