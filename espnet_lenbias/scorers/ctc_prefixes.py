"""CTC prefix scores of many hypotheses in one call.

The score of a prefix is the log-prob that the frames say it and anything behind it
(Watanabe et al. 2017, "Hybrid CTC/Attention Architecture for End-to-End Speech
Recognition", Algorithm 2). It is summed over the frames at which its last label can
begin, from the forward variables of the prefix without that label::

    psi(g + c) = sum over t of phi(t - 1) p(c at t)

So a candidate costs one such sum, and only those that the search goes on with need
forward variables of their own. These follow recurrences over the frames that are linear,
``r(t) = p(t) (r(t - 1) + a(t - 1))``, and so is one cumulative sum each::

    r(t) = P(t) * sum over s < t of a(s) / P(s),   P(t) = p(1) ... p(t)

which float64 holds as logarithms. All of it is exact: ESPnet's `ctc_window_margin`, which
saves time by leaving frames out, is not needed. The prefixes are those of an utterance
(:class:`UtteranceProbs`), or of several in a grid (:class:`GridProbs`).
"""

from typing import NamedTuple, Protocol

import torch

BLANK = 0  # ESPnet's CTC label of no label

# Log-probs are not taken to be smaller: float64 holds no smaller probability.
SMALLEST = -700.0

# Scoring all labels by one matrix product is faster than picking those asked for if
# these are more than one in so many.
_PICK_BELOW = 24


class Probs(Protocol):
    """Probabilities of the labels at the frames, for n prefixes."""

    @property
    def n_labels(self) -> int:
        """V, the blank counted."""

    @property
    def blank(self) -> torch.Tensor:
        """Those of the blank, (T,) for all prefixes or (n, T)."""

    def of(self, labels: torch.Tensor) -> torch.Tensor:
        """Return those of labels of each prefix, (n,) or (n, S): (n, T) or (n, S, T)."""

    def summed(self, phi: torch.Tensor) -> torch.Tensor:
        """Return the sum over the frames of (n, T) times each label's: (n, V)."""

    def without_padding(self, phi: torch.Tensor) -> torch.Tensor:
        """Return (n, T) with zeros at frames that an utterance does not have."""

    def within_frames(self, label: torch.Tensor) -> torch.Tensor:
        """Return (n, T + 1) logs with -inf behind the frames that an utterance has."""


