"""A search that goes on with each block of frames: what a streaming encoder gives.

It scores, prunes and selects as the loop of :mod:`espnet_lenbias.search.loop` does, with
one utterance; symbols and shapes are those of :mod:`espnet_lenbias.search.beam`.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import torch

from espnet_lenbias.scorers import EncoderOutput, Prefixes
from espnet_lenbias.scorers.extend import extend, keep
from espnet_lenbias.search.beam import Beam, first_beam
from espnet_lenbias.search.ended import EndedHypotheses
from espnet_lenbias.search.fetch import Fetched, fetch, select
from espnet_lenbias.search.hypotheses import Hypothesis
from espnet_lenbias.search.length_limits import LengthLimits
from espnet_lenbias.search.pruning import Grid
from espnet_lenbias.search.scoring import (
    extension_scores,
    raise_invalid_score,
    score_labels,
)
from espnet_lenbias.search.setup import SearchSetup
from espnet_lenbias.search.trace import Trace, TraceRecorder


class SearchState(NamedTuple):
    """A search after so many positions; searching on leaves it as it is."""

    beam: Beam
    labels: torch.Tensor  # (n, N) of the hypotheses of the beam, on the CPU
    scorer_states: dict[str, Any]
    rule_state: Any
    trace_rows: tuple[torch.Tensor, ...]  # (1, R) for each position


class BlockDecoding:
    """The search of one utterance, going on with each block.

    It stops before the position at which one of the kept hypotheses ends or repeats one
    of its labels, and the position before that does not count either: ESPnet's signs of a
    decoder that runs past what has been heard, and what ESPnet's search does about them.
    So no ending counts before the last block: up to here p_end is 0 at every position.
    """

    def __init__(
        self,
        setup: SearchSetup,
        encoder_output: EncoderOutput,
        primer: list[int],
        allow_repetition: bool,
    ):
        """Make a search that has found nothing yet.

        Args:
            setup: The scorers and the rule.
            encoder_output: Of the first block.
            primer: What hypotheses start from.
            allow_repetition: Whether hypotheses may repeat a label before the last
                block.
        """
        x, limit = encoder_output.x, setup.repeat_limit
        primers = torch.tensor([primer], device=x.device)
        self._setup = setup
        self._primer_length = len(primer)
        self._allow_repetition = allow_repetition
        self._confirmed = SearchState(
            first_beam(setup.adapters, x, primers, limit, setup.keep_label_scores),
            torch.empty(1, 0, dtype=torch.long),
            {name: a.start(encoder_output) for name, a in setup.adapters.items()},
            setup.rule.start(1, x.device),
            (),
        )

    def search_block(self, encoder_output: EncoderOutput, limits: LengthLimits) -> None:
        """Search as many positions as the frames are good for.

        Args:
            encoder_output: All frames so far.
            limits: Of the output that so many frames can have.
        """
        beam, states = self._confirmed.beam, self._confirmed.scorer_states
        prefixes = Prefixes(beam.yseq, beam.spans, self._primer_length)
        states = {
            name: extend(states[name], adapter, encoder_output, prefixes)
            for name, adapter in self._setup.adapters.items()
        }
        self._confirmed = newest = self._confirmed._replace(scorer_states=states)
        while self._length(newest) < limits.max_position:
            following = self._next_position(newest, limits)
            if following is None:
                break
            self._confirmed, newest = newest, following

    def _length(self, state: SearchState) -> int:
        """Return how many labels the hypotheses have."""
        return state.beam.yseq.size(1) - self._primer_length

    def _next_position(
        self, state: SearchState, limits: LengthLimits
    ) -> SearchState | None:
        """Return the search one position on; None if it would run past the frames."""
        setup, beam, length = self._setup, state.beam, self._length(state) + 1
        grid = Grid(beam.spans, beam.q.device)
        end_masked = grid.spread([length <= limits.min_labels])
        # adapters may write into the state they are given
        states = {name: keep(s) for name, s in state.scorer_states.items()}
        scores = score_labels(setup, beam, states, self._primer_length, end_masked)
        q = extension_scores(beam, scores.weighted, setup.eos, end_masked, None)
        rule_state, decision = setup.rule.step(state.rule_state, q, grid, length, None)
        fetched = fetch(decision)
        if any(fetched.invalid):
            raise_invalid_score(scores, beam, length)
        if self._runs_past(state.labels, fetched):
            return None
        selection, index = select(fetched, fetched.running, [0], q.device)
        past = state.labels[selection.parents_on_cpu]
        newest = fetched.labels.flatten()[index].unsqueeze(1)
        return SearchState(
            beam.extend(selection, q, *scores.of_extensions),
            torch.cat([past, newest], dim=1),
            {
                name: adapter.select(scores.states[name], selection)
                for name, adapter in setup.adapters.items()
            },
            rule_state,
            (*state.trace_rows, decision.trace_row),
        )

    def _runs_past(self, labels: torch.Tensor, fetched: Fetched) -> bool:
        """Tell whether a kept hypothesis ends, or repeats a label, or none runs on."""
        if fetched.ended.any() or not fetched.running.any():
            return True
        if self._allow_repetition:
            return False
        repeats = labels[fetched.parents] == fetched.labels.unsqueeze(-1)
        return bool((repeats.any(dim=-1) & fetched.running).any())

    def partial_results(self) -> list[Hypothesis]:
        """Return the hypotheses so far, best first, each with the end label put on it.

        Their score is the final score of eq. 4 as if they ended here; there are none
        before the first label.
        """
        beam, so_far = self._confirmed.beam, EndedHypotheses()
        length = self._length(self._confirmed)
        if length:
            end = beam.yseq.new_full((len(beam), 1), self._setup.eos)
            q = beam.q.double()
            log_probs = beam.label_log_probs
            if log_probs is not None:  # the end label has none yet
                nothing = torch.zeros_like(log_probs[:, :1])
                log_probs = torch.cat([log_probs, nothing], dim=1)
            ended = replace(
                beam,
                yseq=torch.cat([beam.yseq, end], dim=1),
                label_log_probs=log_probs,
            )
            so_far.add(ended, q - q.logsumexp(dim=0), forced={0})
        every = torch.ones(len(so_far), dtype=torch.bool)
        hyps = so_far.nbest(1, every, self._setup.nbest)[0]
        for hyp in hyps:
            hyp.steps, hyp.stopped = length, "waiting"
        return hyps

    def trace_so_far(self) -> Trace:
        """Return how the search has gone so far; why it stopped is "waiting"."""
        rows = self._confirmed.trace_rows
        if not rows:
            return Trace("waiting")
        recorder = TraceRecorder(self._setup.rule.trace_columns, 1)
        for row in rows:
            recorder.add([0], row)
        recorder.stop(0, "waiting")
        return recorder.traces()[0]
