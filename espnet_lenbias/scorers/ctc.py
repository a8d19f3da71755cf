"""CTC prefix scores as the search asks for them; they are computed in :mod:`.ctc_prefixes`.

On a CPU one utterance is scored after the other, over its own frames; a device that prefers
few large operations scores all of them in a grid, see :mod:`.cells`.
"""

from typing import NamedTuple

import torch

from espnet_lenbias.espnet_compat import CTCPrefixScorer
from espnet_lenbias.scorers.base import EncoderOutput, Prefixes, Scores, Selection
from espnet_lenbias.scorers.cells import Cells, padded_frames, prefers_grid
from espnet_lenbias.scorers.ctc_prefixes import (
    BLANK,
    SMALLEST,
    Forward,
    GridProbs,
    UtteranceProbs,
    empty_prefixes,
    extended_prefixes,
    prefix_scores,
)


class UtteranceState(NamedTuple):
    """The n hypotheses of one utterance."""

    start: int  # the first one among those of all utterances
    forward: Forward
    psi: torch.Tensor  # prefix scores: (n, 1) of themselves or, when scored, (n, V)


class CTCPrefixState(NamedTuple):
    """The CTC state of all hypotheses, utterance by utterance."""

    probs: list[UtteranceProbs]  # of each utterance
    by_utt: dict[int, UtteranceState]


class CTCGridState(NamedTuple):
    """The CTC state of all hypotheses, in a grid."""

    cells: Cells
    probs: GridProbs
    forward: Forward  # of the prefix in each of the A * W cells
    psi: torch.Tensor  # prefix scores: (A * W, 1) of themselves or (A * W, V)


class CTCPrefix:
    """Adapter of ESPnet's `CTCPrefixScorer`."""

    def __init__(self, scorer: CTCPrefixScorer):
        self.scorer = scorer

    def start(self, encoder_output: EncoderOutput) -> CTCPrefixState | CTCGridState:
        """Run the CTC output layer over the frames."""
        if prefers_grid(encoder_output.x.device):
            return self._start_grid(encoder_output)
        log_probs = [
            self.scorer.ctc.log_softmax(encoder_output.first_frames(b).unsqueeze(0))[0]
            for b in range(len(encoder_output))
        ]
        probs = [UtteranceProbs(_probabilities(x.T)) for x in log_probs]
        by_utt = {
            b: UtteranceState(b, empty_prefixes(p, 1), p.probs.new_zeros(1, 1))
            for b, p in enumerate(probs)
        }
        return CTCPrefixState(probs, by_utt)

    def _start_grid(self, encoder_output: EncoderOutput) -> CTCGridState:
        """Run the CTC output layer over all utterances at once."""
        x, lengths = encoder_output.first_source()
        frames, inside = padded_frames(x, lengths)
        log_probs = self.scorer.ctc.log_softmax(frames).transpose(1, 2)
        certain = torch.arange(log_probs.size(1), device=x.device) == BLANK
        certain = torch.where(certain, 0.0, SMALLEST).to(log_probs.dtype)
        log_probs = torch.where(inside.unsqueeze(1), log_probs, certain.view(1, -1, 1))
        rows = torch.arange(len(x), device=x.device)
        probs = GridProbs(_probabilities(log_probs), inside.double(), rows)
        forward = empty_prefixes(probs, len(x))
        psi = forward.either.new_zeros(len(x), 1)
        return CTCGridState(Cells.first(len(x)), probs, forward, psi)

    def step(
        self,
        state: CTCPrefixState | CTCGridState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score the labels asked for, and the end label, after each prefix."""
        if isinstance(state, CTCGridState):
            cells, labels = state.cells, part_ids
            labels = None if labels is None else cells.spread(labels)
            scores, psi = self._scored(state.forward, state.psi, state.probs, labels)
            return Scores(cells.collect(scores).float(), state._replace(psi=psi))
        parts, by_utt = [], {}
        for span in prefixes.spans:
            probs, (_, forward, psi) = state.probs[span.utt], state.by_utt[span.utt]
            labels = None if part_ids is None else part_ids[span.rows]
            scores, extended = self._scored(forward, psi, probs, labels)
            parts.append(scores)
            by_utt[span.utt] = UtteranceState(span.start, forward, extended)
        return Scores(torch.cat(parts).float(), CTCPrefixState(state.probs, by_utt))

    def _scored(
        self,
        forward: Forward,
        psi: torch.Tensor,
        probs: UtteranceProbs | GridProbs,
        labels: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score one label more after n prefixes.

        Args:
            forward: Of the prefixes.
            psi: (n, 1) their prefix scores.
            probs: Of the labels at the frames.
            labels: (n, S) those asked for; None: all.

        Returns:
            (n, V) log-probs, and (n, V) prefix scores.
        """
        extended = prefix_scores(forward, probs, labels)
        extended[:, BLANK] = -torch.inf
        extended[:, self.scorer.eos] = forward.either[:, -1]
        # behind a prefix that is impossible everything is: -inf, not NaN
        return extended - psi.clamp(min=torch.finfo(psi.dtype).min), extended

    def select(
        self, state: CTCPrefixState | CTCGridState, selection: Selection
    ) -> CTCPrefixState | CTCGridState:
        """Return the state of the chosen extensions."""
        if isinstance(state, CTCGridState):
            return _select_in_grid(state, selection)
        by_utt = {}
        for span in selection.spans:
            start, forward, psi = state.by_utt[span.utt]
            hyps = selection.parents[span.rows] - start
            labels = selection.labels[span.rows]
            forward = Forward(*(values[hyps] for values in forward))
            by_utt[span.utt] = UtteranceState(
                span.start,
                extended_prefixes(forward, state.probs[span.utt], labels),
                psi[hyps, labels].unsqueeze(1),
            )
        return CTCPrefixState(state.probs, by_utt)

    def final(self, state: CTCPrefixState | CTCGridState) -> None:
        """CTC adds nothing when a hypothesis ends."""
        return None


def _probabilities(log_probs: torch.Tensor) -> torch.Tensor:
    """Return the probabilities of (..., V, T) log-probs, in float64."""
    return log_probs.double().contiguous().clamp(min=SMALLEST).exp()


def _select_in_grid(state: CTCGridState, selection: Selection) -> CTCGridState:
    """Return the state of the chosen extensions; spare cells hold copies of one."""
    cells, parents, kept = state.cells.select(selection)
    probs, inside, rows = state.probs
    if kept is not None:
        probs, inside = probs.index_select(0, kept), inside.index_select(0, kept)
    if kept is not None or cells.width != state.cells.width:
        rows = torch.arange(len(probs)).repeat_interleave(cells.width)
        rows = rows.to(probs.device, non_blocking=True)
    chosen = GridProbs(probs, inside, rows)
    labels = cells.spread(selection.labels)
    forward = Forward(*(values.index_select(0, parents) for values in state.forward))
    return CTCGridState(
        cells,
        chosen,
        extended_prefixes(forward, chosen, labels),
        state.psi[parents, labels].unsqueeze(1),
    )
