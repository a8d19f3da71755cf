"""Adapters for any partial scorer of ESPnet's, as :mod:`.fallback` has them for full ones.

A partial scorer is asked for some labels of each hypothesis, and for the end label.
"""

from typing import Any

import torch

from espnet_lenbias.espnet_compat import PartialScorerInterface
from espnet_lenbias.scorers.base import Prefixes, Scores, Selection
from espnet_lenbias.scorers.fallback import Fallback, FallbackState


class PartialFallback(Fallback):
    """What the two fallbacks here share: of how many labels they ask, and which ends."""

    def __init__(self, scorer: PartialScorerInterface, n_vocab: int, eos: int):
        super().__init__(scorer)
        self._n_vocab = n_vocab
        self._eos = eos


class SinglePartialFallback(PartialFallback):
    """Any `PartialScorerInterface`, one hypothesis after the other."""

    def step(
        self,
        state: FallbackState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score the labels asked for, and the end label, after each prefix."""
        if part_ids is None:
            every = torch.arange(self._n_vocab, device=prefixes.yseq.device)
            part_ids = every.expand(len(prefixes.yseq), -1)
        else:
            part_ids = _with_eos(part_ids, self._eos)
        rows, states = [], []
        for utt, start, stop in prefixes.spans:
            frames = state.encoder_output.frames(utt)
            if len(state.encoder_output) > 1:
                self.scorer.init_state(state.encoder_output.first_frames(utt))
            for i in range(start, stop):
                row, s = self.scorer.score_partial(
                    prefixes.yseq[i], part_ids[i], state.states[i], frames
                )
                rows.append(row)
                states.append(s)
        full = _full(torch.stack(rows), part_ids, self._n_vocab)
        return Scores(full, FallbackState(state.encoder_output, states, part_ids))

    def select(self, state: FallbackState, selection: Selection) -> FallbackState:
        """Return the state of the chosen extensions."""
        asked_for = _asked_for(state)[selection.parents]
        places = _places(asked_for, selection.labels.unsqueeze(1))
        parents = selection.parents_on_cpu.tolist()
        states = [
            self.scorer.select_state(state.states[i], j)
            for i, j in zip(parents, places)
        ]
        return FallbackState(state.encoder_output, states)

    def _ended(self, state: FallbackState) -> list[Any]:
        asked_for = _asked_for(state)
        places = _places(asked_for, asked_for.new_tensor(self._eos))
        return [self.scorer.select_state(s, j) for s, j in zip(state.states, places)]


class BatchPartialFallback(PartialFallback):
    """Any `BatchPartialScorerInterface`, the hypotheses of an utterance in one call."""

    def _init(self, frames: torch.Tensor) -> Any:
        return self.scorer.batch_init_state(frames)

    def step(
        self,
        state: FallbackState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score the labels asked for, and the end label, after each prefix."""
        if part_ids is not None:
            part_ids = _with_eos(part_ids, self._eos)
        parts, states = [], []
        for span in prefixes.spans:
            frames = state.encoder_output.frames(span.utt)
            n = span.stop - span.start
            scores, new = self.scorer.batch_score_partial(
                prefixes.yseq[span.rows],
                None if part_ids is None else part_ids[span.rows],
                state.states[span.rows],
                frames.expand(n, *frames.shape),
            )
            parts.append(scores)
            states += [(new, i) for i in range(n)]
        scores = torch.cat(parts)  # (n, V)
        if part_ids is not None:
            scores = _full(scores.gather(1, part_ids), part_ids, self._n_vocab)
        return Scores(scores, FallbackState(state.encoder_output, states))

    def select(self, state: FallbackState, selection: Selection) -> FallbackState:
        """Return the state of the chosen extensions."""
        chosen = zip(selection.parents_on_cpu.tolist(), selection.labels.tolist())
        return FallbackState(
            state.encoder_output, [self._pick(state.states[i], v) for i, v in chosen]
        )

    def _pick(self, state: tuple[Any, int], label: int) -> Any:
        batch_state, i = state
        return self.scorer.select_state(batch_state, i, label)

    def _ended(self, state: FallbackState) -> list[Any]:
        return [self._pick(s, self._eos) for s in state.states]


def _full(scores: torch.Tensor, part_ids: torch.Tensor, n_vocab: int) -> torch.Tensor:
    """Spread (n, S) scores over the vocabulary, -inf elsewhere: (n, V)."""
    full = scores.new_full((len(scores), n_vocab), -torch.inf)
    return full.scatter(1, part_ids, scores)


def _with_eos(part_ids: torch.Tensor, eos: int) -> torch.Tensor:
    """Append the end label to the labels of each hypothesis, (n, S) to (n, S + 1).

    Where it is there already it stands twice, which changes no score.
    """
    return torch.cat([part_ids, part_ids.new_full((len(part_ids), 1), eos)], dim=1)


def _asked_for(state: FallbackState) -> torch.Tensor:
    """Return the labels that a partial scorer was asked for, (n, S)."""
    if state.part_ids is None:
        raise ValueError("a partial scorer's state is selected before its first step")
    return state.part_ids


def _places(asked_for: torch.Tensor, labels: torch.Tensor) -> list[int]:
    """Return where each hypothesis's label is among those asked for, (n, S)."""
    return torch.eq(asked_for, labels).int().argmax(dim=1).tolist()
