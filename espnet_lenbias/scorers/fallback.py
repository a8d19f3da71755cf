"""Adapters for any full scorer of ESPnet's: always right, only slower.

They call the scorer just as ESPnet's searches do, one state a hypothesis, so they serve
as the reference that faster adapters are tested against. See :mod:`.base` for shapes.
"""

import inspect
from typing import Any, NamedTuple

import torch

from espnet_lenbias.espnet_compat import (
    BatchScorerInterface,
    ScorerInterface,
)
from espnet_lenbias.scorers.base import EncoderOutput, Prefixes, Scores, Selection, Span


class FallbackState(NamedTuple):
    """The state of a fallback."""

    encoder_output: EncoderOutput
    states: list[Any]  # one for each hypothesis, in the scorer's own form
    part_ids: torch.Tensor | None = None  # (n, S) what a partial scorer was asked for


def own_lists(state: Any) -> Any:
    """Copy the lists, dicts and tuples of a state, not the tensors in them.

    Hypotheses of one parent start from one state, and some scorers add to its lists in
    place (the coverage attentions do): each needs lists of its own.
    """
    if type(state) is dict:
        return {key: own_lists(value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(own_lists(value) for value in state)
    return state


class Fallback:
    """What the fallbacks share: start, select, final."""

    def __init__(self, scorer: ScorerInterface):
        self.scorer = scorer
        own = type(scorer).final_score is not ScorerInterface.final_score
        self._has_final_score = own

    def start(self, encoder_output: EncoderOutput) -> FallbackState:
        """Return the scorer's initial state of each utterance."""
        utts = range(len(encoder_output))
        return FallbackState(
            encoder_output, [self._init(encoder_output.first_frames(b)) for b in utts]
        )

    def _init(self, frames: torch.Tensor) -> Any:
        return self.scorer.init_state(frames)

    def select(self, state: FallbackState, selection: Selection) -> FallbackState:
        """Return the state of the chosen extensions."""
        parents = selection.parents_on_cpu.tolist()
        return FallbackState(
            state.encoder_output, [own_lists(state.states[i]) for i in parents]
        )

    def final(self, state: FallbackState) -> torch.Tensor | None:
        """Return the scorer's `final_score` of each hypothesis, (n,)."""
        if not self._has_final_score:
            return None
        finals = [float(self.scorer.final_score(s)) for s in self._ended(state)]
        return torch.tensor(finals, device=state.encoder_output.x.device)

    def _ended(self, state: FallbackState) -> list[Any]:
        """Return the state that each hypothesis would have with the end label on it."""
        return state.states


class SingleFallback(Fallback):
    """Any `ScorerInterface`, one hypothesis after the other.

    Some scorers keep things of their utterance on themselves between `init_state` and
    `score` (the attentions of `RNNDecoder` do). With several utterances `init_state` is
    therefore called again before the hypotheses of each.
    """

    def __init__(self, scorer: ScorerInterface, is_decoder: bool, return_hs: bool):
        super().__init__(scorer)
        self._is_decoder = is_decoder
        self._return_hs = return_hs and is_decoder

    def step(
        self,
        state: FallbackState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix."""
        encoder_output = state.encoder_output
        rows, hs, states = [], [], []
        for utt, start, stop in prefixes.spans:
            frames = encoder_output.frames(utt)
            pre_frames = encoder_output.pre_frames(utt) if self._is_decoder else None
            args = [frames] if pre_frames is None else [frames, pre_frames]
            if len(encoder_output) > 1:
                self.scorer.init_state(encoder_output.first_frames(utt))
            for i in range(start, stop):
                if self._return_hs:
                    row, h, s = self.scorer.score(
                        prefixes.yseq[i], state.states[i], *args, return_hs=True
                    )
                    hs.append(h.reshape(-1))
                else:
                    row, s = self.scorer.score(prefixes.yseq[i], state.states[i], *args)
                rows.append(row)
                states.append(s)
        return Scores(
            torch.stack(rows),
            FallbackState(encoder_output, states),
            torch.stack(hs) if hs else None,
        )


class BatchFallback(Fallback):
    """Any `BatchScorerInterface`: all hypotheses in one call where that is right.

    The padding of a batch of utterances must not be attended to: a scorer that takes
    ESPnet's `xs_mask` gets one, any other is asked utterance by utterance if their
    lengths differ.
    """

    def __init__(self, scorer: BatchScorerInterface, is_decoder: bool, return_hs: bool):
        super().__init__(scorer)
        self._is_decoder = is_decoder
        self._return_hs = return_hs and is_decoder
        parameters = inspect.signature(scorer.batch_score).parameters
        self._takes_mask = is_decoder and "xs_mask" in parameters

    def _init(self, frames: torch.Tensor) -> Any:
        return self.scorer.batch_init_state(frames)

    def step(
        self,
        state: FallbackState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix."""
        encoder_output, spans = state.encoder_output, prefixes.spans
        same = len({encoder_output.lengths[s.utt] for s in spans}) == 1
        together = encoder_output.pre_x is None and (same or self._takes_mask)
        groups = [spans] if together else [[span] for span in spans]
        parts = [self._call(state, prefixes, group) for group in groups]
        scores, hs, states = zip(*parts)
        return Scores(
            torch.cat(scores),
            FallbackState(encoder_output, [s for part in states for s in part]),
            torch.cat(hs) if self._return_hs else None,
        )

    def _call(
        self, state: FallbackState, prefixes: Prefixes, spans: list[Span]
    ) -> tuple[torch.Tensor, torch.Tensor | None, list[Any]]:
        rows = slice(spans[0].start, spans[-1].stop)
        yseq = prefixes.yseq[rows]
        xs, mask = _frames_of(state.encoder_output, spans)
        args = [yseq, state.states[rows], xs]
        kwargs = {} if mask is None else {"xs_mask": mask}
        pre = state.encoder_output.pre_frames(spans[0].utt)
        if self._is_decoder and pre is not None:  # then there is one utterance a call
            args.append(pre.expand(len(yseq), *pre.shape))
        if self._return_hs:
            (scores, hs), states = self.scorer.batch_score(
                *args, **kwargs, return_hs=True
            )
        else:
            scores, states = self.scorer.batch_score(*args, **kwargs)
            hs = None
        if states is None:  # a scorer without a state, such as the length bonus
            states = [None] * len(yseq)
        elif not isinstance(states, list):
            states = [self.scorer.select_state(states, i) for i in range(len(yseq))]
        return scores, hs, states


def _frames_of(
    encoder_output: EncoderOutput, spans: list[Span]
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the frames that each hypothesis attends to, and the mask of their padding.

    Returns:
        (n, T, D) frames and (n, 1, T) bool, None where nothing is padded.
    """
    counts = [s.stop - s.start for s in spans]
    if len(spans) == 1:
        frames = encoder_output.frames(spans[0].utt)
        return frames.expand(counts[0], *frames.shape), None
    device = encoder_output.x.device
    lengths = [encoder_output.lengths[s.utt] for s in spans]
    longest = max(lengths)
    repeats = torch.tensor(counts, device=device)
    utts = torch.tensor([s.utt for s in spans], device=device)
    xs = encoder_output.x[utts, :longest].repeat_interleave(repeats, dim=0)
    if min(lengths) == longest:
        return xs, None
    n_frames = torch.tensor(lengths, device=device)
    mask = torch.arange(longest, device=device) < n_frames.unsqueeze(1)
    return xs, mask.unsqueeze(1).repeat_interleave(repeats, dim=0)
