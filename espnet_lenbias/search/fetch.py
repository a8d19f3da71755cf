"""From the device to the CPU: the one synchronisation of a position.

Symbols are those of :mod:`espnet_lenbias.search.pruning`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from espnet_lenbias.scorers import Selection
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.search.rules import Decision


class Fetched(NamedTuple):
    """What the CPU has to know of a decision."""

    parents: torch.Tensor  # (A, C)
    ended: torch.Tensor  # (A, C) bool
    running: torch.Tensor  # (A, C) bool
    cannot_improve: list[bool]  # for each slot; see Decision
    has_result: list[bool]
    invalid: list[bool]  # a score of the slot is NaN or plus infinity


def fetch(decision: Decision) -> Fetched:
    """Fetch a decision from the device, in one piece."""
    values = decision.candidates.values
    invalid = ~(values.amax(dim=1) < math.inf)  # NaN passes through amax
    flags = [decision.cannot_improve, decision.has_result, invalid]
    running = decision.kept & ~decision.ended
    by_candidate = [decision.candidates.parents, decision.ended, running]
    fetched = torch.cat([*by_candidate, torch.stack(flags, dim=1)], dim=1).cpu()
    n = values.size(1)
    parents, ended, running = (fetched[:, i * n : (i + 1) * n] for i in range(3))
    cannot_improve, has_result, invalid_slots = fetched[:, 3 * n :].bool().T.tolist()
    return Fetched(
        parents,
        ended.bool(),
        running.bool(),
        cannot_improve,
        has_result,
        invalid_slots,
    )


def select(
    decision: Decision, fetched: Fetched, mask: torch.Tensor, utts: Sequence[int]
) -> tuple[Selection, torch.Tensor]:
    """Return the candidates under a mask, and where they are.

    Args:
        decision: On the device.
        fetched: What the CPU knows of it.
        mask: (A, C) bool, on the CPU.
        utts: The utterance of each of the A slots.

    Returns:
        The m selected ones, and their (m,) indices into the flattened candidates.
    """
    counts = mask.sum(dim=1).tolist()
    held = [(utt, count) for utt, count in zip(utts, counts) if count]
    spans = make_spans([utt for utt, _ in held], [count for _, count in held])
    index = mask.flatten().nonzero().squeeze(1)
    parents_on_cpu = fetched.parents.flatten()[index]
    index = index.to(decision.candidates.labels.device, non_blocking=True)
    parents = decision.candidates.parents.flatten()[index]
    labels = decision.candidates.labels.flatten()[index]
    return Selection(parents, parents_on_cpu, labels, spans), index
