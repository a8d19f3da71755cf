"""Language models asked for all hypotheses at once, their states kept as tensors.

ESPnet takes the state of a batch apart into one for each hypothesis and stacks it again
at every position; its transformer LM also computes the keys and values of all earlier
labels anew. Here a state is a few tensors that follow the hypotheses by one reordering.

Language models do not see the encoder output, so utterances play no part. The symbols
are those of :mod:`.base`.
"""

from typing import Any, NamedTuple

import torch

from espnet_lenbias.espnet_compat import (
    EncoderLayer,
    MultiHeadedAttention,
    PositionalEncoding,
    PositionwiseFeedForward,
    SequentialRNNLM,
    TransformerLM,
)
from espnet_lenbias.scorers.attention import (
    attend_labels,
    encoded,
    feed_forward,
)
from espnet_lenbias.scorers.base import (
    EncoderOutput,
    Prefixes,
    Scores,
    Selection,
    log_probs,
)
from espnet_lenbias.scorers.label_cache import SelfAttentionCache, empty_labels
from espnet_lenbias.scorers.products import lay_out, linear

# the label that ESPnet's transformer LM takes for padding and does not attend to
_PAD = 0


class RNNLMState(NamedTuple):
    """The state of an RNN LM."""

    hidden: Any  # of torch's RNN: tensors (layers, n, H); None before the primer
    length: int  # labels that it has seen


def is_rnn_lm(lm: Any) -> bool:
    """Tell whether `BatchedRNNLM` computes what the language model computes."""
    return type(lm) is SequentialRNNLM


class BatchedRNNLM:
    """Adapter of ESPnet's `SequentialRNNLM`, of whatever kind of RNN."""

    def __init__(self, lm: SequentialRNNLM):
        self.lm = lm

    def start(self, encoder_output: EncoderOutput) -> RNNLMState:
        """Return the state before the primer."""
        return RNNLMState(None, 0)

    def step(
        self,
        state: RNNLMState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix.

        The first call covers the whole primer, each later one a single label more.
        """
        yseq = prefixes.yseq
        logits, hidden = self.lm(yseq[:, state.length :], state.hidden)  # (n, new, V)
        scores = log_probs(logits[:, -1])
        return Scores(scores, RNNLMState(hidden, yseq.size(1)))

    def select(self, state: RNNLMState, selection: Selection) -> RNNLMState:
        """Return the state of the chosen extensions."""
        hidden, rows = state.hidden, selection.parents
        if isinstance(hidden, tuple):  # of an LSTM
            hidden = tuple(values.index_select(1, rows) for values in hidden)
        else:
            hidden = hidden.index_select(1, rows)
        return RNNLMState(hidden, state.length)

    def final(self, state: RNNLMState) -> None:
        """This LM adds nothing when a hypothesis ends."""
        return None


class TransformerLMState(NamedTuple):
    """The state of a transformer LM."""

    labels: SelfAttentionCache


def is_transformer_lm(lm: Any) -> bool:
    """Tell whether `CachedTransformerLM` computes what the language model computes.

    It does for all that `TransformerLM` builds; one whose layers were exchanged for
    others is left to the fallback.
    """
    if type(lm) is not TransformerLM:
        return False
    encoding = lm.encoder.embed[-1]
    if type(encoding) is not PositionalEncoding and len(encoding) > 0:
        return False
    return all(
        type(layer) is EncoderLayer
        and type(layer.self_attn) is MultiHeadedAttention
        and type(layer.feed_forward) is PositionwiseFeedForward
        and not layer.concat_after
        for layer in lm.encoder.encoders
    )


class CachedTransformerLM:
    """Adapter of ESPnet's `TransformerLM`, with keys and values cached."""

    def __init__(self, lm: TransformerLM):
        self.lm = lm

    def start(self, encoder_output: EncoderOutput) -> TransformerLMState:
        """Return caches without a position in them."""
        lay_out(self.lm)
        # LMs may be of another dtype than the encoder output
        x = self.lm.embed.weight.new_empty(len(encoder_output), 0)
        attentions = [layer.self_attn for layer in self.lm.encoder.encoders]
        return TransformerLMState(empty_labels(attentions, x))

    def step(
        self,
        state: TransformerLMState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix.

        The first call covers the whole primer, each later one a single label more.
        """
        encoder, labels, yseq = self.lm.encoder, state.labels, prefixes.yseq
        mask, position = yseq != _PAD, labels.length
        count = yseq.size(1) - position
        labels = labels.with_room(count)
        x = self._embed(yseq[:, position:], position)
        for i, layer in enumerate(encoder.encoders):
            x = _layer(layer, x, labels, i, mask, count)
        labels = labels.filled(count)
        x = x[count - 1 :: count]
        if encoder.normalize_before:
            x = encoder.after_norm(x)
        scores = log_probs(linear(self.lm.decoder, x))
        return Scores(scores, TransformerLMState(labels))

    def _embed(self, labels: torch.Tensor, position: int) -> torch.Tensor:
        """Embed the labels that hypotheses have from a position on: (n, P) to (n P, D)."""
        *embed, encoding = self.lm.encoder.embed
        x = self.lm.embed(labels.flatten())
        for module in embed:
            x = module(x)
        if isinstance(encoding, PositionalEncoding):
            x = encoded(encoding, x, position, labels.size(1))
        return x

    def select(
        self, state: TransformerLMState, selection: Selection
    ) -> TransformerLMState:
        """Return the state of the chosen extensions."""
        return TransformerLMState(state.labels.select(selection))

    def final(self, state: TransformerLMState) -> None:
        """This LM adds nothing when a hypothesis ends."""
        return None


def _layer(
    layer: EncoderLayer,
    x: torch.Tensor,
    labels: SelfAttentionCache,
    number: int,
    mask: torch.Tensor,
    count: int,
) -> torch.Tensor:
    """Run one layer for the newest positions of each hypothesis.

    Args:
        layer: The layer.
        x: (n P, D) its input.
        labels: Keys and values of the earlier positions; these ones' are put in.
        number: Which layer it is.
        mask: (n, positions) bool, the positions to attend to, the newest counted.
        count: P, the positions.

    Returns:
        (n P, D) output.
    """
    y = layer.norm1(x) if layer.normalize_before else x
    x = x + attend_labels(layer.self_attn, y, labels, number, mask, count)
    if not layer.normalize_before:
        x = layer.norm1(x)

    y = layer.norm2(x) if layer.normalize_before else x
    x = x + feed_forward(layer.feed_forward, y)
    return x if layer.normalize_before else layer.norm2(x)
