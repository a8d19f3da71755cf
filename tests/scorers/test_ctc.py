"""CTC prefix scores, worked out from all the paths of a few frames, or in closed form."""

import itertools
import math

import pytest
import torch

from espnet_lenbias.scorers import ctc_prefixes
from espnet_lenbias.scorers.ctc_prefixes import (
    Forward,
    UtteranceProbs,
    empty_prefixes,
    extended_prefixes,
    prefix_scores,
)

V, T = 4, 6
PREFIXES = [(), (1,), (1, 1), (2, 1), (1, 2, 1), (2, 2, 2), (3, 2, 2, 1)]


@pytest.fixture(scope="module")
def probs():
    """(V, T) of labels at frames, some of them small."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(V, T, generator=generator, dtype=torch.float64)
    return logits.softmax(dim=0)


@pytest.fixture(scope="module")
def paths(probs) -> list[list[tuple[tuple[int, ...], tuple[int, ...], float]]]:
    """All paths over the first 0 to T frames, what they say, their probabilities."""

    def of_length(n_frames: int):
        for path in itertools.product(range(V), repeat=n_frames):
            said = tuple(label for label, _ in itertools.groupby(path) if label)
            yield path, said, math.prod(values[c][t] for t, c in enumerate(path))

    values = probs.tolist()
    return [list(of_length(n_frames)) for n_frames in range(T + 1)]


def forward_of(probs: torch.Tensor, prefix: tuple[int, ...]) -> Forward:
    forward = empty_prefixes(UtteranceProbs(probs), 1)
    for label in prefix:
        forward = extended_prefixes(
            forward, UtteranceProbs(probs), torch.tensor([label])
        )
    return forward


@pytest.mark.parametrize("prefix", PREFIXES)
def test_forward_variables_sum_the_paths_that_say_the_prefix(probs, paths, prefix):
    forward = forward_of(probs, prefix)
    for n_frames in range(T + 1):
        exactly = [(p, m) for p, said, m in paths[n_frames] if said == prefix]
        blank = sum(mass for path, mass in exactly if path == () or path[-1] == 0)
        label = sum(mass for path, mass in exactly if path != () and path[-1] != 0)
        assert forward.blank[0, n_frames].exp().item() == pytest.approx(blank, rel=1e-9)
        either = forward.either[0, n_frames].exp().item()
        assert either == pytest.approx(blank + label, rel=1e-9)


@pytest.mark.parametrize("pick_below", [0, 100], ids=["picked", "all at once"])
@pytest.mark.parametrize("wanted", [None, [[3, 1]]], ids=["every label", "some"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_scores_sum_the_paths_that_begin_with_the_prefix(
    probs, paths, prefix, wanted, pick_below, monkeypatch
):
    monkeypatch.setattr(ctc_prefixes, "_PICK_BELOW", pick_below)
    labels = None if wanted is None else torch.tensor(wanted)
    psi = prefix_scores(forward_of(probs, prefix), UtteranceProbs(probs), labels)
    assert psi.shape == (1, V)
    for label in range(1, V):
        longer = (*prefix, label)
        begins = [m for _, said, m in paths[T] if said[: len(longer)] == longer]
        if wanted is not None and label not in wanted[0]:
            begins = []
        assert psi[0, label].exp().item() == pytest.approx(sum(begins), rel=1e-9)


def test_hypotheses_do_not_mix(probs):
    together = empty_prefixes(UtteranceProbs(probs), 2)
    for labels in [(1, 2), (1, 1), (3, 1)]:
        together = extended_prefixes(
            together, UtteranceProbs(probs), torch.tensor(labels)
        )
    alone = [forward_of(probs, (1, 1, 3)), forward_of(probs, (2, 1, 1))]
    for value, *parts in zip(together, *alone):
        torch.testing.assert_close(value, torch.cat(parts))
    wanted = torch.tensor([[1, 2], [3, 1]])
    psi = [
        prefix_scores(f, UtteranceProbs(probs), w[None]) for f, w in zip(alone, wanted)
    ]
    torch.testing.assert_close(
        prefix_scores(together, UtteranceProbs(probs), wanted), torch.cat(psi)
    )


def test_probabilities_that_no_float_holds():
    """N labels have C(T + N, 2N) paths over T frames, if no two neighbours are the same:
    each path has N spans of labels, with blanks or none around them."""
    vocab, n_frames = 500, 3000
    probs = torch.full((vocab, n_frames), 1 / vocab, dtype=torch.float64)
    forward = forward_of(probs, tuple(range(1, 41)))
    for t in (40, 41, 100, 3000):
        log_paths = math.lgamma(t + 41) - math.lgamma(81) - math.lgamma(t - 39)
        expected = log_paths - t * math.log(vocab)
        assert forward.either[0, t].item() == pytest.approx(expected, abs=1e-6)
    assert forward.either[0, 39] == -torch.inf


def test_labels_that_are_next_to_impossible():
    """The path over two frames that says 1 2 has a log-prob of -1200."""
    log_probs = torch.tensor([[-300.0, -300.0], [-600.0, 0.0], [0.0, -600.0]])
    probs = log_probs.double().exp()
    forward = forward_of(probs, (1, 2))
    assert forward.either[0].tolist() == [-math.inf, -math.inf, -1200.0]
    psi = prefix_scores(forward_of(probs, (1,)), UtteranceProbs(probs), None)
    assert psi[0, 2].item() == pytest.approx(-1200.0)
