"""The rule of simple beam search, with the heuristics that the paper compares with."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch

from espnet_lenbias.options.search_conf import Coverage, SimpleOptions
from espnet_lenbias.search import heuristics
from espnet_lenbias.search.fetch import on_cpu
from espnet_lenbias.search.pruning import Candidates, Grid
from espnet_lenbias.search.rules import Decision


class SimpleState(NamedTuple):
    """The ended hypotheses in the P places of each slot: K, or `patience` times K."""

    rank: torch.Tensor  # (A, P) their ranking scores, -inf where a place is free
    number: torch.Tensor  # (A, P) which of all ended ones each is, -1 where it is free
    n_ended: torch.Tensor  # () how many have ended in all slots together
    finished: tuple[torch.Tensor, ...]  # the numbers in slots that have finished


@dataclass(frozen=True)
class SimpleRule:
    """Ended hypotheses stay in the beam, their score frozen. An :class:`EndingRule`."""

    trace_columns: ClassVar = ("kept", "running", "best_final", "best_running")

    options: SimpleOptions
    beam_size: int  # K
    eos: int  # the end label

    @property
    def coverage_options(self) -> Coverage | None:
        """See :meth:`EndingRule.coverage_options`."""
        return self.options.coverage

    @property
    def n_places(self) -> int:
        """How many ended hypotheses are held at most: P."""
        if self.options.patience is None:
            return self.beam_size
        return max(1, round(self.options.patience * self.beam_size))

    def start(self, n_utts: int, device: torch.device) -> SimpleState:
        """Start with no ended hypothesis in any of the P places, on the CPU."""
        shape = (n_utts, self.n_places)
        return SimpleState(
            torch.full(shape, -math.inf, dtype=torch.float64),
            torch.full(shape, -1),
            torch.zeros((), dtype=torch.long),
            (),
        )

    def may_end(self, weighted: torch.Tensor) -> torch.Tensor | None:
        """Tell which hypotheses `eos_threshold` lets end."""
        threshold = self.options.eos_threshold
        if threshold is None:
            return None
        return heuristics.may_end(weighted, self.eos, threshold)

    def step(
        self,
        state: SimpleState,
        q: torch.Tensor,
        grid: Grid,
        length: int,
        coverage: torch.Tensor | None,
    ) -> tuple[SimpleState, Decision]:
        """Rank the extensions with the ended ones and share the places out."""
        o = self.options
        joint, patient = o.keep_ended == "joint", o.patience is not None
        rank = heuristics.rank(q, length, o.length_exponent, o.length_reward)
        if coverage is not None:
            rank = rank + coverage.unsqueeze(1)
        candidates = on_cpu(
            grid.top(rank, self.beam_size) if joint else self._apart(rank, grid)
        )
        values = candidates.values.double()
        possible = values > -math.inf
        ends = possible & (candidates.labels == self.eos)

        # the places that ended hypotheses may take: all K against the running ones too
        # ("joint"), or P of their own
        rivals = values if joint else values.masked_fill(~ends, -math.inf)
        if patient:
            late = values <= _worst_running(values, possible & ~ends, self.beam_size)
            rivals = rivals.masked_fill(late, -math.inf)
        contest = torch.cat([state.rank, rivals], dim=1)
        order = contest
        if patient:  # first come, first served: what has a place keeps it
            order = contest.clone()
            order[:, : self.n_places].masked_fill_(state.number >= 0, math.inf)
        places = order.topk(self.n_places, dim=1).indices
        winners = contest.gather(1, places)
        won = torch.zeros_like(contest, dtype=torch.bool)
        won = won.scatter(1, places, winners > -math.inf)
        won = won[:, self.n_places :]
        kept = won if joint else won | (possible & ~ends)
        ended = kept & ends

        after = _with_winners(state, ended, winners, places)
        running = kept & ~ended
        n_running = running.sum(dim=1)
        held = after.number >= 0
        best_running = values.masked_fill(~running, -math.inf).amax(dim=1)
        n_kept = n_running + held.sum(dim=1)
        row = [n_kept, n_running, after.rank.amax(dim=1), best_running]
        return after, Decision(
            candidates,
            kept,
            ended,
            values,
            torch.zeros_like(n_running, dtype=torch.bool),
            held.any(dim=1),
            torch.stack([values.double() for values in row], dim=1),
            held.all(dim=1) if patient else None,
        )

    def _apart(self, rank: torch.Tensor, grid: Grid) -> Candidates:
        """Return the K best that run on and, behind them, the K best that end."""
        running = rank.clone()
        running[:, self.eos] = -math.inf
        best = grid.top(running, self.beam_size)
        ending = grid.top(rank[:, self.eos].unsqueeze(1), self.beam_size)
        ending = ending._replace(labels=torch.full_like(ending.labels, self.eos))
        return Candidates(*(torch.cat(pair, dim=1) for pair in zip(best, ending)))

    def select(self, state: SimpleState, slots: torch.Tensor) -> SimpleState:
        """See :meth:`EndingRule.select`."""
        leaving = torch.ones(len(state.number), dtype=torch.bool)
        leaving[slots] = False
        finished = state.number.masked_fill(~leaving.unsqueeze(1), -1).flatten()
        return SimpleState(
            state.rank[slots],
            state.number[slots],
            state.n_ended,
            (*state.finished, finished),
        )

    def in_contest(self, state: SimpleState, n_ended: int) -> torch.Tensor:
        """Tell which of all that have ended are still in a beam."""
        numbers = torch.cat([*state.finished, state.number.flatten()])
        mask = torch.zeros(n_ended, dtype=torch.bool)
        mask[numbers[numbers >= 0]] = True
        return mask


def _worst_running(
    values: torch.Tensor, running: torch.Tensor, beam_size: int
) -> torch.Tensor:
    """Return the rank of the K-th best that runs on; -inf where there are fewer.

    Args:
        values: (A, C) ranks of the candidates.
        running: (A, C) bool, which of them run on: K at most.
        beam_size: K.

    Returns:
        (A, 1).
    """
    worst = values.masked_fill(~running, math.inf).amin(dim=1, keepdim=True)
    few = running.sum(dim=1, keepdim=True) < beam_size
    return worst.masked_fill(few, -math.inf)


def _with_winners(
    state: SimpleState, ended: torch.Tensor, rank: torch.Tensor, place: torch.Tensor
) -> SimpleState:
    """Return the state after the places were shared out.

    Args:
        state: Before.
        ended: (A, C) bool, the candidates that have ended and won a place.
        rank: (A, P) what the winners rank by.
        place: (A, P) where each lies: among the P places, then the C candidates.
    """
    order = ended.flatten().cumsum(0).view_as(ended) - 1 + state.n_ended
    number = torch.cat([state.number, order.masked_fill(~ended, -1)], dim=1)
    number = number.gather(1, place).masked_fill(rank == -math.inf, -1)
    return SimpleState(
        rank.masked_fill(number < 0, -math.inf),
        number,
        state.n_ended + ended.sum(),
        state.finished,
    )
