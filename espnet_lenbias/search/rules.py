"""What becomes of hypotheses that end: the two rules that the searches differ in.

A rule sees all one-label extensions of the running hypotheses at position N and says
which are kept, which of them have ended with what ranking score, and which utterances
need no further position. Shapes use the symbols of :mod:`espnet_lenbias.search.beam`.
"""

import math
from typing import NamedTuple

import torch

from espnet_lenbias.options.search_conf import (
    Coverage,
    ExplicitLengthOptions,
    SimpleOptions,
)
from espnet_lenbias.search import heuristics, length_model
from espnet_lenbias.search.pruning import Candidates, Grid


class Verdict(NamedTuple):
    """What a rule says of the candidates of one position."""

    candidates: Candidates  # (A, C)
    kept: torch.Tensor  # (A, C) bool
    ended: torch.Tensor  # (A, C) bool, of the kept ones
    score: torch.Tensor  # (A, C) float64 ranking score of the ended ones
    bound: torch.Tensor  # (A,) bool: no later hypothesis can win
    holds: torch.Tensor  # (A,) bool: the utterance has an ended hypothesis to return
    record: torch.Tensor  # (A, R) float64, one row of the trace; see `columns`


class ExplicitLengthEnding:
    """Algorithm 1: one beam for all, final scores by eq. 5, a safe early stop."""

    columns = ("p_end", "log_not_ended", "kept", "running", "best_final")

    def __init__(
        self,
        options: ExplicitLengthOptions,
        beam_size: int,
        eos: int,
        n_utts: int,
        device: torch.device,
    ):
        """Start with nothing ended, in each of `n_utts` slots."""
        self._threshold = options.score_threshold
        self._beam_size = beam_size
        self._eos = eos
        n_best = options.nbest if options.exact_nbest else 1
        kwargs = dict(dtype=torch.float64, device=device)
        self._log_not_ended = torch.zeros(n_utts, **kwargs)  # sum over n < N
        self._best = torch.full((n_utts, n_best), -math.inf, **kwargs)  # best first

    coverage = None  # no term of that kind

    def judge(
        self, q: torch.Tensor, grid: Grid, length: int, bonus: torch.Tensor | None
    ) -> Verdict:
        """Prune the extensions of position N and account for what ends there.

        Args:
            q: (n, V) accumulated weighted scores of all extensions (eq. 1).
            grid: Which rows belong to which slot.
            length: N.
            bonus: None, since there is no coverage term.
        """
        candidates = grid.top(q, self._beam_size)
        values = candidates.values
        kept = values > -math.inf
        if self._threshold is not None:
            kept &= values >= values[:, :1] - self._threshold
        ended = kept & (candidates.labels == self._eos)

        q = values.double()
        mass = length_model.log_mass(q, kept)
        log_p_end = length_model.log_p_end(q, ended, mass)
        before = self._log_not_ended
        score = length_model.final_score(q, mass, before)
        score = score.masked_fill(~ended, -math.inf)
        self._log_not_ended = before + length_model.log1mexp(log_p_end)
        best = torch.cat([self._best, score], dim=1)
        self._best = best.topk(self._best.size(1), dim=1).values

        n_kept, running = (
            mask.sum(dim=1, dtype=torch.float64) for mask in (kept, kept & ~ended)
        )
        record = [log_p_end.exp(), before, n_kept, running, self._best[:, 0]]
        return Verdict(
            candidates,
            kept,
            ended,
            score,
            length_model.cannot_improve(self._log_not_ended, self._best[:, -1]),
            self._best[:, 0] > -math.inf,
            torch.stack(record, dim=1),
        )

    def may_end(self, step_scores: torch.Tensor) -> None:
        """Any hypothesis may end anywhere: there is nothing to tune."""
        return None

    def leave(self, slots: torch.Tensor) -> None:
        """Go on with these slots only, (A',)."""
        self._log_not_ended = self._log_not_ended[slots]
        self._best = self._best[slots]

    def returned(self, n_ended: int) -> torch.Tensor:
        """Tell which of all that have ended are returned: every one. (n_ended,) bool."""
        return torch.ones(n_ended, dtype=torch.bool)


