"""Multi-head attention with keys and values cached, asked for one label at a time.

Of a primer all labels are taken at once: each hypothesis then has a row for each of P
positions, one after the other, in the place of one row.

h is the number of heads, d the size of one, D = h d; the other symbols are those of
:mod:`.base`.
"""

from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from espnet_lenbias.espnet_compat import (
    MultiHeadedAttention,
    PositionalEncoding,
    PositionwiseFeedForward,
    ScaledPositionalEncoding,
)
from espnet_lenbias.scorers.label_cache import KeysValues, SelfAttentionCache
from espnet_lenbias.scorers.products import linear

# with more rows than this a CPU takes them by so many
_MANY_ROWS, _ROWS = 1024, 512


def by_rows(
    function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> torch.Tensor:
    """Apply to (n, D) what treats every row alike, (n, D) to (n, D').

    With many rows a CPU takes some at a time, so that what it computes in between stays
    in its cache and the memory of one turn serves the next.
    """
    if x.device.type != "cpu" or len(x) <= _MANY_ROWS:
        return function(x)
    first = function(x[:_ROWS])
    result = first.new_empty(len(x), first.size(1))
    result[:_ROWS] = first
    for start in range(_ROWS, len(x), _ROWS):
        part = slice(start, start + _ROWS)
        result[part] = function(x[part])
    return result


def feed_forward(module: PositionwiseFeedForward, x: torch.Tensor) -> torch.Tensor:
    """Return what ESPnet's feed-forward layer makes of (n, D), (n, D), in evaluation."""
    return linear(module.w_2, module.activation(linear(module.w_1, x)))


def encoded(
    encoding: PositionalEncoding, x: torch.Tensor, position: int, count: int = 1
) -> torch.Tensor:
    """Add what ESPnet's positional encoding adds: (n P, D) to (n P, D).

    Args:
        encoding: ESPnet's.
        x: The embedded labels.
        position: The first of the P.
        count: P.
    """
    # it looks at the shape alone
    encoding.extend_pe(x[:1, :1].unsqueeze(2).expand(1, position + count, 1))
    offset = encoding.pe[0, position : position + count].to(x.dtype)
    if count > 1:
        offset = offset.repeat(len(x) // count, 1)
    if type(encoding) is ScaledPositionalEncoding:
        return x + encoding.alpha * offset
    return x * encoding.xscale + offset


def queries(attention: MultiHeadedAttention, x: torch.Tensor) -> torch.Tensor:
    """Project (n, D) to queries, (n, h, d)."""
    projected: torch.Tensor = attention.q_norm(
        _by_head(attention, linear(attention.linear_q, x))
    )
    return projected


def project(attention: MultiHeadedAttention, x: torch.Tensor) -> KeysValues:
    """Project (..., D) to keys and values, (..., h, d)."""
    keys = attention.k_norm(_by_head(attention, linear(attention.linear_k, x)))
    return KeysValues(keys, _by_head(attention, linear(attention.linear_v, x)))


def _by_head(attention: MultiHeadedAttention, x: torch.Tensor) -> torch.Tensor:
    """Divide what a linear layer gives among the heads: (..., D) to (..., h, d)."""
    return x.view(*x.shape[:-1], attention.h, x.size(-1) // attention.h)


def attend_labels(
    attention: MultiHeadedAttention,
    x: torch.Tensor,
    cache: SelfAttentionCache,
    layer: int,
    mask: torch.Tensor | None = None,
    count: int = 1,
) -> torch.Tensor:
    """Attend from the newest positions to all of the hypothesis that came before.

    Args:
        attention: The self-attention.
        x: (n P, D) its input at the newest positions.
        cache: With room for the newest positions, whose keys and values are put in.
        layer: Which of the layers of the cache is that of the attention.
        mask: (n, positions) bool, the positions to attend to, the newest counted;
            None: all.
        count: P.

    Returns:
        (n P, D) what was found.
    """
    if count > 1:
        return _attend_primer(attention, x, cache.layer(layer), mask, count)
    if cache.to_rows is not None:
        x = x[cache.to_rows]
        mask = None if mask is None else mask[cache.to_rows]
    n, position = len(x), cache.length
    labels = KeysValues(*(values[:n] for values in cache.layer(layer)))
    for values, new in zip(labels, project(attention, x)):
        values[:, position] = new
    past = (values[:, : position + 1].transpose(1, 2) for values in labels)
    keys, values = past  # (n, h, positions, d)
    query = queries(attention, x).unsqueeze(2)
    if mask is None:
        context = scaled_dot_product_attention(query, keys, values)
    else:
        mask = mask[:, None, None]
        context = scaled_dot_product_attention(query, keys, values, mask)
        # where there is nothing to attend to, ESPnet finds zeros
        context = context.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    context = linear(attention.linear_out, context.flatten(1))
    return context if cache.from_rows is None else context[cache.from_rows]


def _attend_primer(
    attention: MultiHeadedAttention,
    x: torch.Tensor,
    cache: KeysValues,
    mask: torch.Tensor | None,
    count: int,
) -> torch.Tensor:
    """See :func:`attend_labels`; nothing is cached yet, and each row is in its place."""
    n = len(x) // count

    def by_hypothesis(values: torch.Tensor) -> torch.Tensor:  # (n, P, h, d)
        return values.view(n, count, *values.shape[1:])

    new = [by_hypothesis(values) for values in project(attention, x)]
    for cached, values in zip(cache, new):
        cached[:n, :count] = values
    query = by_hypothesis(queries(attention, x)).transpose(1, 2)
    keys, values = (values.transpose(1, 2) for values in new)  # (n, h, P, d)
    if mask is None:
        context = scaled_dot_product_attention(query, keys, values, is_causal=True)
    else:
        mask = mask[:, None, None].expand(-1, -1, count, -1).tril()
        context = scaled_dot_product_attention(query, keys, values, mask)
        context = context.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    context = context.transpose(1, 2).flatten(0, 1).flatten(1)
    return linear(attention.linear_out, context)
