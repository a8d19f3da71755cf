"""Label smoothing taken out of a decoder's scores."""

import math

import pytest
import torch
from espnet2.asr.espnet_model import LabelSmoothingLoss
from hypothesis import given
from hypothesis import strategies as st

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.search.rectification import rectified
from tests import reference
from tests.tables import (
    END,
    SHORT,
    A,
    B,
    decode,
    explicit,
    near,
    outputs,
    scores,
)
from tests.toys import TableScorer, build, encoder_output, labels, logs


def smoothed(q: torch.Tensor, smoothing: float) -> torch.Tensor:
    """What training with label smoothing makes of (n, V) q: the mean of its targets."""
    others = smoothing / (q.size(1) - 1)
    return q * (1 - smoothing) + (1 - q) * others


def random_distributions(seed: int, n: int, n_labels: int) -> torch.Tensor:
    torch.manual_seed(seed)
    return torch.randn(n, n_labels).mul(3).softmax(dim=1)


def test_by_hand():
    # Three labels, .1: each has .05 from the smoothing. .55, .05, .25 are left, of .85.
    row = torch.tensor([logs(0.6, 0.1, 0.3)])
    assert rectified(row, 0.1)[0].tolist() == near(logs(11 / 17, 1 / 17, 5 / 17))


def test_what_smoothing_alone_explains_is_left_with_next_to_nothing():
    # .04 of three labels is below .05: .56 - .05, .40 - .05 of .86, and 1e-30 of .04.
    [row] = rectified(torch.tensor([logs(0.56, 0.4, 0.04)]), 0.1)
    expected = [*logs(0.51 / 0.86, 0.35 / 0.86), math.log(0.04e-30 / 0.86)]
    assert row.tolist() == pytest.approx(expected, rel=1e-5)


def test_the_smallest_smoothing_that_a_number_can_be_changes_nothing():
    row = torch.tensor([logs(0.6, 0.1, 0.3)])
    assert rectified(row, 5e-324)[0].tolist() == near(row[0].tolist())


@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from([0.05, 0.1, 0.3]))
def test_it_gives_back_what_was_smoothed(seed, n_labels, smoothing):
    q = random_distributions(seed, 4, n_labels).double()
    found = rectified(smoothed(q, smoothing).log(), smoothing)
    assert torch.allclose(found, q.log(), atol=1e-6)


@given(st.integers(0, 10**6), st.integers(2, 9), st.sampled_from([0.05, 0.4, 1.0]))
def test_it_is_that_of_the_reference_and_a_distribution(seed, n_labels, smoothing):
    p = random_distributions(seed, 4, n_labels).double()
    found = rectified(p.log(), smoothing)
    expected = [reference.rectified(row, smoothing) for row in p.log().tolist()]
    assert found.tolist() == [pytest.approx(row, abs=1e-6) for row in expected]
    assert found.exp().sum(dim=1).tolist() == pytest.approx([1.0] * 4)


def test_the_smoothed_distribution_is_the_optimum_of_espnet_s_loss():
    """Its gradient is 0 there, where targets are drawn from q."""
    q = random_distributions(1, 1, 6)
    loss = LabelSmoothingLoss(size=6, padding_idx=-1, smoothing=0.1)

    def gradient(distribution):
        logits = distribution.log().requires_grad_()
        of_targets = [loss(logits[None], torch.tensor([[v]])) for v in range(6)]
        (q[0] * torch.stack(of_targets)).sum().backward()
        return logits.grad.abs().max()

    assert gradient(smoothed(q, 0.1)) < 1e-6
    assert gradient(q) > 1e-2


def test_impossible_labels_stay_so_and_mistakes_stay_visible():
    inf = math.inf
    rows = torch.tensor(
        [[-inf, -inf, -inf], [0.0, -inf, -inf], [math.nan, -1, -1], [inf, -1, -1]]
    )
    none, one, nan, plus = rectified(rows, 0.1).tolist()
    assert none == [-inf] * 3
    assert one == [0.0, -inf, -inf]
    assert any(map(math.isnan, nan))
    assert any(map(math.isnan, plus))


