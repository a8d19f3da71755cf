"""An RNN decoder asked for all hypotheses of all utterances at once.

ESPnet asks its `RNNDecoder` for one hypothesis after the other. Here the embedding,
the cells and the output layer see all n hypotheses in one call, and the attention sees
those of an utterance in one call: over its own frames, so there is no padding to mask,
and with the projection of the frames computed once and shared; see :mod:`.rnn_attention`.

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
    Span,
    attention_of_all,
    dtype_of,
    log_probs,
)
from espnet_lenbias.scorers.rnn_attention import Attention, attention_to, map_tree


class RNNDecoderState(NamedTuple):
    """The state of all hypotheses, that of the attention utterance by utterance."""

    attentions: list[Attention]  # one for each utterance
    z: list[torch.Tensor]  # (n, H) output of each layer
    c: list[torch.Tensor | None]  # (n, H) cell of each layer; None in a GRU
    # utterance -> its first row and what the attention keeps of its n_b hypotheses:
    # nothing at first, then a tree of tensors (n_b, ...)
    past: dict[int, tuple[int, Any]]
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
        """Give each utterance an attention to its frames; layers start from zero."""
        encoder_output = encoder_output.to(dtype_of(self.decoder))
        zeros = encoder_output.x.new_zeros(len(encoder_output), self.decoder.dunits)
        n_layers, is_lstm = self.decoder.dlayers, self.decoder.dtype == "lstm"
        attention = self.decoder.att_list[0]
        return RNNDecoderState(
            [
                attention_to(encoder_output.frames(b), attention)
                for b in range(len(encoder_output))
            ],
            [zeros] * n_layers,
            [zeros if is_lstm else None] * n_layers,
            {},
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
        attentions, z, c, past, seen = state
        for position in range(seen, length):
            x = decoder.embed(prefixes.yseq[:, position])
            context, past, weights = _attend(attentions, z[0], past, prefixes.spans)
            x = torch.cat([x, context], dim=1)
            # it fills the lists that it gets, and puts no cells in for a GRU
            z, c = decoder.rnn_forward(x, [None] * len(z), [None] * len(z), z, c)
        top = torch.cat([z[-1], context], dim=1) if decoder.context_residual else z[-1]
        scores = log_probs(decoder.output(top))
        attention = None
        if self.return_attention:
            longest = max(attention.n_frames for attention in attentions)
            attention = attention_of_all(weights, longest)
        state = RNNDecoderState(attentions, z, c, past, length)
        return Scores(scores, state, attention=attention)

    def select(self, state: RNNDecoderState, selection: Selection) -> RNNDecoderState:
        """Return the state of the chosen extensions."""

        def taken(tree: Any, rows: torch.Tensor) -> Any:
            return map_tree(lambda values: values.index_select(0, rows), tree)

        past = {}
        for span in selection.spans:
            first, tree = state.past[span.utt]
            hyps = selection.parents[span.rows] - first
            past[span.utt] = (span.start, taken(tree, hyps))
        z, c = taken([state.z, state.c], selection.parents)
        return RNNDecoderState(state.attentions, z, c, past, state.length)

    def final(self, state: RNNDecoderState) -> None:
        """A decoder adds nothing when a hypothesis ends."""
        return None


def _attend(
    attentions: list[Attention],
    z: torch.Tensor,
    past: dict[int, tuple[int, Any]],
    spans: list[Span],
) -> tuple[torch.Tensor, dict[int, tuple[int, Any]], list[torch.Tensor]]:
    """Attend to the frames of each utterance.

    Args:
        attentions: To the frames of each utterance.
        z: (n, H) output of the lowest layer.
        past: What the attentions have kept, see `RNNDecoderState`.
        spans: The rows of each utterance among the n.

    Returns:
        (n, D) what was found, what the attentions keep now, and for each utterance the
        weights of its frames, (n_b, T_utt).
    """
    contexts, kept, every = [], {}, []
    for span in spans:
        _, old = past.get(span.utt, (0, None))
        context, new, weights = attentions[span.utt].attend(z[span.rows], old)
        contexts.append(context)
        every.append(weights)
        kept[span.utt] = (span.start, new)
    return torch.cat(contexts), kept, every
