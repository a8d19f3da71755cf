"""A search that another package could add, in one file: rule, options, search."""

# example: begin
import math
from dataclasses import dataclass

import torch

from espnet_lenbias.search.label_synchronous import LabelSynchronousSearch
from espnet_lenbias.search.pruning import prune
from espnet_lenbias.search.rules import Decision


class FirstEndRule:
    """Stop at the first position at which a hypothesis ends; rank by the score q."""

    trace_columns = ("kept", "running", "best_final")
    coverage_options = None

    def __init__(self, beam_size, eos):
        self.beam_size = beam_size
        self.eos = eos

    def start(self, n_utts, device):
        return torch.full((n_utts,), -math.inf, dtype=torch.float64, device=device)

    def may_end(self, weighted):
        return None  # any hypothesis, anywhere

    def step(self, best, q, grid, length, coverage):
        candidates, kept = prune(q, grid, self.beam_size)
        ended = kept & (candidates.labels == self.eos)
        score = candidates.values.double().masked_fill(~ended, -math.inf)
        best = torch.maximum(best, score.amax(dim=1))
        has_result = best > -math.inf
        counts = [kept.sum(dim=1).double(), (kept & ~ended).sum(dim=1).double()]
        return best, Decision(
            candidates,
            kept,
            ended,
            ranking_score=score,
            cannot_improve=has_result,  # so the search of these utterances stops
            has_result=has_result,
            trace_row=torch.stack([*counts, best], dim=1),
        )

    def select(self, best, slots):
        return best[slots]

    def in_contest(self, best, n_ended):
        return torch.ones(n_ended, dtype=torch.bool)


@dataclass(frozen=True)
class FirstEndOptions:
    nbest: int | None = None


class FirstEndBeamSearch(LabelSynchronousSearch):
    """Keyword-only arguments are what `search_conf` may hold."""

    def __init__(self, *args, nbest=None, **kwargs):
        super().__init__(*args, **kwargs, options=FirstEndOptions(nbest))

    def make_rule(self):
        return FirstEndRule(self.beam_size, self.eos)


# example: end
