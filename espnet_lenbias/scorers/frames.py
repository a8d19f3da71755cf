"""Attention to the encoder output, whose keys and values the hypotheses share.

They are computed once for each utterance and layer. There are two ways of attending to
them with the same results: :class:`FramesByUtterance` on a CPU, :class:`FramesGrid` on a
device that prefers few large operations; see :mod:`.cells`.

h is the number of heads, d the size of one, D = h d; A and W are the sizes of the grid and
the other symbols those of :mod:`.base`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from espnet_lenbias.scorers.attention import project, queries
from espnet_lenbias.scorers.base import (
    EncoderOutput,
    Selection,
    Span,
    attention_of_all,
)
from espnet_lenbias.scorers.cells import Cells, as_bias, padded_frames, prefers_grid
from espnet_lenbias.scorers.label_cache import (
    GatheredLabels,
    KeysValues,
    SelfAttentionCache,
)
from espnet_lenbias.scorers.products import linear


class Frames(Protocol):
    """The encoder output as the layers of a decoder attend to it."""

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Return what the layers are given for the hypotheses: (n, ...) to (r, ...)."""

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """Return what the layers have found for the hypotheses: (r, ...) to (n, ...)."""

    def attend(
        self, number: int, attention: Any, x: torch.Tensor, spans: list[Span]
    ) -> tuple[torch.Tensor, Any]:
        """Attend to the frames.

        Args:
            number: Which layer it is.
            attention: The layer's.
            x: (r, D) its input.
            spans: The rows of each utterance among the n hypotheses.

        Returns:
            (r, D) what was found, and the weights for `mean_over_heads`.
        """

    def mean_over_heads(self, weights: Any) -> torch.Tensor:
        """Return the weights of all utterances, (r, T)."""

    def select(
        self, selection: Selection, labels: SelfAttentionCache
    ) -> tuple["Frames", SelfAttentionCache]:
        """Return the frames of the chosen extensions, and the cache of their labels."""

    def extended(
        self, attentions: Sequence[Any], encoder_output: EncoderOutput
    ) -> "Frames":
        """Return the frames of one utterance with those that have come since."""


# How to attend by utterance: the attention, (n, D) its input, the keys and values of each
# utterance, and its rows; (n, D) what was found, and for each utterance (h, n_b, T_utt)
AttendByUtterance = Callable[
    [Any, torch.Tensor, list[KeysValues], list[Span]],
    tuple[torch.Tensor, list[torch.Tensor]],
]


def frames_of(
    attentions: Sequence[Any],
    encoder_output: EncoderOutput,
    by_utterance: AttendByUtterance,
) -> Frames:
    """Compute keys and values of the encoder output, once for all positions.

    Args:
        attentions: Of the layers.
        encoder_output: Of B utterances.
        by_utterance: How a CPU attends to them.
    """
    if prefers_grid(encoder_output.x.device):
        return FramesGrid.of(attentions, encoder_output)
    utts = [encoder_output.frames(b) for b in range(len(encoder_output))]
    layers = [[project(attention, x) for x in utts] for attention in attentions]
    return FramesByUtterance(layers, by_utterance)


