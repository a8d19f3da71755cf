"""The matrix products that a decoder cannot do without, and the time that they take.

They are what a search with cached keys and values has to compute: nothing twice, nothing
for hypotheses that were pruned, and no softmax, norm, top-k or copy in between.

========  =====================================================================
rows      hypotheses of all utterances
T         encoder frames of an utterance
========  =====================================================================
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from decoders import LMSize, LSTMSize, TransformerSize

# A CPU takes so many rows of the left factor at a time: all use the same memory, so that
# it stays in the cache, as it would in a decoder that is written for speed.
_ROWS_AT_A_TIME = 1024


@dataclass(frozen=True)
class Product:
    """So many products of an (m, k) matrix with a (k, n) matrix."""

    right: str  # name of the right factors: weights, keys, ...
    batch: int
    m: int
    k: int
    n: int

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.k * self.n


def products(
    size: TransformerSize | LSTMSize | LMSize,
    beam: int,
    utts: int,
    frames: int,
    steps: int,
) -> list[Product]:
    """List the products of a search: once for each utterance, then step by step.

    Args:
        size: Of the decoder, or of the language model.
        beam: K; the first step has one hypothesis of each utterance instead.
        utts: Utterances decoded together.
        frames: T.
        steps: Positions.
    """
    if isinstance(size, TransformerSize):
        once, step = _transformer_once, _transformer_step
    elif isinstance(size, LMSize):
        once, step = _nothing, _lm_step
    else:
        once, step = _lstm_once, _lstm_step
    listed = list(once(size, utts, frames))
    for position in range(1, steps + 1):
        rows = utts if position == 1 else utts * beam
        listed += step(size, rows, utts, frames, position)
    return listed


def _transformer_once(
    size: TransformerSize, utts: int, frames: int
) -> Iterator[Product]:
    for i in range(size.blocks):
        for name in ("keys", "values"):
            right = f"block {i} source {name}"
            yield Product(right, 1, utts * frames, size.units, size.units)


def _transformer_step(
    size: TransformerSize, rows: int, utts: int, frames: int, position: int
) -> Iterator[Product]:
    h, units = size.heads, size.units
    d = units // h
    for i in range(size.blocks):
        block = f"block {i}"
        yield from _self_attention(size, block, rows, position)
        for name in ("source queries", "source out"):
            yield Product(f"{block} {name}", 1, rows, units, units)
        yield Product(f"{block} frame keys", utts * h, rows // utts, d, frames)
        yield Product(f"{block} frame values", utts * h, rows // utts, frames, d)
        yield from _feed_forward(size, block, rows)
    yield Product("output", 1, rows, units, size.vocab)


def _self_attention(
    size: TransformerSize | LMSize, block: str, rows: int, position: int
) -> Iterator[Product]:
    h, units = size.heads, size.units
    d = units // h
    for name in ("queries", "keys", "values", "out"):
        yield Product(f"{block} {name}", 1, rows, units, units)
    yield Product(f"{block} label keys", rows * h, 1, d, position)
    yield Product(f"{block} label values", rows * h, 1, position, d)


def _feed_forward(
    size: TransformerSize | LMSize, block: str, rows: int
) -> Iterator[Product]:
    yield Product(f"{block} feed forward in", 1, rows, size.units, size.linear_units)
    yield Product(f"{block} feed forward out", 1, rows, size.linear_units, size.units)


def _nothing(size: LMSize, utts: int, frames: int) -> Iterator[Product]:
    yield from ()  # a language model has no frames


def _lm_step(
    size: LMSize, rows: int, utts: int, frames: int, position: int
) -> Iterator[Product]:
    yield Product("lm embedding", 1, rows, size.embed_units, size.units)
    for i in range(size.blocks):
        block = f"lm block {i}"
        yield from _self_attention(size, block, rows, position)
        yield from _feed_forward(size, block, rows)
    yield Product("lm output", 1, rows, size.units, size.vocab)


def _lstm_once(size: LSTMSize, utts: int, frames: int) -> Iterator[Product]:
    yield Product("frames", 1, utts * frames, size.units, size.attention_units)


def _lstm_step(
    size: LSTMSize, rows: int, utts: int, frames: int, position: int
) -> Iterator[Product]:
    units, attention, channels = size.units, size.attention_units, size.channels
    yield Product("state", 1, rows, units, attention)
    # the convolution as one matrix for all frames, which is less than its taps are
    # where they reach beyond the ends of the utterance
    taps = min(frames, 2 * size.filters + 1)
    yield Product("convolution", 1, rows, taps, frames * channels)
    yield Product("channels", 1, rows * frames, channels, attention)
    yield Product("energy", 1, rows * frames, attention, 1)
    yield Product("context", utts, rows // utts, frames, units)
    for i in range(size.layers):
        inputs = 2 * units if i == 0 else units  # the lowest: embedding and context
        yield Product(f"layer {i} input", 1, rows, inputs, 4 * units)
        yield Product(f"layer {i} recurrent", 1, rows, units, 4 * units)
    yield Product("output", 1, rows, units, size.vocab)


class Floor:
    """Products on memory that is there beforehand.

    Right factors have memory of their own, as weights and caches do; left factors and
    results share one each.
    """

    def __init__(self, listed: list[Product], device: torch.device, dtype: torch.dtype):
        """Allocate everything."""
        self._calls: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        at_a_time = _ROWS_AT_A_TIME if device.type == "cpu" else None
        pieces = [piece for p in listed for piece in _pieces(p, at_a_time)]
        sizes: dict[str, int] = {"left": 0, "result": 0}
        for p in pieces:
            sizes["left"] = max(sizes["left"], p.batch * p.m * p.k)
            sizes["result"] = max(sizes["result"], p.batch * p.m * p.n)
            sizes[p.right] = max(sizes.get(p.right, 0), p.batch * p.k * p.n)
        memory = {
            name: torch.rand(size, device=device, dtype=dtype)
            for name, size in sizes.items()
        }

        def matrices(name: str, *shape: int) -> torch.Tensor:
            batch, n, k = shape
            part = memory[name][: batch * n * k].view(shape)
            return part[0] if batch == 1 else part

        for p in pieces:
            self._calls.append(
                (
                    matrices("left", p.batch, p.m, p.k),
                    matrices(p.right, p.batch, p.n, p.k).mT,  # as a layer's weights
                    matrices("result", p.batch, p.m, p.n),
                )
            )

    @torch.no_grad()
    def __call__(self) -> None:
        """Compute all of them, one after the other."""
        for left, right, result in self._calls:
            multiply = torch.mm if left.dim() == 2 else torch.bmm
            multiply(left, right, out=result)


def _pieces(product: Product, at_a_time: int | None) -> Iterator[Product]:
    """Cut a product with many rows into several with at most so many; None: do not."""
    p = product
    if at_a_time is None or p.batch > 1:
        yield p
        return
    for start in range(0, p.m, at_a_time):
        rows = min(at_a_time, p.m - start)
        yield Product(p.right, 1, rows, p.k, p.n)
