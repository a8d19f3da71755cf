"""Multi-head attention with keys and values cached, asked for one label at a time.

h is the number of heads, d the size of one, D = h d; the other symbols are those of
:mod:`.base`.
"""

from typing import NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention

from espnet_lenbias.espnet_compat import (
    MultiHeadedAttention,
    PositionalEncoding,
    ScaledPositionalEncoding,
)

# how many positions the cache of the labels grows by when it is full
_GROWTH = 8


class KeysValues(NamedTuple):
    """Keys and values of one attention."""

    keys: torch.Tensor  # (..., positions, h, d)
    values: torch.Tensor  # likewise

    def take(self, rows: torch.Tensor) -> "KeysValues":
        """Return the cache of some of the hypotheses, in fresh memory."""
        return KeysValues(*(cache.index_select(0, rows) for cache in self))


def no_positions(attention: MultiHeadedAttention, x: torch.Tensor) -> KeysValues:
    """Return a cache without room, for one hypothesis an utterance: (B, 0, h, d)."""
    empty = x.new_empty(len(x), 0, attention.h, attention.d_k)
    return KeysValues(empty, empty)


def with_room(layers: list[KeysValues], position: int) -> list[KeysValues]:
    """Return the caches of all layers with room for a position, larger if need be."""
    if position < layers[0].keys.size(1):
        return layers
    return [_grown(cache) for cache in layers]


def _grown(cache: KeysValues) -> KeysValues:
    """Return a cache with room for some positions more, in fresh memory."""
    n, _, h, d = cache.keys.shape
    room = cache.keys.new_zeros(n, _GROWTH, h, d)
    return KeysValues(*(torch.cat([old, room], dim=1) for old in cache))


def encoded(
    encoding: PositionalEncoding, x: torch.Tensor, position: int
) -> torch.Tensor:
    """Add to (n, D) what ESPnet's positional encoding adds at a position: (n, D)."""
    encoding.extend_pe(x.new_zeros(1, position + 1, 1))
    offset = encoding.pe[0, position].to(x.dtype)
    if type(encoding) is ScaledPositionalEncoding:
        return x + encoding.alpha * offset
    return x * encoding.xscale + offset


def queries(attention: MultiHeadedAttention, x: torch.Tensor) -> torch.Tensor:
    """Project (n, D) to queries, (n, h, d)."""
    return attention.q_norm(attention.linear_q(x).unflatten(-1, (attention.h, -1)))


def project(attention: MultiHeadedAttention, x: torch.Tensor) -> KeysValues:
    """Project (..., D) to keys and values, (..., h, d)."""
    split = (attention.h, -1)
    keys = attention.k_norm(attention.linear_k(x).unflatten(-1, split))
    return KeysValues(keys, attention.linear_v(x).unflatten(-1, split))


def attend_labels(
    attention: MultiHeadedAttention,
    x: torch.Tensor,
    labels: KeysValues,
    position: int,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend from the newest position to all of the hypothesis.

    Args:
        attention: The self-attention.
        x: (n, D) its input at the newest position.
        labels: Keys and values of the earlier positions; this one's are put in.
        position: The newest position.
        mask: (n, position + 1) bool, the positions to attend to; None: all.

    Returns:
        (n, D) what was found.
    """
    for cache, new in zip(labels, project(attention, x)):
        cache[:, position] = new
    past = (cache[:, : position + 1].transpose(1, 2) for cache in labels)
    keys, values = past  # (n, h, positions, d)
    query = queries(attention, x).unsqueeze(2)
    if mask is None:
        context = scaled_dot_product_attention(query, keys, values)
    else:
        mask = mask[:, None, None]
        context = scaled_dot_product_attention(query, keys, values, mask)
        # where there is nothing to attend to, ESPnet finds zeros
        context = context.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return attention.linear_out(context.flatten(1))
