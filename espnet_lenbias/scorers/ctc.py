"""CTC prefix scores of all hypotheses of an utterance in one call.

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
saves time by leaving frames out, is not needed. Each utterance has its own frames, so
padding plays no part, and utterances may hold different numbers of hypotheses.
"""

from typing import NamedTuple

import torch

from espnet_lenbias.espnet_compat import CTCPrefixScorer
from espnet_lenbias.scorers.base import EncoderOutput, Prefixes, Scores, Selection

_BLANK = 0  # ESPnet's CTC label of no label

# Log-probs are not taken to be smaller: float64 holds no smaller probability.
_SMALLEST = -700.0

# Scoring all labels by one matrix product is faster than picking those asked for if
# these are more than one in so many.
_PICK_BELOW = 24


class Forward(NamedTuple):
    """Log-probs of n prefixes of one utterance after 0 .. T frames, float64.

    Each is the log-prob that so many frames say the prefix exactly.
    """

    either: torch.Tensor  # (n, T + 1) the last of these frames is a label or blank
    blank: torch.Tensor  # (n, T + 1) it is blank
    last: torch.Tensor  # (n,) the last label of the prefix; -1 where it is empty


class UtteranceState(NamedTuple):
    """The n hypotheses of one utterance."""

    start: int  # the first one among those of all utterances
    forward: Forward
    psi: torch.Tensor  # prefix scores: (n, 1) of themselves or, when scored, (n, V)


class CTCPrefixState(NamedTuple):
    """The CTC state of all hypotheses, utterance by utterance."""

    probs: list[torch.Tensor]  # (V, T) of each utterance, float64
    by_utt: dict[int, UtteranceState]


class CTCPrefix:
    """Adapter of ESPnet's `CTCPrefixScorer`."""

    def __init__(self, scorer: CTCPrefixScorer):
        self.scorer = scorer

    def start(self, encoder_output: EncoderOutput) -> CTCPrefixState:
        """Run the CTC output layer over each utterance."""
        log_probs = [
            self.scorer.ctc.log_softmax(encoder_output.first_frames(b).unsqueeze(0))[0]
            for b in range(len(encoder_output))
        ]
        probs = [
            x.T.double().contiguous().clamp(min=_SMALLEST).exp() for x in log_probs
        ]
        by_utt = {
            b: UtteranceState(b, empty_prefixes(p, 1), p.new_zeros(1, 1))
            for b, p in enumerate(probs)
        }
        return CTCPrefixState(probs, by_utt)

    def step(
        self,
        state: CTCPrefixState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score the labels asked for, and the end label, after each prefix."""
        parts, by_utt = [], {}
        for span in prefixes.spans:
            probs, (_, forward, psi) = state.probs[span.utt], state.by_utt[span.utt]
            labels = None if part_ids is None else part_ids[span.rows]
            extended = prefix_scores(forward, probs, labels)
            extended[:, _BLANK] = -torch.inf
            extended[:, self.scorer.eos] = forward.either[:, -1]
            # behind a prefix that is impossible everything is: -inf, not NaN
            parts.append(extended - psi.clamp(min=torch.finfo(psi.dtype).min))
            by_utt[span.utt] = UtteranceState(span.start, forward, extended)
        return Scores(torch.cat(parts).float(), CTCPrefixState(state.probs, by_utt))

    def select(self, state: CTCPrefixState, selection: Selection) -> CTCPrefixState:
        """Return the state of the chosen extensions."""
        by_utt = {}
        for span in selection.spans:
            start, forward, psi = state.by_utt[span.utt]
            hyps = selection.parents[span.rows] - start
            labels = selection.labels[span.rows]
            forward = Forward(*(values[hyps] for values in forward))
            by_utt[span.utt] = UtteranceState(
                span.start,
                extended_prefixes(forward, state.probs[span.utt], labels),
                psi[hyps, labels].unsqueeze(1),
            )
        return CTCPrefixState(state.probs, by_utt)

    def final(self, state: CTCPrefixState) -> None:
        """CTC adds nothing when a hypothesis ends."""
        return None


def empty_prefixes(probs: torch.Tensor, n: int) -> Forward:
    """Return the forward variables of n prefixes without a label.

    Args:
        probs: (V, T) of the labels at the frames of the utterance.
        n: How many.
    """
    blank = _products(probs[_BLANK]).expand(n, -1)
    last = torch.full((n,), -1, device=probs.device)
    return Forward(blank, blank, last)


def extended_prefixes(
    forward: Forward, probs: torch.Tensor, labels: torch.Tensor
) -> Forward:
    """Return the forward variables of n prefixes with one more label each.

    Args:
        forward: Of the prefixes.
        probs: (V, T) of the labels at the frames of the utterance.
        labels: (n,) what each is extended by.
    """
    repeats = (labels == forward.last).unsqueeze(1)
    # the same label twice needs a blank between
    before = torch.where(repeats, forward.blank, forward.either)
    label = _recurrence(before, probs[labels])
    blank = _recurrence(label, probs[_BLANK])
    return Forward(torch.logaddexp(label, blank), blank, labels)


def prefix_scores(
    forward: Forward, probs: torch.Tensor, part_ids: torch.Tensor | None
) -> torch.Tensor:
    """Return log psi of prefixes with one more label, (n, V); -inf where not asked for.

    Args:
        forward: Of the n prefixes.
        probs: (V, T) of the labels at the frames of the utterance.
        part_ids: (n, S) the labels; None: all.
    """
    phi, largest = _scaled(forward.either[:, :-1])
    labels = (
        torch.arange(len(probs), device=phi.device) if part_ids is None else part_ids
    )
    if _PICK_BELOW * labels.size(-1) > len(probs):
        sums = phi @ probs.T
        sums = sums if part_ids is None else sums.gather(1, part_ids)
    else:
        sums = (probs[part_ids] @ phi.unsqueeze(2)).squeeze(2)
    psi = sums.log() + largest
    # the same label twice needs a blank between
    phi, largest = _scaled(forward.blank[:, :-1])
    repeated = (phi * probs[forward.last]).sum(dim=1, keepdim=True).log() + largest
    psi = torch.where(labels == forward.last.unsqueeze(1), repeated, psi)
    if part_ids is None:
        return psi
    every = psi.new_full((len(psi), len(probs)), -torch.inf)
    return every.scatter_(1, part_ids, psi)


def _scaled(logs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (n, T) logarithms as numbers of 1 at most in a row, and their log scale."""
    largest = logs.amax(dim=1, keepdim=True).clamp(min=torch.finfo(logs.dtype).min)
    logs = logs - largest
    # what exp would make 0 of, slowly, is made 0 of by the mask
    return logs.clamp(min=_SMALLEST).exp() * (logs > _SMALLEST), largest


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