class UtteranceProbs(NamedTuple):
    """Probabilities for prefixes of one utterance, over its own frames."""

    probs: torch.Tensor  # (V, T) float64

    @property
    def n_labels(self) -> int:
        """See :class:`Probs`."""
        return len(self.probs)

    @property
    def blank(self) -> torch.Tensor:
        """See :class:`Probs`."""
        return self.probs[BLANK]

    def of(self, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Probs`."""
        return self.probs[labels]

    def summed(self, phi: torch.Tensor) -> torch.Tensor:
        """See :class:`Probs`."""
        return phi @ self.probs.T

    def without_padding(self, phi: torch.Tensor) -> torch.Tensor:
        """There is none."""
        return phi

    def within_frames(self, label: torch.Tensor) -> torch.Tensor:
        """There is nothing behind them."""
        return label


class GridProbs(NamedTuple):
    """Probabilities for prefixes in a grid of A utterances, padded to T frames.

    In the padding the blank is certain and no label can be. So what a prefix has after
    all T frames is what it has after those of its utterance.
    """

    probs: torch.Tensor  # (A, V, T) float64
    inside: torch.Tensor  # (A, T) float64, 1 for a frame and 0 for padding
    rows: torch.Tensor  # (A * W,) the utterance of each cell

    @property
    def n_labels(self) -> int:
        """See :class:`Probs`."""
        return self.probs.size(1)

    @property
    def blank(self) -> torch.Tensor:
        """See :class:`Probs`."""
        return self.probs[:, BLANK].index_select(0, self.rows)

    def of(self, labels: torch.Tensor) -> torch.Tensor:
        """See :class:`Probs`."""
        return self.probs[self.rows.view(-1, *[1] * (labels.dim() - 1)), labels]

    def summed(self, phi: torch.Tensor) -> torch.Tensor:
        """See :class:`Probs`."""
        phi = phi.view(len(self.probs), -1, phi.size(1))
        return (phi @ self.probs.transpose(1, 2)).flatten(0, 1)

    def without_padding(self, phi: torch.Tensor) -> torch.Tensor:
        """See :class:`Probs`."""
        by_row = phi.view(len(self.probs), -1, phi.size(1))
        return (by_row * self.inside.unsqueeze(1)).flatten(0, 1)

    def within_frames(self, label: torch.Tensor) -> torch.Tensor:
        """See :class:`Probs`."""
        by_row = label.view(len(self.probs), -1, label.size(1))
        behind = torch.nn.functional.pad(self.inside == 0, (1, 0))
        return by_row.masked_fill(behind.unsqueeze(1), -torch.inf).flatten(0, 1)


class Forward(NamedTuple):
    """Log-probs of n prefixes after 0 .. T frames, float64.

    Each is the log-prob that so many frames say the prefix exactly.
    """

    either: torch.Tensor  # (n, T + 1) the last of these frames is a label or blank
    blank: torch.Tensor  # (n, T + 1) it is blank
    last: torch.Tensor  # (n,) the last label of the prefix; -1 where it is empty


def empty_prefixes(probs: Probs, n: int) -> Forward:
    """Return the forward variables of n prefixes without a label.

    Args:
        probs: Of the labels at the frames.
        n: How many.
    """
    blank = _products(probs.blank).expand(n, -1)
    last = torch.full((n,), -1, device=blank.device)
    return Forward(blank, blank, last)


def extended_prefixes(forward: Forward, probs: Probs, labels: torch.Tensor) -> Forward:
    """Return the forward variables of n prefixes with one more label each.

    Args:
        forward: Of the prefixes.
        probs: Of the labels at the frames.
        labels: (n,) what each is extended by.
    """
    repeats = (labels == forward.last).unsqueeze(1)
    # the same label twice needs a blank between
    before = torch.where(repeats, forward.blank, forward.either)
    label = probs.within_frames(_recurrence(before, probs.of(labels)))
    blank = _recurrence(label, probs.blank)
    return Forward(torch.logaddexp(label, blank), blank, labels)


def prefix_scores(
    forward: Forward, probs: Probs, part_ids: torch.Tensor | None
) -> torch.Tensor:
    """Return log psi of prefixes with one more label, (n, V); -inf where not asked for.

    Args:
        forward: Of the n prefixes.
        probs: Of the labels at the frames.
        part_ids: (n, S) the labels; None: all.
    """
    phi, largest = _scaled(forward.either[:, :-1])
    phi, n_labels = probs.without_padding(phi), probs.n_labels
    labels = torch.arange(n_labels, device=phi.device) if part_ids is None else part_ids
    if _PICK_BELOW * labels.size(-1) > n_labels:
        sums = probs.summed(phi)
        sums = sums if part_ids is None else sums.gather(1, part_ids)
    else:
        sums = (probs.of(labels) @ phi.unsqueeze(2)).squeeze(2)
    psi = sums.log() + largest
    # the same label twice needs a blank between
    phi, largest = _scaled(forward.blank[:, :-1])
    phi = probs.without_padding(phi)
    repeated = (phi * probs.of(forward.last)).sum(dim=1, keepdim=True).log() + largest
    psi = torch.where(labels == forward.last.unsqueeze(1), repeated, psi)
    if part_ids is None:
        return psi
    every = psi.new_full((len(psi), n_labels), -torch.inf)
    return every.scatter_(1, part_ids, psi)


def _scaled(logs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (n, T) logarithms as numbers of 1 at most in a row, and their log scale."""
    largest = logs.amax(dim=1, keepdim=True).clamp(min=torch.finfo(logs.dtype).min)
    logs = logs - largest
    # what exp would make 0 of, slowly, is made 0 of by the mask
    return logs.clamp(min=SMALLEST).exp() * (logs > SMALLEST), largest


def _products(probs: torch.Tensor) -> torch.Tensor:
    """Return the logs of the products of the first 0 .. T of them, (..., T + 1)."""
    return torch.nn.functional.pad(probs.log().cumsum(dim=-1), (1, 0))


def _recurrence(entering: torch.Tensor, probs: torch.Tensor) -> torch.Tensor:
    """Return log r: r(0) = 0, r(t) = p(t) (r(t - 1) + a(t - 1)) for t = 1 .. T.

    Args:
        entering: (n, T + 1) log a.
        probs: (n, T) or (T,) p.
    """
    products = _products(probs)
    sums = (entering - products)[:, :-1].logcumsumexp(dim=1)
    return torch.nn.functional.pad(sums + products[..., 1:], (1, 0), value=-torch.inf)