def test_what_a_scorer_returns_is_left_alone():
    row = torch.tensor([logs(0.6, 0.1, 0.3)])
    before = row.clone()
    rectified(row, 0.1)
    assert torch.equal(row, before)


# In a search


def test_explicit_length():
    # Rectified: () a .55, b .05, $ .25; a: a .05, b .15, $ .65, all of .85.
    # N=1: p_end = final($) = .25 / .85 = .2941; not ended .7059.
    # N=2: a$ .3575, ab .0825, aa .0275, mass .4675 (of .7225); p_end = .7647;
    #      final(a$) = .7647 * .7059 = .5398; not ended .1661, stop.
    hyps, trace = explicit(SHORT, 3, label_smoothing=0.1)
    assert outputs(hyps) == [(A, END), (END,)]
    p_end = 0.3575 / 0.4675
    assert scores(hyps) == near(logs(p_end * 0.6 / 0.85, 0.25 / 0.85))
    q = logs(0.3575 / 0.7225, 0.25 / 0.85)
    assert [h.original_score for h in hyps] == near(q)
    assert [float(h.scores["decoder"]) for h in hyps] == near(q)
    assert list(trace.p_end) == near([0.25 / 0.85, p_end])


def test_simple_search_loses_the_bias_that_smoothing_made():
    # The data: seven times a certain label, then the end. Smoothing of .3 over 4 labels
    # leaves .7 and .1, so the text has .7 ** 8 = .058 and no text at all .1.
    table = [logs(0.7, 0.1, 0.1, 0.1)] * 7 + [logs(0.1, 0.1, 0.1, 0.7)]
    found = {}
    for smoothing in (0.0, 0.3):
        search = build(
            SimpleBeamSearch,
            {"decoder": TableScorer(table)},
            {"decoder": 1.0},
            8,
            vocab=4,
            label_smoothing=smoothing,
        )
        best = search(encoder_output(0, 12))[0]
        found[smoothing] = labels(best), best.score
    assert found[0.0] == ((3,), near(math.log(0.1)))
    assert found[0.3] == ((*[0] * 7, 3), near(0.0))


def test_only_the_decoder_is_corrected():
    scorers = {
        "decoder": TableScorer([logs(0.6, 0.1, 0.3)]),
        "lm": TableScorer([logs(0.6, 0.1, 0.3)]),
    }
    weights = {"decoder": 1.0, "lm": 0.5}
    search = build(
        ExplicitLengthBeamSearch, scorers, weights, 3, vocab=3, label_smoothing=0.1
    )
    hyps = search(encoder_output(0, 8))
    empty = next(h for h in hyps if labels(h) == (END,))
    found = {k: float(v) for k, v in empty.scores.items()}
    assert found == near({"decoder": math.log(5 / 17), "lm": math.log(0.3)})


@pytest.mark.parametrize("kind", [ExplicitLengthBeamSearch, SimpleBeamSearch])
def test_a_text_that_the_limit_cuts_still_ranks(kind):
    # The end has .01, less than smoothing gives: a and b end by force, and a is better.
    row = logs(0.6, 0.39, 0.01)
    table = {(): row, (A,): row, (B,): row}
    hyps, _ = decode(kind, table, 2, frames=1, label_smoothing=0.1)
    assert outputs(hyps) == [(A, END), (B, END)]
    assert all(h.forced and h.score > -math.inf for h in hyps)


def test_without_decoder_there_is_nothing_to_correct():
    scorers = {"lm": TableScorer([logs(0.6, 0.1, 0.3)])}
    search = build(
        SimpleBeamSearch, scorers, {"lm": 1.0}, 3, vocab=3, label_smoothing=0.1
    )
    with pytest.raises(ValueError, match="label_smoothing.* none among .*'lm'"):
        search(encoder_output(0, 8))
