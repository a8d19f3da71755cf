"""An RNN decoder asked for all hypotheses of all utterances at once.

ESPnet asks its `RNNDecoder` for one hypothesis after the other. Here the embedding,
the cells and the output layer see all hypotheses in one call, and the attention those of
an utterance, or of all utterances, in one call, with the projection of the frames computed
once and shared; see :mod:`.rnn_frames` and :mod:`.rnn_attention`.

H is the size of a layer; the other symbols are those of :mod:`.base`.
"""

from typing import Any, NamedTuple

import torch

from espnet_lenbias.espnet_compat import RNNDecoder
from espnet_lenbias.scorers import rnn_attention
from espnet_lenbias.scorers.base import (
    EncoderOutput,
    Prefixes,
    Scores,
    Selection,
    log_probs,
)
from espnet_lenbias.scorers.products import lay_out, linear, lstm_cell
from espnet_lenbias.scorers.rnn_frames import RNNFrames, rnn_frames_of, taken


class RNNDecoderState(NamedTuple):
    """The state of all hypotheses, in r rows as the frames have them laid out."""

    frames: RNNFrames  # and what the attention keeps for the next label
    z: list[torch.Tensor]  # (r, H) output of each layer
    c: list[torch.Tensor | None]  # (r, H) cell of each layer; None in a GRU
    length: int  # labels that the layers have seen


def supports(decoder: Any) -> bool:
    """Tell whether this adapter computes what the decoder computes.

    All types of attention are; decoders that attend to several encoders are left to the
    fallback.
    """
    return (
        type(decoder) is RNNDecoder
        and decoder.num_encs == 1
        and rnn_attention.supports(decoder.att_list[0])
    )


class BatchedRNN:
    """Adapter of ESPnet's `RNNDecoder`, LSTM or GRU."""

    def __init__(self, decoder: RNNDecoder, return_attention: bool = False):
        self.decoder = decoder
        self.return_attention = return_attention

    def start(self, encoder_output: EncoderOutput) -> RNNDecoderState:
        """Show the attention the frames; layers start from zero."""
        lay_out(self.decoder)
        encoder_output = encoder_output.to(self.decoder.embed.weight.dtype)
        zeros = encoder_output.x.new_zeros(len(encoder_output), self.decoder.dunits)
        n_layers, is_lstm = self.decoder.dlayers, self.decoder.dtype == "lstm"
        return RNNDecoderState(
            rnn_frames_of(self.decoder.att_list[0], encoder_output),
            [zeros] * n_layers,
            [zeros if is_lstm else None] * n_layers,
            0,
        )

    def step(
        self,
        state: RNNDecoderState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix.

        The first call covers the whole primer, each later one a single label more.
        """
        decoder, length = self.decoder, prefixes.yseq.size(1)
        frames, z, c, seen = state
        for position in range(seen, length):
            x = decoder.embed(frames.spread(prefixes.yseq[:, position]))
            context, frames, weights = frames.attend(z[0], prefixes.spans)
            x = torch.cat([x, context], dim=1)
            z, c = self._cells(x, z, c)
        top = torch.cat([z[-1], context], dim=1) if decoder.context_residual else z[-1]
        scores = log_probs(linear(decoder.output, frames.collect(top)))
        attention = frames.all_weights(weights) if self.return_attention else None
        state = RNNDecoderState(frames, z, c, length)
        return Scores(scores, state, attention=attention)

    def _cells(
        self, x: torch.Tensor, z: list[torch.Tensor], c: list[torch.Tensor | None]
    ) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
        """Run the layers for a position, in evaluation: without dropout.

        Args:
            x: (r, ...) their input.
            z: (r, H) output of each layer at the position before.
            c: (r, H) cell of each layer there.

        Returns:
            Output and cell of each layer.
        """
        outputs, cells = [], []
        for cell, old, kept in zip(self.decoder.decoder, z, c):
            if kept is None:  # a GRU
                x = cell(x, old)
            else:
                x, kept = lstm_cell(cell, x, old, kept)
            outputs.append(x)
            cells.append(kept)
        return outputs, cells

    def select(self, state: RNNDecoderState, selection: Selection) -> RNNDecoderState:
        """Return the state of the chosen extensions."""
        frames, rows = state.frames.select(selection)
        z, c = taken([state.z, state.c], rows)
        return RNNDecoderState(frames, z, c, state.length)

    def final(self, state: RNNDecoderState) -> None:
        """A decoder adds nothing when a hypothesis ends."""
        return None
