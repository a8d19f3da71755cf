"""Pruning: which one-label extensions of the running hypotheses are kept.

========  =====================================================================
A         utterances still being decoded, each with a slot 0 .. A-1
n         running hypotheses of all slots, flat and slot after slot (ragged)
V         vocabulary size, the end label included
K         beam size
C         candidates of each slot
========  =====================================================================
"""

import math
from functools import cached_property
from typing import NamedTuple

import torch

from espnet_lenbias.scorers.base import Span
from espnet_lenbias.scorers.cells import prefers_grid

# from how many values on a CPU has another way of finding the k best of them, by the best
# ones of so many times k parts
_MANY, _PARTS = 2**16, 8


class Candidates(NamedTuple):
    """The best one-label extensions of each slot, best first; -inf fills what is short."""

    values: torch.Tensor  # (A, C)
    parents: torch.Tensor  # (A, C) rows on the flat axis n
    labels: torch.Tensor  # (A, C)


class Grid:
    """The flat axis n seen as A slots of equal width, for what is decided by slot."""

    def __init__(self, spans: list[Span], device: torch.device):
        """Lay out the grid; everything is computed on the CPU, nothing waits."""
        self.n_slots = len(spans)
        self.width = max(s.stop - s.start for s in spans)  # most hypotheses of a slot
        self._spans = spans
        self._device = device

    @cached_property
    def _counts(self) -> torch.Tensor:
        """How many hypotheses each slot has, (A,)."""
        return torch.tensor([s.stop - s.start for s in self._spans])

    @cached_property
    def _first(self) -> torch.Tensor:
        """The first hypothesis of each slot, (A,)."""
        return torch.tensor([s.start for s in self._spans])

    @cached_property
    def _slot(self) -> torch.Tensor:
        """The slot of each hypothesis, (n,), on the CPU."""
        return torch.repeat_interleave(torch.arange(self.n_slots), self._counts)

    @cached_property
    def _place(self) -> torch.Tensor:
        """Where each hypothesis lies in the grid, (n,), on the CPU."""
        shift = torch.arange(self.n_slots) * self.width - self._first
        shift = torch.repeat_interleave(shift, self._counts)
        return shift + torch.arange(len(shift))

    @cached_property
    def _at_place(self) -> torch.Tensor:
        """The hypothesis at each place of the grid, any at a spare one."""
        places = self._first.unsqueeze(1) + torch.arange(self.width)
        places = places.clamp(max=len(self._slot) - 1).flatten()
        return places.to(self._device, non_blocking=True)

    @cached_property
    def _spare(self) -> torch.Tensor:
        """Which places of the grid have no hypothesis, (A * width, 1)."""
        spare = torch.arange(self.width) >= self._counts.unsqueeze(1)
        return spare.view(-1, 1).to(self._device, non_blocking=True)

    def spread(self, by_slot: list[bool]) -> torch.Tensor | None:
        """Give each hypothesis what holds of its slot: A values to (n,); None: of none."""
        return self.repeat(by_slot) if any(by_slot) else None

    def repeat(self, by_slot: list[bool] | list[int]) -> torch.Tensor:
        """Give each hypothesis the value of its slot: A values to (n,)."""
        if self.n_slots == 1:
            return torch.full((self.width,), by_slot[0], device=self._device)
        values = torch.tensor(by_slot)[self._slot]
        return values.to(self._device, non_blocking=True)

    def top(self, values: torch.Tensor, k: int) -> Candidates:
        """Return the k best extensions of each slot.

        Args:
            values: (n, V), -inf for what must not be chosen; NaN counts as the largest.
            k: How many at most.
        """
        if prefers_grid(self._device):
            return self._top_at_once(values, k)
        return self._top_in_two_levels(values, k)

    def _top_at_once(self, values: torch.Tensor, k: int) -> Candidates:
        """Choose among all extensions of a slot, in few operations."""
        n, n_labels = values.shape
        full = n == self.n_slots * self.width
        if not full:
            values = values[self._at_place].masked_fill(self._spare, -math.inf)
        values = values.reshape(self.n_slots, -1)
        values, index = values.topk(min(k, values.size(1)), dim=1)
        first = self._first.to(self._device, non_blocking=True).unsqueeze(1)
        parents = first + torch.div(index, n_labels, rounding_mode="floor")
        # whatever the parent of a spare place is clamped to, it is never kept
        parents = parents if full else parents.clamp(max=n - 1)
        return Candidates(values, parents, index % n_labels)

    def _top_in_two_levels(self, values: torch.Tensor, k: int) -> Candidates:
        """Choose among the k best of each hypothesis: less has to be laid out."""
        n, n_labels = values.shape
        if self.n_slots == 1:
            best, index = _top(values, min(k, values.numel()))
            parents = torch.div(index, n_labels, rounding_mode="floor")
            return Candidates(best[None], parents[None], (index % n_labels)[None])
        width = min(k, n_labels)
        values, labels = values.topk(width, dim=1, sorted=False)
        grid = values.new_full((self.n_slots * self.width, width), -math.inf)
        grid[self._place] = values
        grid = grid.reshape(self.n_slots, -1)
        values, index = grid.topk(min(k, grid.size(1)), dim=1)
        # a slot with fewer hypotheses than the widest has rows of -inf behind its own:
        # whatever their parent is clamped to, they are never kept
        parents = self._first.unsqueeze(1) + torch.div(
            index, width, rounding_mode="floor"
        )
        parents = parents.clamp(max=n - 1)
        return Candidates(values, parents, labels[parents, index % width])


def prune(
    q: torch.Tensor, grid: Grid, beam_size: int, score_threshold: float | None = None
) -> tuple[Candidates, torch.Tensor]:
    """Prune the extensions of a position: by the score threshold, then by the beam size.

    Hypotheses of one length are comparable by q (eq. 1), so nothing else is looked at, and
    ended ones play no part. The best of a slot are taken first and the threshold is
    applied to these: the outcome is the same, and only K of the n V are compared.

    Args:
        q: (n, V) scores of all extensions, -inf for what must not be chosen.
        grid: Which rows belong to which slot.
        beam_size: K, how many of a slot are kept at most.
        score_threshold: How far below the best of its slot an extension may be; None: as
            far as it likes.

    Returns:
        The K best of each slot, and (A, C) bool: which of them are kept.
    """
    candidates = grid.top(q, beam_size)
    return candidates, kept_ones(candidates, score_threshold)


def kept_ones(candidates: Candidates, score_threshold: float | None) -> torch.Tensor:
    """Return which of the K best of each slot are kept: (A, K) bool.

    Args:
        candidates: The K best.
        score_threshold: See :func:`prune`.
    """
    kept = candidates.values > -math.inf
    if score_threshold is not None:
        kept &= candidates.values >= candidates.values[:, :1] - score_threshold
    return kept


def _top(values: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k best of all (n, V) and their places on the flat axis, best first.

    On a CPU, whose top-k of many is slow, only those are looked at that are no worse than
    the k-th best of the best ones of parts of the axis. NaN counts as the largest.
    """
    flat = values.flatten()
    size = len(flat) // (_PARTS * k)
    if flat.device.type != "cpu" or len(flat) < _MANY or size < 2:
        return flat.topk(k)
    best_of_parts = flat[: _PARTS * k * size].view(-1, size).amax(dim=1)
    at_least = best_of_parts.topk(k).values[-1]
    index = (~(flat < at_least)).nonzero().squeeze(1)
    best = flat[index].topk(k)
    return best.values, index[best.indices]