@dataclass(frozen=True)
class FramesByUtterance:
    """One product for each utterance over its own frames, without padding."""

    # layer by layer, utterance by utterance: (T_utt, h, d)
    layers: list[list[KeysValues]]
    by_utterance: AttendByUtterance

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Nothing is laid out."""
        return values

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """Nothing has been laid out."""
        return values

    def attend(
        self, number: int, attention: Any, x: torch.Tensor, spans: list[Span]
    ) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """See :class:`Frames`; the weights are (h, n_b, T_utt) for each utterance."""
        return self.by_utterance(attention, x, self.layers[number], spans)

    def mean_over_heads(self, weights: list[torch.Tensor]) -> torch.Tensor:
        """See :class:`Frames`."""
        longest = max(len(keys) for keys, _ in self.layers[0])
        return attention_of_all([w.mean(dim=0) for w in weights], longest)

    def select(
        self, selection: Selection, labels: SelfAttentionCache
    ) -> tuple[Frames, SelfAttentionCache]:
        """See :class:`Frames`."""
        return self, labels.select(selection)

    def extended(
        self, attentions: Sequence[Any], encoder_output: EncoderOutput
    ) -> Frames:
        """Put the keys and values of the new frames behind those of the old ones."""
        new = encoder_output.frames(0)[len(self.layers[0][0].keys) :]
        layers = []
        for attention, [old] in zip(attentions, self.layers):
            pairs = zip(old, project(attention, new))
            layers.append([KeysValues(*(torch.cat(pair) for pair in pairs))])
        return replace(self, layers=layers)


@dataclass(frozen=True)
class FramesGrid:
    """One product for all utterances, padded to (A, W) hypotheses and T frames."""

    cells: Cells
    keys: list[torch.Tensor]  # layer by layer: (A, h, d, T)
    values: list[torch.Tensor]  # (A, h, T, d)
    bias: torch.Tensor  # (A, h, 1, T) 0, or -inf for padding

    @classmethod
    def of(
        cls, attentions: Sequence[Any], encoder_output: EncoderOutput
    ) -> "FramesGrid":
        """Compute keys and values; of the padding too."""
        x, inside = padded_frames(encoder_output.x, encoder_output.lengths)
        keys, values = _projected(attentions, x)
        bias = as_bias(inside, x)[:, None, None]
        bias = bias.repeat(1, attentions[0].h, 1, 1)
        return cls(Cells.first(len(x)), keys, values, bias)

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Lay out in the grid, (n, ...) to (A * W, ...)."""
        return self.cells.spread(values)

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """Collect from the grid, (A * W, ...) to (n, ...)."""
        return self.cells.collect(values)

    def attend(
        self, number: int, attention: Any, x: torch.Tensor, spans: list[Span]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See :class:`Frames`; the weights are (A, h, W, T)."""
        keys, values = self.keys[number], self.values[number]
        n_utts, h, d, n_frames = keys.shape
        query = queries(attention, x).view(n_utts, -1, h, d).transpose(1, 2)
        weights = torch.baddbmm(
            self.bias.flatten(0, 1),
            query.reshape(n_utts * h, -1, d),
            keys.flatten(0, 1),
            alpha=attention.d_k**-0.5,
        ).softmax(dim=-1)
        context = (weights @ values.flatten(0, 1)).view(n_utts, h, -1, d)
        context = context.transpose(1, 2).reshape(len(x), h * d)
        return linear(attention.linear_out, context), weights.view(
            n_utts, h, -1, n_frames
        )

    def mean_over_heads(self, weights: torch.Tensor) -> torch.Tensor:
        """See :class:`Frames`."""
        return weights.mean(dim=1).flatten(0, 1)

    def select(
        self, selection: Selection, labels: SelfAttentionCache
    ) -> tuple[Frames, SelfAttentionCache]:
        """See :class:`Frames`; the cache of the labels has a row for each cell."""
        assert isinstance(labels, GatheredLabels)  # of the same device
        cells, parents, rows = self.cells.select(selection)
        labels = labels.take(parents)
        if rows is None:
            return FramesGrid(cells, self.keys, self.values, self.bias), labels
        keys, values = (
            [x.index_select(0, rows) for x in layers]
            for layers in (self.keys, self.values)
        )
        return FramesGrid(cells, keys, values, self.bias.index_select(0, rows)), labels

    def extended(
        self, attentions: Sequence[Any], encoder_output: EncoderOutput
    ) -> Frames:
        """Put the keys and values of the new frames behind those of the old ones."""
        new = encoder_output.x[:, self.bias.size(-1) :]
        keys, values = _projected(attentions, new)
        return FramesGrid(
            self.cells,
            [torch.cat(pair, dim=-1) for pair in zip(self.keys, keys)],
            [torch.cat(pair, dim=-2) for pair in zip(self.values, values)],
            torch.nn.functional.pad(self.bias, (0, new.size(1))),
        )


def _projected(
    attentions: Sequence[Any], x: torch.Tensor
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return keys (B, h, d, T) and values (B, h, T, d) of frames (B, T, D), by layer."""
    layers = [project(attention, x) for attention in attentions]
    return (
        [keys.permute(0, 2, 3, 1).contiguous() for keys, _ in layers],
        [values.transpose(1, 2).contiguous() for _, values in layers],
    )
