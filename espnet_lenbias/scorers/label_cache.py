"""Keys and values of the labels, which follow the hypotheses when these are extended.

:class:`LabelCache` moves as little as it can, which is best on a CPU;
:class:`GatheredLabels` moves everything in one operation, for devices that prefer few
large ones.

h is the number of heads, d the size of one; the other symbols are those of :mod:`.base`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import torch

from espnet_lenbias.scorers.base import Selection
from espnet_lenbias.scorers.cells import prefers_grid

# how many positions a cache grows by when it is full, at least
_GROWTH = 8

# a cache has rows for up to 1/8 more hypotheses than there are: how many run changes from
# one position to the next, and new rows mean that everything is copied
_SPARE = 8


class KeysValues(NamedTuple):
    """Keys and values of one attention."""

    keys: torch.Tensor  # (..., positions, h, d)
    values: torch.Tensor  # likewise


class SelfAttentionCache(Protocol):
    """A cache of the labels of n hypotheses, for all layers of a network."""

    @property
    def length(self) -> int:
        """How many positions are filled."""

    @property
    def to_rows(self) -> torch.Tensor | None:
        """The hypothesis of each row, (n,); None: row i is hypothesis i."""

    @property
    def from_rows(self) -> torch.Tensor | None:
        """The row of each hypothesis, (n,); None: likewise."""

    def layer(self, number: int) -> KeysValues:
        """Return the (n or more rows, room for positions, h, d) of a layer."""

    def with_room(self, count: int = 1) -> "SelfAttentionCache":
        """Return the cache with room for so many positions more."""

    def filled(self, count: int = 1) -> "SelfAttentionCache":
        """Return the cache with so many positions more counted as filled."""

    def select(self, selection: Selection) -> "SelfAttentionCache":
        """Return the cache of the chosen extensions; this one is used up."""

    def copied(self) -> "SelfAttentionCache":
        """Return a cache in memory of its own."""


def empty_labels(attentions: Sequence[Any], x: torch.Tensor) -> SelfAttentionCache:
    """Return a cache without positions, for one hypothesis an utterance.

    Args:
        attentions: The self-attention of each layer.
        x: (B, ...) whose dtype and device it has.
    """
    kind = GatheredLabels if prefers_grid(x.device) else LabelCache
    return kind.empty(attentions, x)


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
    # (n,) the hypothesis of each row; None: the same
    to_rows: torch.Tensor | None = None
    from_rows: torch.Tensor | None = None  # (n,) `rows`, on the device of the cache

    @classmethod
    def empty(cls, attentions: Sequence[Any], x: torch.Tensor) -> "LabelCache":
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

    def layer(self, number: int) -> KeysValues:
        """See :class:`SelfAttentionCache`."""
        return self.layers[number]

    def with_room(self, count: int = 1) -> "LabelCache":
        """See :class:`SelfAttentionCache`."""
        room = self.layers[0].keys.size(1)
        if self.length + count <= room:
            return self
        self._grow(
            len(self.rows), max(self.length + count, room + max(_GROWTH, room // 2))
        )
        return self

    def filled(self, count: int = 1) -> "LabelCache":
        """See :class:`SelfAttentionCache`."""
        return replace(self, length=self.length + count)

    def select(self, selection: Selection) -> "LabelCache":
        """Return the cache of the chosen extensions; this one is used up."""
        rows, copied, sources = take_rows(self.rows, selection.parents_on_cpu)
        layers = self.layers
        if len(rows) > len(layers[0].keys):
            self._grow(len(rows), layers[0].keys.size(1))
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

    def copied(self) -> "LabelCache":
        """See :class:`SelfAttentionCache`."""
        layers = [KeysValues(*(values.clone() for values in kv)) for kv in self.layers]
        return replace(self, layers=layers)

    def _grow(self, n: int, room: int) -> None:
        """Move to memory with room for n hypotheses and so many positions.

        One after the other, each leaving its old memory: all at once they would need
        twice as much.
        """
        n_old, n_rows = len(self.rows), n + n // _SPARE

        def copied(cache: torch.Tensor) -> torch.Tensor:
            fresh = cache.new_empty(n_rows, room, *cache.shape[2:])
            fresh[:n_old, : self.length] = cache[:n_old, : self.length]
            return fresh

        for i in range(len(self.layers)):
            for part in KeysValues._fields:
                fresh = copied(getattr(self.layers[i], part))
                self.layers[i] = self.layers[i]._replace(**{part: fresh})


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


@dataclass(frozen=True)
class GatheredLabels:
    """Keys and values of the labels in one tensor, the row of each hypothesis its place.

    It holds room for more positions than there are, and so has the same shape for several
    positions.
    """

    memory: torch.Tensor  # (layers, 2, n, h, room for positions, d)
    length: int  # ... of which so many positions are filled
    to_rows: ClassVar[None] = None
    from_rows: ClassVar[None] = None

    @classmethod
    def empty(cls, attentions: Sequence[Any], x: torch.Tensor) -> "GatheredLabels":
        """See :func:`empty_labels`; the layers are all of one size."""
        h, d = attentions[0].h, attentions[0].d_k
        return cls(x.new_empty(len(attentions), 2, len(x), h, 0, d), 0)

    def layer(self, number: int) -> KeysValues:
        """See :class:`SelfAttentionCache`."""
        return KeysValues(*(self.memory[number, i].transpose(1, 2) for i in (0, 1)))

    def with_room(self, count: int = 1) -> "GatheredLabels":
        """See :class:`SelfAttentionCache`."""
        *shape, room, d = self.memory.shape
        if self.length + count <= room:
            return self
        larger = max(self.length + count, room + max(_GROWTH, room // 2))
        fresh = self.memory.new_empty(*shape, larger, d)
        fresh[..., :room, :] = self.memory
        return GatheredLabels(fresh, self.length)

    def filled(self, count: int = 1) -> "GatheredLabels":
        """See :class:`SelfAttentionCache`."""
        return replace(self, length=self.length + count)

    def select(self, selection: Selection) -> "GatheredLabels":
        """See :class:`SelfAttentionCache`."""
        return self.take(selection.parents)

    def take(self, rows: torch.Tensor) -> "GatheredLabels":
        """Return a cache of so many of the rows, in this order."""
        return replace(self, memory=self.memory.index_select(2, rows))

    def copied(self) -> "GatheredLabels":
        """See :class:`SelfAttentionCache`."""
        return replace(self, memory=self.memory.clone())
