"""From the device to the CPU: the one synchronisation of a position.

What a rule computes are a few numbers for each place of the beam. On a device each of
these operations would be a launch, which takes longer than the operation; so the rules
here fetch the candidates (:func:`on_cpu`) and decide on the CPU. A decision that was made
on the device is fetched as a whole. Either way there is one transfer.

Symbols are those of :mod:`espnet_lenbias.search.pruning`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from espnet_lenbias.scorers import Selection
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.search.pruning import Candidates
from espnet_lenbias.search.rules import Decision


class Fetched(NamedTuple):
    """What the CPU has to know of a decision."""

    parents: torch.Tensor  # (A, C)
    labels: torch.Tensor  # (A, C)
    ended: torch.Tensor  # (A, C) bool
    running: torch.Tensor  # (A, C) bool
    cannot_improve: list[bool]  # for each slot; see Decision
    has_result: list[bool]
    invalid: list[bool]  # a score of the slot is NaN or plus infinity
    given_up: list[bool]


def on_cpu(candidates: Candidates) -> Candidates:
    """Fetch candidates from the device, in one piece."""
    values = candidates.values
    if values.device.type == "cpu":
        return candidates
    # float64 holds the numbers of all rows and labels
    fetched = torch.cat([values.double(), *candidates[1:]], dim=1).cpu()
    best, parents, labels = fetched.chunk(3, dim=1)
    return Candidates(best.to(values.dtype), parents.long(), labels.long())


def fetch(decision: Decision) -> Fetched:
    """Fetch a decision, in one piece where it is on the device."""
    values = decision.candidates.values
    invalid = ~(values.amax(dim=1) < math.inf)  # NaN passes through amax
    flags = [decision.cannot_improve, decision.has_result, invalid]
    if decision.given_up is not None:
        flags.append(decision.given_up)
    running = decision.kept & ~decision.ended
    _, parents, labels = decision.candidates
    if values.device.type == "cpu":
        by_slot = [flag.tolist() for flag in flags]
        return _fetched(parents, labels, decision.ended, running, by_slot)
    by_candidate = [parents, labels, decision.ended, running]
    fetched = torch.cat([*by_candidate, torch.stack(flags, dim=1)], dim=1).cpu()
    n = values.size(1)
    parents, labels, ended, running = (
        fetched[:, i * n : (i + 1) * n] for i in range(4)
    )
    by_slot = fetched[:, 4 * n :].bool().T.tolist()
    return _fetched(parents, labels, ended.bool(), running.bool(), by_slot)


def _fetched(
    parents: torch.Tensor,
    labels: torch.Tensor,
    ended: torch.Tensor,
    running: torch.Tensor,
    flags: list[list[bool]],
) -> Fetched:
    """Return what was fetched; the last flag is not there where nothing is given up."""
    if len(flags) == 3:
        flags = [*flags, [False] * len(parents)]
    return Fetched(parents, labels, ended, running, *flags)


def select(
    fetched: Fetched, mask: torch.Tensor, utts: Sequence[int], device: torch.device
) -> tuple[Selection, torch.Tensor]:
    """Return the candidates under a mask, and where they are.

    Args:
        fetched: What the CPU knows of a decision.
        mask: (A, C) bool, on the CPU.
        utts: The utterance of each of the A slots.
        device: Where the hypotheses are.

    Returns:
        The m selected ones, and their (m,) indices into the flattened candidates, on the
        CPU.
    """
    counts = mask.sum(dim=1).tolist()
    held = [(utt, count) for utt, count in zip(utts, counts) if count]
    spans = make_spans([utt for utt, _ in held], [count for _, count in held])
    index = mask.flatten().nonzero().squeeze(1)
    on_host = [x.flatten()[index] for x in (fetched.parents, fetched.labels)]
    parents, labels = on_host
    if device.type != "cpu":
        parents, labels = torch.stack(on_host).to(device, non_blocking=True)
    return Selection(parents, on_host[0], labels, spans), index
