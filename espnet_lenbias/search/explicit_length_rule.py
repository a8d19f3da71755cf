"""The proposed rule of ending: Algorithm 1 of the paper."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch

from espnet_lenbias.options.search_conf import ExplicitLengthOptions
from espnet_lenbias.search import early_stop, length_model
from espnet_lenbias.search.fetch import on_cpu
from espnet_lenbias.search.pruning import Grid, kept_ones
from espnet_lenbias.search.rules import Decision


class ExplicitLengthState(NamedTuple):
    """What has ended so far, as far as Algorithm 1 needs it."""

    log_not_ended: torch.Tensor  # (A,) sum of log(1 - p_end(n)) over n < N
    best: torch.Tensor  # (A, k) the best final scores, best first
    winner: early_stop.Winner  # followed only where an option may stop early


@dataclass(frozen=True)
class ExplicitLengthRule:
    """Final scores by eq. 4, and a stop as soon as no later hypothesis can win.

    Ended and running hypotheses are pruned together at the position where they end; after
    it the ended ones neither take places nor prune. An :class:`EndingRule`.
    """

    trace_columns: ClassVar = (
        "p_end",
        "log_not_ended",
        "kept",
        "running",
        "best_final",
    )
    coverage_options: ClassVar[None] = None

    options: ExplicitLengthOptions
    beam_size: int  # K
    eos: int  # the end label

    def start(self, n_utts: int, device: torch.device) -> ExplicitLengthState:
        """Start with nothing ended, on the CPU."""
        exact = self.options.exact_nbest
        k = self.options.nbest if exact and self.options.nbest else 1
        best = torch.full((n_utts, k), -math.inf, dtype=torch.float64)
        zeros, winner = torch.zeros_like(best[:, 0]), early_stop.no_winner(n_utts)
        return ExplicitLengthState(zeros, best, winner)

    def may_end(self, weighted: torch.Tensor) -> None:
        """Any hypothesis may end anywhere: there is nothing to tune."""
        return None

    def step(
        self,
        state: ExplicitLengthState,
        q: torch.Tensor,
        grid: Grid,
        length: int,
        coverage: torch.Tensor | None,
    ) -> tuple[ExplicitLengthState, Decision]:
        """See :meth:`EndingRule.step`."""
        candidates = on_cpu(grid.top(q, self.beam_size))
        kept = kept_ones(candidates, self.options.score_threshold)
        ended = kept & (candidates.labels == self.eos)

        q = candidates.values.double()
        mass = length_model.log_mass(q, kept)
        log_p_end = length_model.log_p_end(q, ended, mass)
        score = length_model.final_score(q, mass, state.log_not_ended)
        score = score.masked_fill(~ended, -math.inf)
        best = torch.cat([state.best, score], dim=1).topk(state.best.size(1), dim=1)
        after = ExplicitLengthState(
            state.log_not_ended + length_model.log1mexp(log_p_end),
            best.values,
            state.winner,
        )
        given_up = None
        if self.options.stops_early:
            winner = early_stop.follow(state.winner, state.best[:, 0], score, q, length)
            after = after._replace(winner=winner)
            running_q = q.masked_fill(~kept | ended, -math.inf).amax(dim=1)
            given_up = early_stop.gives_up(self.options, winner, running_q, length)

        n_kept, n_running = (
            mask.sum(dim=1, dtype=torch.float64) for mask in (kept, kept & ~ended)
        )
        best_final = after.best[:, 0]
        row = [log_p_end.exp(), state.log_not_ended, n_kept, n_running, best_final]
        return after, Decision(
            candidates,
            kept,
            ended,
            score,
            length_model.cannot_improve(after.log_not_ended, after.best[:, -1]),
            best_final > -math.inf,
            torch.stack(row, dim=1),
            given_up,
        )

    def select(
        self, state: ExplicitLengthState, slots: torch.Tensor
    ) -> ExplicitLengthState:
        """See :meth:`EndingRule.select`."""
        return ExplicitLengthState(
            state.log_not_ended[slots],
            state.best[slots],
            early_stop.Winner(*(values[slots] for values in state.winner)),
        )

    def in_contest(self, state: ExplicitLengthState, n_ended: int) -> torch.Tensor:
        """Every hypothesis that has ended can be returned."""
        return torch.ones(n_ended, dtype=torch.bool)
