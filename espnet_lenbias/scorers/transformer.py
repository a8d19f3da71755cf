"""A transformer decoder with keys and values cached, asked for one label at a time.

ESPnet caches the outputs of the layers and computes keys and values from them anew at
every position, those of the encoder output even for every hypothesis. Here

* the keys and values of the encoder output are computed once for each utterance and
  shared by its hypotheses, which attend to them in one matrix product;
* the keys and values of the labels are computed once and follow the hypotheses.

h is the number of heads, d the size of one, D = h d; the other symbols are those of
:mod:`.base`.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import torch

from espnet_lenbias.espnet_compat import (
    DecoderLayer,
    MultiHeadedAttention,
    PositionalEncoding,
    PositionwiseFeedForward,
    ScaledPositionalEncoding,
    TransformerDecoder,
)
from espnet_lenbias.scorers.attention import (
    attend_labels,
    by_rows,
    encoded,
    feed_forward,
    queries,
)
from espnet_lenbias.scorers.base import (
    EncoderOutput,
    Prefixes,
    Scores,
    Selection,
    Span,
    log_probs,
    widened,
)
from espnet_lenbias.scorers.frames import Frames, frames_of
from espnet_lenbias.scorers.label_cache import (
    KeysValues,
    SelfAttentionCache,
    empty_labels,
)
from espnet_lenbias.scorers.products import lay_out, linear


class TransformerDecoderState(NamedTuple):
    """What is cached."""

    frames: Frames
    labels: SelfAttentionCache


def supports(decoder: Any) -> bool:
    """Tell whether this adapter computes what the decoder computes.

    Decoders that are built of other layers (lightweight and dynamic convolutions, two
    attended sources) or take other input are left to the fallback.
    """
    if type(decoder) is not TransformerDecoder or decoder.output_layer is None:
        return False
    embedding, *rest = decoder.embed
    if not isinstance(embedding, torch.nn.Embedding) or len(rest) != 1:
        return False
    return type(rest[0]) in (PositionalEncoding, ScaledPositionalEncoding) and all(
        type(layer) is DecoderLayer
        and type(layer.self_attn) is MultiHeadedAttention
        and type(layer.src_attn) is MultiHeadedAttention
        and type(layer.feed_forward) is PositionwiseFeedForward
        and layer.sequential_attn is None
        for layer in decoder.decoders
    )


class CachedTransformer:
    """Adapter of ESPnet's `TransformerDecoder`."""

    def __init__(
        self,
        decoder: TransformerDecoder,
        return_hs: bool = False,
        return_attention: bool = False,
    ):
        self.decoder = decoder
        self._return_hs = return_hs
        self.return_attention = return_attention

    @property
    def dtype(self) -> torch.dtype:
        """What the decoder computes in: the dtype of its weights."""
        return self.decoder.embed[0].weight.dtype

    def start(self, encoder_output: EncoderOutput) -> TransformerDecoderState:
        """Compute keys and values of the encoder output, once for all positions."""
        lay_out(self.decoder)
        encoder_output = encoder_output.to(self.dtype)
        layers = self.decoder.decoders
        attentions = [layer.src_attn for layer in layers]
        return TransformerDecoderState(
            frames_of(attentions, encoder_output, _attend_frames),
            empty_labels([layer.self_attn for layer in layers], encoder_output.x),
        )

    def step(
        self,
        state: TransformerDecoderState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix.

        The first call covers the whole primer, each later one a single label more.
        """
        frames, labels = state
        position = labels.length
        count = prefixes.yseq.size(1) - position
        spans, labels = widened(prefixes.spans, count), labels.with_room(count)
        embedding, encoding = self.decoder.embed
        newest = frames.spread(prefixes.yseq[:, position:])
        x = encoded(encoding, embedding(newest.flatten()), position, count)
        attention = []
        for i, layer in enumerate(self.decoder.decoders):
            x, weights = _layer(layer, x, labels, i, frames, spans, count)
            if self.return_attention:
                attention.append(frames.mean_over_heads(weights)[count - 1 :: count])
        labels = labels.filled(count)
        x = frames.collect(x[count - 1 :: count])
        if self.decoder.normalize_before:
            x = self.decoder.after_norm(x)
        scores = by_rows(self._log_probs, x)
        mean = None
        if self.return_attention:
            mean = frames.collect(torch.stack(attention).mean(dim=0))
        state = TransformerDecoderState(frames, labels)
        return Scores(scores, state, x if self._return_hs else None, mean)

    def _log_probs(self, x: torch.Tensor) -> torch.Tensor:
        """Return the log-prob of each label, (n, D) to (n, V)."""
        return log_probs(linear(self.decoder.output_layer, x))

    def select(
        self, state: TransformerDecoderState, selection: Selection
    ) -> TransformerDecoderState:
        """Return the state of the chosen extensions."""
        return TransformerDecoderState(*state.frames.select(selection, state.labels))

    def final(self, state: TransformerDecoderState) -> None:
        """A decoder adds nothing when a hypothesis ends."""
        return None


def _layer(
    layer: DecoderLayer,
    x: torch.Tensor,
    labels: SelfAttentionCache,
    number: int,
    frames: Frames,
    spans: list[Span],
    count: int,
) -> tuple[torch.Tensor, Any]:
    """Run one decoder layer for the newest positions of each hypothesis.

    Args:
        layer: The layer.
        x: (r P, D) its input, as the frames have it laid out.
        labels: Keys and values of the earlier positions; these ones' are put in.
        number: Which layer it is.
        frames: The encoder output.
        spans: The rows of each utterance.
        count: P, the positions.

    Returns:
        (r P, D) output, and the weights of the attention to the encoder output.
    """
    y = layer.norm1(x) if layer.normalize_before else x
    context = attend_labels(layer.self_attn, y, labels, number, count=count)
    x = _add(layer, x, y, context, "concat_linear1")
    if not layer.normalize_before:
        x = layer.norm1(x)

    y = layer.norm2(x) if layer.normalize_before else x
    context, weights = frames.attend(number, layer.src_attn, y, spans)
    x = _add(layer, x, y, context, "concat_linear2")
    if not layer.normalize_before:
        x = layer.norm2(x)

    y = layer.norm3(x) if layer.normalize_before else x
    x = x + by_rows(partial(feed_forward, layer.feed_forward), y)
    return x if layer.normalize_before else layer.norm3(x), weights


def _add(
    layer: DecoderLayer,
    x: torch.Tensor,
    y: torch.Tensor,
    context: torch.Tensor,
    concat: str,
) -> torch.Tensor:
    """Add what an attention found to the residual branch: (n, D)."""
    if layer.concat_after:
        context = linear(getattr(layer, concat), torch.cat([y, context], dim=-1))
    return x + context


def _attend_frames(
    attention: MultiHeadedAttention,
    x: torch.Tensor,
    frames_kv: list[KeysValues],
    spans: list[Span],
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Attend to the encoder output on a CPU, utterance by utterance.

    One product for each utterance over its own frames: nothing is expanded, and there is
    no padding to mask.

    Args:
        attention: The layer's.
        x: (n, D) its input.
        frames_kv: Keys and values of the encoder output, for each utterance.
        spans: The rows of each utterance among the n.

    Returns:
        (n, D) what was found, and for each utterance the weights, (h, n_b, T_utt).
    """
    query = queries(attention, x) / math.sqrt(attention.d_k)
    contexts, every = [], []
    for span in spans:
        keys, values = frames_kv[span.utt]  # (T, h, d)
        weights = query[span.rows].transpose(0, 1) @ keys.permute(1, 2, 0)
        weights = weights.softmax(dim=-1)
        context = weights @ values.transpose(0, 1)  # (h, n_b, d)
        contexts.append(context.transpose(0, 1).flatten(1))
        every.append(weights)
    return linear(attention.linear_out, torch.cat(contexts)), every