class SimpleEnding:
    """Simple beam search: ended hypotheses stay in the beam, their score frozen."""

    columns = ("kept", "running", "best_final")

    def __init__(
        self,
        options: SimpleOptions,
        beam_size: int,
        eos: int,
        n_utts: int,
        device: torch.device,
    ):
        """Start with no ended hypothesis in any of the K places of each slot."""
        self._options = options
        self._beam_size = beam_size
        self._eos = eos
        # the ended hypotheses in the beam: their rank, and which they are in the order
        # in which hypotheses have ended
        self._rank = torch.full(
            (n_utts, beam_size), -math.inf, dtype=torch.float64, device=device
        )
        self._number = torch.full((n_utts, beam_size), -1, device=device)
        self._n_ended = torch.zeros((), dtype=torch.long, device=device)
        self._left: list[torch.Tensor] = []  # numbers held by slots that have finished

    @property
    def coverage(self) -> Coverage | None:
        """The coverage term that `judge` wants the values of; None: none."""
        return self._options.coverage

    def judge(
        self, q: torch.Tensor, grid: Grid, length: int, bonus: torch.Tensor | None
    ) -> Verdict:
        """Rank the extensions of position N with the ended ones and share the places out.

        Args:
            q: (n, V) accumulated weighted scores of all extensions.
            grid: Which rows belong to which slot.
            length: N.
            bonus: (n,) coverage term of the hypotheses, if there is one.
        """
        o = self._options
        rank = heuristics.rank(q, length, o.length_norm, o.length_reward)
        if bonus is not None:
            rank = rank + bonus.unsqueeze(1)
        if o.keep_ended == "joint":
            candidates = grid.top(rank, self._beam_size)
        else:
            candidates = self._apart(rank, grid)
        values = candidates.values.double()
        possible = values > -math.inf
        ends = possible & (candidates.labels == self._eos)

        # the places that ended hypotheses may take: all K against the running ones too
        # ("joint"), or K of their own
        contest = (
            values if o.keep_ended == "joint" else values.masked_fill(~ends, -math.inf)
        )
        contest = torch.cat([self._rank, contest], dim=1)
        winners = contest.topk(self._beam_size, dim=1)
        held = self._rank.size(1)
        won = torch.zeros_like(contest, dtype=torch.bool)
        won = won.scatter(1, winners.indices, winners.values > -math.inf)[:, held:]
        kept = won if o.keep_ended == "joint" else won | (possible & ~ends)
        ended = kept & ends

        order = ended.flatten().cumsum(0).view_as(ended) - 1 + self._n_ended
        number = torch.cat([self._number, order.masked_fill(~ended, -1)], dim=1)
        number = number.gather(1, winners.indices)
        self._number = number.masked_fill(winners.values == -math.inf, -1)
        self._rank = winners.values.masked_fill(self._number < 0, -math.inf)
        self._n_ended = self._n_ended + ended.sum()

        running = (kept & ~ended).sum(dim=1)
        n_kept = running + (self._number >= 0).sum(dim=1)
        record = [n_kept, running, self._rank.amax(dim=1)]
        return Verdict(
            candidates,
            kept,
            ended,
            values,
            torch.zeros_like(running, dtype=torch.bool),
            (self._number >= 0).any(dim=1),
            torch.stack([r.double() for r in record], dim=1),
        )

    def may_end(self, step_scores: torch.Tensor) -> torch.Tensor | None:
        """Tell which hypotheses `eos_threshold` lets end; None: all.

        Args:
            step_scores: (n, V) weighted log-probs of the labels at this position.

        Returns:
            (n,) bool or None.
        """
        threshold = self._options.eos_threshold
        if threshold is None:
            return None
        return heuristics.may_end(step_scores, self._eos, threshold)

    def _apart(self, rank: torch.Tensor, grid: Grid) -> Candidates:
        """Return the K best that run on and, behind them, the K best that end."""
        going = rank.clone()
        going[:, self._eos] = -math.inf
        going = grid.top(going, self._beam_size)
        ending = grid.top(rank[:, self._eos].unsqueeze(1), self._beam_size)
        ending = ending._replace(labels=torch.full_like(ending.labels, self._eos))
        return Candidates(*(torch.cat(pair, dim=1) for pair in zip(going, ending)))

    def leave(self, slots: torch.Tensor) -> None:
        """Go on with these slots only, (A',)."""
        gone = torch.ones(len(self._number), dtype=torch.bool, device=slots.device)
        gone[slots] = False
        self._left.append(self._number.masked_fill(~gone.unsqueeze(1), -1).flatten())
        self._number = self._number[slots]
        self._rank = self._rank[slots]

    def returned(self, n_ended: int) -> torch.Tensor:
        """Tell which of all that have ended are still in a beam. (n_ended,) bool."""
        numbers = torch.cat([*self._left, self._number.flatten()]).cpu()
        mask = torch.zeros(n_ended, dtype=torch.bool)
        mask[numbers[numbers >= 0]] = True
        return mask
