"""The loop over output positions, for all utterances of a batch together.

At each position N every running hypothesis is scored with all V labels, the rule of the
search prunes the extensions and says what has ended, and the rest runs on. An utterance
that needs no further position leaves the batch. There is one device synchronisation per
position, in :func:`~espnet_lenbias.search.fetch.fetch`. Symbols and shapes are those of
:mod:`espnet_lenbias.search.beam` and :mod:`espnet_lenbias.search.pruning`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from espnet_lenbias.scorers import EncoderOutput, Selection
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.search import heuristics
from espnet_lenbias.search.beam import first_beam
from espnet_lenbias.search.ended import EndedHypotheses
from espnet_lenbias.search.fetch import Fetched, fetch, select
from espnet_lenbias.search.hypotheses import Hypothesis
from espnet_lenbias.search.length_limits import LengthLimits
from espnet_lenbias.search.pruning import Grid
from espnet_lenbias.search.rules import Decision
from espnet_lenbias.search.scoring import (
    LabelScores,
    extension_scores,
    raise_invalid_score,
    score_labels,
    with_possible_ends,
)
from espnet_lenbias.search.setup import SearchSetup
from espnet_lenbias.search.trace import Trace, TraceRecorder


class BatchDecoding:
    """One call of a search: utterances with frames and equally long primers."""

    def __init__(
        self,
        setup: SearchSetup,
        encoder_output: EncoderOutput,
        limits: Sequence[LengthLimits],
        primers: torch.Tensor,
    ):
        """Set one hypothesis up for each utterance: its primer.

        Args:
            setup: The scorers and the rule.
            encoder_output: Of B utterances.
            limits: B of them.
            primers: (B, P) what the hypotheses start from.
        """
        device, n_utts = encoder_output.x.device, len(encoder_output)
        self.setup = setup
        self.limits = limits
        self.n_frames = encoder_output.lengths
        self.primer_length = primers.size(1)
        self.states = {
            name: adapter.start(encoder_output)
            for name, adapter in setup.adapters.items()
        }
        self.rule_state = setup.rule.start(n_utts, device)
        self.beam = first_beam(
            setup.adapters,
            encoder_output.x,
            primers,
            setup.repeat_limit,
            setup.keep_label_scores,
        )
        self.ended = EndedHypotheses()
        # of utterances in which nothing could end: made to end where they stood
        self.dead_ends = EndedHypotheses()
        self.recorder = TraceRecorder(setup.rule.trace_columns, n_utts)
        # utterances that reached their limit with nothing ended: at the next position
        # only the end label is possible
        self.forced: set[int] = set()

    def run(self) -> tuple[list[list[Hypothesis]], list[Trace]]:
        """Decode; return the n-best list and the trace of each utterance."""
        length = 0
        while self.beam.spans:
            length += 1
            self._search_position(length)
        n_utts, nbest = len(self.limits), self.setup.nbest
        in_contest = self.setup.rule.in_contest(self.rule_state, len(self.ended))
        results = self.ended.nbest(n_utts, in_contest, nbest)
        every = torch.ones(len(self.dead_ends), dtype=torch.bool)
        dead_ends = self.dead_ends.nbest(n_utts, every, nbest)
        best = [mine or other for mine, other in zip(results, dead_ends)]
        return best, self.recorder.traces()

    def _search_position(self, length: int) -> None:
        """Do position N: score, prune, put away what has ended, go on with the rest."""
        beam = self.beam
        utts = [span.utt for span in beam.spans]
        grid = Grid(beam.spans, beam.q.device)
        scores, q = self._score(grid, length)
        coverage = self._coverage(scores, grid)
        self.rule_state, decision = self.setup.rule.step(
            self.rule_state, q, grid, length, coverage
        )
        self.recorder.add(utts, decision.trace_row)
        fetched = fetch(decision)
        if any(fetched.invalid):
            raise_invalid_score(scores, beam, length)

        if fetched.ended.any():
            selection, index = select(fetched, fetched.ended, utts, q.device)
            ranking_score = decision.ranking_score.flatten()
            index = index.to(ranking_score.device, non_blocking=True)
            ranking_score = ranking_score[index]
            # of what has ended nobody asks any more how it repeats itself, or what
            # attention its frames have got
            ending = replace(beam, repeats=None)
            ended = ending.extend(selection, q, scores.by_scorer, scores.hs)
            self.ended.add(ended, ranking_score, self.forced)

        reasons = [
            self._why_stop(utt, slot, fetched, length) for slot, utt in enumerate(utts)
        ]
        self._put_away_dead_ends(reasons, fetched, scores)
        self._note_stops(utts, reasons)
        self._go_on([not reason for reason in reasons], decision, fetched, q, scores)

    def _score(self, grid: Grid, length: int) -> tuple[LabelScores, torch.Tensor]:
        """Return the scores of position N and (n, V) q of all extensions."""
        setup, spans = self.setup, self.beam.spans
        end_masked = grid.spread(
            [length <= self.limits[s.utt].min_labels for s in spans]
        )
        scores = score_labels(
            setup, self.beam, self.states, self.primer_length, end_masked
        )
        only_end = grid.spread([span.utt in self.forced for span in spans])
        if only_end is not None:
            slot = grid.repeat(list(range(len(spans))))
            scores = with_possible_ends(scores, only_end, slot, setup.eos)
        may_end = setup.rule.may_end(scores.weighted)
        if may_end is not None:
            end_masked = ~may_end if end_masked is None else end_masked | ~may_end
        q = extension_scores(
            self.beam, scores.weighted, setup.eos, end_masked, only_end
        )
        return scores, q

    def _coverage(self, scores: LabelScores, grid: Grid) -> torch.Tensor | None:
        """Return the coverage term of the hypotheses, (n,), if the rule wants one."""
        options = self.setup.rule.coverage_options
        if options is None or scores.attended is None:
            return None
        n_frames = grid.repeat([self.n_frames[span.utt] for span in self.beam.spans])
        every = torch.arange(scores.attended.size(1), device=n_frames.device)
        frames = every < n_frames.unsqueeze(1)
        return heuristics.coverage(scores.attended, frames, options)

    def _why_stop(self, utt: int, slot: int, fetched: Fetched, length: int) -> str:
        """Return why an utterance needs no further position, "" if it does."""
        if utt in self.forced:
            return "forced"
        if fetched.cannot_improve[slot]:
            return "bound"
        if not fetched.running[slot].any():
            return "ended" if fetched.has_result[slot] else "forced"
        if fetched.given_up[slot] and fetched.has_result[slot]:
            return "early"
        if length < self.limits[utt].max_position:
            return ""
        if fetched.has_result[slot]:
            return "limit"
        self.forced.add(utt)
        return ""

    def _put_away_dead_ends(
        self, reasons: Sequence[str], fetched: Fetched, scores: LabelScores
    ) -> None:
        """End by force what stops with nothing ended: no label was possible."""
        spans = [
            span
            for span, reason, has_result in zip(
                self.beam.spans, reasons, fetched.has_result
            )
            if reason and not has_result
        ]
        if not spans:
            return
        on_cpu = torch.tensor([i for s in spans for i in range(s.start, s.stop)])
        parents = on_cpu.to(self.beam.q.device)
        ends = torch.full_like(parents, self.setup.eos)
        utts = [span.utt for span in spans]
        spans = make_spans(utts, [span.stop - span.start for span in spans])
        impossible = torch.full_like(scores.weighted, -math.inf)
        selection = Selection(parents, on_cpu, ends, spans)
        ended = self.beam.extend(selection, impossible, *scores.of_extensions)
        self.dead_ends.add(ended, ended.q, set(utts))

    def _note_stops(self, utts: Sequence[int], reasons: Sequence[str]) -> None:
        for utt, reason in zip(utts, reasons):
            if reason:
                self.recorder.stop(utt, reason)

    def _go_on(
        self,
        unfinished: list[bool],
        decision: Decision,
        fetched: Fetched,
        q: torch.Tensor,
        scores: LabelScores,
    ) -> None:
        """Keep the running hypotheses of the utterances that have not finished."""
        running = fetched.running & torch.tensor(unfinished).unsqueeze(1)
        utts = [span.utt for span in self.beam.spans]
        selection, _ = select(fetched, running, utts, q.device)
        if not all(unfinished):
            slots = [i for i, goes_on in enumerate(unfinished) if goes_on]
            where = decision.candidates.values.device
            slots_there = torch.tensor(slots, dtype=torch.long).to(where)
            self.rule_state = self.setup.rule.select(self.rule_state, slots_there)
        self.beam = self.beam.extend(selection, q, *scores.of_extensions)
        if selection.spans:
            self.states = {
                name: adapter.select(scores.states[name], selection)
                for name, adapter in self.setup.adapters.items()
            }
