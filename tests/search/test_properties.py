"""What holds for every model: the identity, batches, larger beams, the early stop."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from tests import reference
from tests.toys import PlainRandomScorer, RandomScorer, build, encoder_output, padded

seeds = st.integers(0, 10**6)
end_biases = st.sampled_from([-2.0, -0.5, 0.5])
SEARCHES = {
    "explicit": (ExplicitLengthBeamSearch, {}),
    "threshold": (ExplicitLengthBeamSearch, {"score_threshold": 2.0}),
    "early": (ExplicitLengthBeamSearch, {"stop_margin": 0.5, "stop_length": 1}),
    "repeats": (ExplicitLengthBeamSearch, {"repeat_limit": {"times": 1, "labels": 3}}),
    "simple": (SimpleBeamSearch, {}),
    "norm": (SimpleBeamSearch, {"length_norm": True, "eos_threshold": 1.5}),
    "separate": (SimpleBeamSearch, {"keep_ended": "separate"}),
    "patience": (SimpleBeamSearch, {"keep_ended": "separate", "patience": 1.5}),
    "rectified": (ExplicitLengthBeamSearch, {"label_smoothing": 0.1}),
}


def decode(scorer, beam, frames, search=ExplicitLengthBeamSearch, **options):
    search = build(
        search, {"decoder": scorer}, {"decoder": 1.0}, beam, scorer.vocab, **options
    )
    return search(encoder_output(1, frames))


def facts(hyps):
    return [
        (
            h.yseq.tolist(),
            pytest.approx(h.score, abs=1e-4),
            pytest.approx(h.original_score, abs=1e-4),
        )
        for h in hyps
    ]


def plain_facts(hyps):
    return [(h.yseq.tolist(), h.score, h.original_score) for h in hyps]


@given(seeds, st.integers(2, 4), st.integers(1, 4), end_biases)
def test_final_score_is_the_models_own_where_nothing_is_pruned(
    seed, vocab, limit, end_bias
):
    scorer = RandomScorer(seed, vocab, end_bias)
    hyps = decode(scorer, vocab**limit, limit, nbest=vocab**limit, exact_nbest=True)
    assert not any(h.forced for h in hyps)
    assert [h.score for h in hyps] == pytest.approx(
        [h.original_score for h in hyps], abs=1e-4
    )


@given(seeds, st.integers(2, 4), st.integers(1, 4))
def test_unlimited_search_finds_all_that_end_within_the_limit(seed, vocab, limit):
    scorer = RandomScorer(seed, vocab)
    hyps = decode(scorer, vocab**limit, limit, nbest=vocab**limit, exact_nbest=True)
    assert len(hyps) == sum((vocab - 1) ** n for n in range(limit))
    assert len({tuple(h.yseq.tolist()) for h in hyps}) == len(hyps)


@given(seeds, st.integers(2, 4), st.integers(1, 4), end_biases, st.integers(1, 20))
def test_no_beam_finds_better_than_the_unlimited_one(
    seed, vocab, limit, end_bias, beam
):
    # Beam search is not monotone from one beam to the next: only this much holds.
    scorer = RandomScorer(seed, vocab, end_bias)
    best = decode(scorer, vocab**limit, limit)[0].original_score
    simple = decode(scorer, vocab**limit, limit, SimpleBeamSearch)[0].original_score
    assert simple == pytest.approx(best, abs=1e-4)
    for search in [ExplicitLengthBeamSearch, SimpleBeamSearch]:
        smaller = [
            h.original_score
            for h in decode(scorer, beam, limit, search)
            if not h.forced
        ]
        assert max(smaller, default=-math.inf) <= best + 1e-4


@given(
    seeds,
    st.integers(2, 6),
    st.integers(1, 9),
    end_biases,
    st.integers(1, 12),
    st.sampled_from([None, 1.0, 4.0]),
)
def test_early_stop_never_changes_the_best(
    seed, vocab, limit, end_bias, beam, threshold
):
    scorer = RandomScorer(seed, vocab, end_bias)
    model = reference.Model({"decoder": scorer}, {"decoder": 1.0}, vocab, utterance=1)
    to_the_end = reference.explicit_length(
        model, limit, beam, score_threshold=threshold, nbest=1, early_stop=False
    )
    assume(to_the_end.gap > 1e-6)
    (best,) = decode(scorer, beam, limit, score_threshold=threshold, nbest=1)
    assert tuple(best.yseq.tolist()) == to_the_end.hyps[0].prefix
    assert best.score == pytest.approx(to_the_end.hyps[0].score, abs=1e-4)


@given(
    seeds,
    st.integers(2, 6),
    st.integers(1, 9),
    end_biases,
    st.integers(1, 12),
    st.integers(1, 6),
)
def test_exact_nbest_stops_without_changing_the_list(
    seed, vocab, limit, end_bias, beam, nbest
):
    scorer = RandomScorer(seed, vocab, end_bias)
    model = reference.Model({"decoder": scorer}, {"decoder": 1.0}, vocab, utterance=1)
    to_the_end = reference.explicit_length(
        model, limit, beam, nbest=nbest, early_stop=False
    )
    assume(to_the_end.gap > 1e-6)
    hyps = decode(scorer, beam, limit, nbest=nbest, exact_nbest=True)
    assert [tuple(h.yseq.tolist()) for h in hyps] == [h.prefix for h in to_the_end.hyps]
    assert [h.score for h in hyps] == pytest.approx(
        [h.score for h in to_the_end.hyps], abs=1e-4
    )


@given(seeds, st.integers(2, 6), st.integers(1, 9), end_biases, st.integers(1, 12))
def test_final_scores_are_log_probabilities_that_sum_to_one_at_most(
    seed, vocab, limit, end_bias, beam
):
    hyps = decode(RandomScorer(seed, vocab, end_bias), beam, limit)
    assert sum(math.exp(h.score) for h in hyps) <= 1 + 1e-5


@pytest.mark.parametrize("name", SEARCHES)
@given(st.data())
def test_batch_equals_its_utterances_one_by_one(name, data):
    draw = data.draw
    kind, options = SEARCHES[name]
    scorer_kind = draw(st.sampled_from([RandomScorer, PlainRandomScorer]))
    scorer = scorer_kind(draw(seeds), draw(st.integers(2, 6)), draw(end_biases))
    beam = draw(st.integers(1, 10))
    search = build(
        kind, {"decoder": scorer}, {"decoder": 1.0}, beam, scorer.vocab, **options
    )

    frames = draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    xs = [encoder_output(i, T) for i, T in enumerate(frames)]
    alone = [facts(search(x)) for x in xs]
    order = draw(st.permutations(range(len(xs))))
    x, lengths = padded(
        [xs[i] for i in order],
        draw(st.integers(1, 12)),
        draw(st.sampled_from([0.0, 3.0, -1e4, 1e30])),
    )
    together = search(x, x_lengths=lengths)
    assert [plain_facts(hyps) for hyps in together] == [alone[i] for i in order]


@given(seeds, st.integers(1, 6))
def test_search_repeats_itself(seed, beam):
    scorer = RandomScorer(seed, 5)
    search = build(
        ExplicitLengthBeamSearch, {"decoder": scorer}, {"decoder": 1.0}, beam, 5
    )
    x = encoder_output(3, 6)
    first = plain_facts(search(x))
    search(encoder_output(4, 3))
    assert plain_facts(search(x.clone())) == first
    assert plain_facts(search(x[None], x_lengths=torch.tensor([6]))[0]) == first
