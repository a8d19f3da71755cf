"""A search that goes on with each block of frames: what a streaming encoder gives.

The loop over positions is that of :mod:`espnet_lenbias.search.loop`, with one utterance; the
symbols and shapes are those of :mod:`espnet_lenbias.search.beam`.
"""

import copy
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from espnet_lenbias.scorers import Memory, Prefixes
from espnet_lenbias.scorers.extend import extend, keep
from espnet_lenbias.search.beam import Beam
from espnet_lenbias.search.hypotheses import Ended, Hypothesis, Trace, TraceRecorder
from espnet_lenbias.search.loop import Bounds, Decoding, Reading, read
from espnet_lenbias.search.pruning import Grid
from espnet_lenbias.search.rules import ExplicitLengthEnding, Verdict


class Saved(NamedTuple):
    """What a position changes, as it was before."""

    beam: Beam
    states: dict[str, Any]
    rule: ExplicitLengthEnding


class BlockDecoding(Decoding):
    """The search of one utterance, going on with each block.

    It stops in front of the position at which one of the kept hypotheses ends or repeats
    one of its labels, and takes the position before back: ESPnet's signs of a decoder
    that runs past what has been heard, and what ESPnet's search does about them. So no
    ending counts before the last block: up to here p_end is 0 at every position.
    """

    def __init__(self, *args: Any):
        """Make a search that has heard nothing yet; see :class:`Decoding`."""
        super().__init__(*args)
        self._records: list[torch.Tensor] = []  # of the trace, one for each position
        self._saved: Saved | None = None  # before the last position

    def hear(self, memory: Memory, bounds: Bounds) -> None:
        """Do as many positions as the frames are good for.

        Args:
            memory: All frames so far.
            bounds: Of the output that so many frames can have.
        """
        self.bounds, self.frames = [bounds], memory.lengths
        prefixes = Prefixes(self.beam.yseq, self.beam.spans, self.primer_length)
        self.states = {
            name: extend(self.states[name], adapter, memory, prefixes)
            for name, adapter in self.adapters.items()
        }
        while self.n_labels < bounds.longest and self._advance(self.n_labels + 1):
            pass
        self._take_back()

    @property
    def n_labels(self) -> int:
        """The labels that the hypotheses have."""
        return self.beam.yseq.size(1) - self.primer_length

    def _advance(self, length: int) -> bool:
        """Do position N and return True; leave all as it was if it would run past."""
        grid = Grid(self.beam.spans, self.beam.q.device)
        short = grid.spread([length < self.bounds[0].shortest])
        step = self._score(short)
        q = self._extensions(step, grid, short)
        rule = copy.copy(self.rule)
        verdict = rule.judge(q, grid, length, None)
        reading = read(verdict)
        if any(reading.broken):
            self._complain(step, length)
        if self._has_run_past(verdict, reading):
            return False
        states = {name: keep(state) for name, state in self.states.items()}
        self._saved = Saved(self.beam, states, self.rule)
        self.rule = rule
        self._records.append(verdict.record)
        self._go_on([True], verdict, reading, q, step, [0])
        return True

    def _take_back(self) -> None:
        """Undo the last position, unless that has been done since."""
        if self._saved is not None:
            self.beam, self.states, self.rule = self._saved
            self._records.pop()
            self._saved = None

    def _has_run_past(self, verdict: Verdict, reading: Reading) -> bool:
        """Tell whether a kept hypothesis ends, or repeats a label, or none runs on."""
        if reading.ended.any() or not reading.running.any():
            return True
        if self.search.disable_repetition_detection:
            return False
        candidates, past = verdict.candidates, self.beam.yseq[:, self.primer_length :]
        repeats = past[candidates.parents] == candidates.labels.unsqueeze(-1)
        return bool((repeats.any(dim=-1) & verdict.kept).any())

    def partial_results(self) -> list[Hypothesis]:
        """Return the hypotheses so far, best first, each with the end label put on it.

        Their score is the final score of eq. 5 as if they ended here; there are none
        before the first label.
        """
        beam, so_far = self.beam, Ended()
        if self.n_labels:
            end = beam.yseq.new_full((len(beam), 1), self.search.eos)
            q = beam.q.double()
            ended = replace(beam, yseq=torch.cat([beam.yseq, end], dim=1))
            so_far.add(ended, q - q.logsumexp(dim=0), forced={0})
        every = torch.ones(len(so_far), dtype=torch.bool)
        hyps = so_far.nbest(1, every, self.search.options.nbest)[0]
        for hyp in hyps:
            hyp.steps = self.n_labels
        return hyps

    def trace_so_far(self) -> Trace:
        """Return how the search has gone so far; why it stopped is "waiting"."""
        if not self._records:
            return Trace("waiting")
        recorder = TraceRecorder(self.rule.columns, 1)
        for record in self._records:
            recorder.add([0], record)
        recorder.stop(0, "waiting")
        return recorder.traces()[0]
