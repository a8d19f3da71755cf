"""Multi-head attention with keys and values cached, asked for one label at a time.

h is the number of heads, d the size of one, D = h d; the other symbols are those of
:mod:`.base`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention

from espnet_lenbias.espnet_compat import (
    MultiHeadedAttention,
    PositionalEncoding,
    ScaledPositionalEncoding,
)
from espnet_lenbias.scorers.base import Selection

# how many positions a cache grows by when it is full, at least
_GROWTH = 8

# a cache has rows for up to 1/8 more hypotheses than there are: how many run changes from
# one position to the next, and new rows mean that everything is copied
_SPARE = 8

# with more rows than this a CPU takes them by so many
_MANY_ROWS, _ROWS = 1024, 512


class KeysValues(NamedTuple):
    """Keys and values of one attention."""

    keys: torch.Tensor  # (..., positions, h, d)
    values: torch.Tensor  # likewise


@dataclass(frozen=True)
class LabelCache:
    """Keys and values of the labels of n hypotheses, for all layers of a network.

    Every hypothesis has a row of its own, whatever its place among the n. When the
    hypotheses are extended, one child of each parent takes over the row, with nothing
    moved, and only the other children are copied, into rows that became free.
    """

    layers: list[KeysValues]  # (n or more rows, room for positions, h, d), ...
    length: int  # ... of which so many positions are filled
    rows: torch.Tensor  # (n,) the row of each hypothesis, on the CPU
    to_rows: torch.Tensor | None = (
        None  # (n,) the hypothesis of each row; None: the same
    )
    from_rows: torch.Tensor | None = None  # (n,) `rows`, on the device of the cache

    @classmethod
    def empty(
        cls, attentions: list[MultiHeadedAttention], x: torch.Tensor
    ) -> "LabelCache":
        """Return a cache without positions, for one hypothesis an utterance.

        Args:
            attentions: The self-attention of each layer.
            x: (B, ...) whose dtype and device it has.
        """
        layers = []
        for attention in attentions:
            nothing = x.new_empty(len(x), 0, attention.h, attention.d_k)
            layers.append(KeysValues(nothing, nothing))
        return cls(layers, 0, torch.arange(len(x)))

    def with_room(self) -> "LabelCache":
        """Return the cache with room for a position more."""
        room = self.layers[0].keys.size(1)
        if self.length < room:
            return self
        room += max(_GROWTH, room // 2)
        return replace(self, layers=self._in_fresh_memory(len(self.rows), room))

    def filled(self) -> "LabelCache":
        """Return the cache with one position more counted as filled."""
        return replace(self, length=self.length + 1)

    def select(self, selection: Selection) -> "LabelCache":
        """Return the cache of the chosen extensions; this one is used up."""
        rows, copied, sources = take_rows(self.rows, selection.parents_on_cpu)
        layers = self.layers
        if len(rows) > len(layers[0].keys):
            layers = self._in_fresh_memory(len(rows), layers[0].keys.size(1))
        device = layers[0].keys.device
        if len(copied):
            copied = copied.to(device, non_blocking=True)
            sources = sources.to(device, non_blocking=True)
            for cache in [cache for layer in layers for cache in layer]:
                filled = cache[:, : self.length]
                filled[copied] = filled[sources]
        if bool((rows == torch.arange(len(rows))).all()):
            return LabelCache(layers, self.length, rows)
        to_rows = torch.empty_like(rows)
        to_rows[rows] = torch.arange(len(rows))
        to_rows, from_rows = (r.to(device, non_blocking=True) for r in (to_rows, rows))
        return LabelCache(layers, self.length, rows, to_rows, from_rows)

    def _in_fresh_memory(self, n: int, room: int) -> list[KeysValues]:
        """Return the layers with room for n hypotheses and so many positions."""
        n_old, n_rows = len(self.rows), n + n // _SPARE

        def copied(cache: torch.Tensor) -> torch.Tensor:
            fresh = cache.new_empty(n_rows, room, *cache.shape[2:])
            fresh[:n_old, : self.length] = cache[:n_old, : self.length]
            return fresh

        return [
            KeysValues(*(copied(cache) for cache in layer)) for layer in self.layers
        ]


def take_rows(
    rows: torch.Tensor, parents: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give rows 0 .. m-1 to m children, to as many as can be their parent's own.

    Args:
        rows: (n,) the row of each parent, a permutation of 0 .. n-1.
        parents: (m,) the parent of each child.

    Returns:
        (m,) the row of each child, (c,) the rows that have to be filled by copying, and
        (c,) the rows that they are copied from, none of which is among the former.
    """
    n, m = len(rows), len(parents)
    children = torch.arange(m)
    first = torch.full((n,), m).scatter_reduce(0, parents, children, "amin")
    taken = rows[parents]
    stays = (first[parents] == children) & (taken < m)
    free = torch.ones(m, dtype=torch.bool)
    free[taken[stays]] = False
    copied = free.nonzero().squeeze(1)
    sources = taken[~stays]
    taken[~stays] = copied
    return taken, copied, sources


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
    cache: LabelCache,
    layer: int,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend from the newest position to all of the hypothesis.

    Args:
        attention: The self-attention.
        x: (n, D) its input at the newest position.
        cache: With room for the newest position, whose keys and values are put in.
        layer: Which of the layers of the cache is that of the attention.
        mask: (n, positions) bool, the positions to attend to, the newest one counted;
            None: all.

    Returns:
        (n, D) what was found.
    """
    if cache.to_rows is not None:
        x = x[cache.to_rows]
        mask = None if mask is None else mask[cache.to_rows]
    n, position = len(x), cache.length
    labels = KeysValues(*(values[:n] for values in cache.layers[layer]))
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
    context = attention.linear_out(context.flatten(1))
    return context if cache.from_rows is None else context[cache.from_rows]
