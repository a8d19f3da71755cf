"""The attention of an RNN decoder to the frames of all utterances.

:class:`RNNFramesByUtterance` asks an attention for each utterance, of any of ESPnet's
types; :class:`LocationGrid` computes what ESPnet's `AttLoc` does for all utterances at
once, on devices that prefer few large operations. See :mod:`.cells`.

H is the size of a layer, U the dimension of the attention; A and W are the sizes of the
grid and the other symbols those of :mod:`.base`.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import torch

from espnet_lenbias.espnet_compat import AttLoc
from espnet_lenbias.scorers.base import EncoderOutput, Selection, Span, attention_of_all
from espnet_lenbias.scorers.cells import Cells, as_bias, padded_frames, prefers_grid
from espnet_lenbias.scorers.rnn_attention import (
    Attention,
    LocationFilter,
    attention_to,
    map_tree,
)

# elements of the largest array that the grid makes at once
_ELEMENTS = 2**28


class Found(NamedTuple):
    """What r rows have found in the frames."""

    context: torch.Tensor  # (r, D) the sum of the frames by their weights
    frames: "RNNFrames"  # with what the attention keeps for the next label
    weights: Any  # for `all_weights`


class RNNFrames(Protocol):
    """The encoder output as an RNN decoder attends to it."""

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Return what the layers are given for the hypotheses: (n, ...) to (r, ...)."""

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """Return what the layers have found for the hypotheses: (r, ...) to (n, ...)."""

    def attend(self, z: torch.Tensor, spans: list[Span]) -> Found:
        """Attend to the frames.

        Args:
            z: (r, H) output of the lowest layer.
            spans: The rows of each utterance among the n hypotheses.
        """

    def all_weights(self, weights: Any) -> torch.Tensor:
        """Return the weights of the hypotheses, (n, T)."""

    def select(self, selection: Selection) -> tuple["RNNFrames", torch.Tensor]:
        """Return the frames of the chosen extensions, and which rows these go on from."""


def rnn_frames_of(
    attention: torch.nn.Module, encoder_output: EncoderOutput
) -> "RNNFramesByUtterance | LocationGrid":
    """Return the frames of B utterances before the first label.

    Args:
        attention: The decoder's.
        encoder_output: Of B utterances.
    """
    if prefers_grid(encoder_output.x.device) and type(attention) is AttLoc:
        return LocationGrid.of(attention, encoder_output)
    utts = [encoder_output.frames(b) for b in range(len(encoder_output))]
    return RNNFramesByUtterance(
        [attention_to(frames, attention) for frames in utts], {}
    )


@dataclass(frozen=True)
class RNNFramesByUtterance:
    """Each utterance's hypotheses attend to its own frames, without padding."""

    attentions: list[Attention]  # one for each utterance
    # utterance -> its first row and what the attention keeps of its n_b hypotheses:
    # nothing at first, then a tree of tensors (n_b, ...)
    past: dict[int, tuple[int, Any]]

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Nothing is laid out."""
        return values

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """Nothing has been laid out."""
        return values

    def attend(self, z: torch.Tensor, spans: list[Span]) -> Found:
        """See :class:`RNNFrames`; the weights are (n_b, T_utt) for each utterance."""
        contexts, kept, every = [], {}, []
        for span in spans:
            _, old = self.past.get(span.utt, (0, None))
            context, new, weights = self.attentions[span.utt].attend(z[span.rows], old)
            contexts.append(context)
            every.append(weights)
            kept[span.utt] = (span.start, new)
        return Found(torch.cat(contexts), replace(self, past=kept), every)

    def all_weights(self, weights: list[torch.Tensor]) -> torch.Tensor:
        """See :class:`RNNFrames`."""
        longest = max(attention.n_frames for attention in self.attentions)
        return attention_of_all(weights, longest)

    def select(
        self, selection: Selection
    ) -> tuple["RNNFramesByUtterance", torch.Tensor]:
        """See :class:`RNNFrames`."""
        past = {}
        for span in selection.spans:
            first, tree = self.past[span.utt]
            hyps = selection.parents[span.rows] - first
            past[span.utt] = (span.start, taken(tree, hyps))
        return replace(self, past=past), selection.parents


@dataclass(frozen=True)
class LocationGrid:
    """ESPnet's `AttLoc` over (A, W) hypotheses and T frames, padded."""

    attention: AttLoc
    located: LocationFilter
    cells: Cells
    frames: torch.Tensor  # (A, T, D), zeros for padding
    projected: torch.Tensor  # (A, 1, T, U)
    bias: torch.Tensor  # (A, 1, T) 0, or -inf for padding
    weights: torch.Tensor  # (A * W, T) at the label before

    @classmethod
    def of(cls, attention: AttLoc, encoder_output: EncoderOutput) -> "LocationGrid":
        """Project the frames."""
        x, inside = padded_frames(encoder_output.x, encoder_output.lengths)
        weights = inside.to(x.dtype)
        return cls(
            attention,
            LocationFilter(attention, x.size(1)),
            Cells.first(len(x)),
            x,
            attention.mlp_enc(x).unsqueeze(1),
            as_bias(inside, x).unsqueeze(1),
            weights / weights.sum(dim=1, keepdim=True),
        )

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Lay out in the grid, (n, ...) to (A * W, ...)."""
        return self.cells.spread(values)

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """Collect from the grid, (A * W, ...) to (n, ...)."""
        return self.cells.collect(values)

    def attend(self, z: torch.Tensor, spans: list[Span]) -> Found:
        """See :class:`RNNFrames`."""
        n_utts, n_frames = len(self.frames), self.frames.size(1)
        states = self.attention.mlp_dec(z).view(n_utts, -1, 1, self.projected.size(-1))
        old = self.weights.view(n_utts, -1, n_frames)
        places = max(1, _ELEMENTS // self.projected.numel())
        energies = [
            self._energies(
                old[:, start : start + places], states[:, start:][:, :places]
            )
            for start in range(0, old.size(1), places)
        ]
        together = energies[0] if len(energies) == 1 else torch.cat(energies, dim=1)
        # ESPnet's default: twice the energies
        weights = torch.add(self.bias, together, alpha=2.0).softmax(dim=2)
        context = (weights @ self.frames).flatten(0, 1)
        kept = replace(self, weights=weights.flatten(0, 1))
        return Found(context, kept, kept.weights)

    def _energies(self, old: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Return energies (A, W, T) by weights (A, W, T) and states (A, W, 1, U)."""
        located = self.located(old.flatten(0, 1))
        x = self.attention.mlp_att(located).view(*old.shape, -1)  # (A, W, T, U)
        x.add_(self.projected).add_(states).tanh_()
        return self.attention.gvec(x).squeeze(3)

    def all_weights(self, weights: torch.Tensor) -> torch.Tensor:
        """See :class:`RNNFrames`."""
        return self.collect(weights)

    def select(self, selection: Selection) -> tuple["LocationGrid", torch.Tensor]:
        """See :class:`RNNFrames`."""
        cells, parents, rows = self.cells.select(selection)
        weights = self.weights.index_select(0, parents)
        chosen = replace(self, cells=cells, weights=weights)
        if rows is not None:
            chosen = replace(
                chosen,
                frames=self.frames.index_select(0, rows),
                projected=self.projected.index_select(0, rows),
                bias=self.bias.index_select(0, rows),
            )
        return chosen, parents


def taken(tree: Any, rows: torch.Tensor) -> Any:
    """Return these rows of all tensors in nested lists and tuples."""
    return map_tree(lambda values: values.index_select(0, rows), tree)
