"""Hypotheses in a grid of (utterances, places), for devices that like it better.

Utterances hold different numbers of hypotheses, and their frames are of different lengths.
On a CPU it is best to take one utterance after the other, over its own frames. On a GPU
each of these operations is a launch, which takes longer than the operation: there all
utterances are padded to one shape, and what is computed of the padding is not looked at.

A is the number of utterances that the grid has rows for, W its width; the other symbols
are those of :mod:`.base`.
"""

from dataclasses import dataclass

import torch

from espnet_lenbias.scorers.base import Selection

# devices on which an operation costs what it computes, and little else
_WITHOUT_LAUNCHES = frozenset({"cpu"})


def prefers_grid(device: torch.device) -> bool:
    """Tell whether a device prefers few large operations to many small ones."""
    return device.type not in _WITHOUT_LAUNCHES


@dataclass(frozen=True)
class Cells:
    """Which cell of the grid each hypothesis is in.

    The shape stays the same for as long as it can: the grid grows when an utterance has
    more hypotheses than places, and shrinks when half of it would do.
    """

    utts: list[int]  # (A,) the utterance of each row of the grid
    width: int  # W
    places: torch.Tensor  # (n,) the cell of each hypothesis, 0 .. A * W - 1, on the CPU
    # on the device, both None where cell i holds hypothesis i, whatever i:
    cells: torch.Tensor | None = None  # (n,) `places`
    # (A * W,) one for each cell, any for a spare
    hypotheses: torch.Tensor | None = None

    @classmethod
    def first(cls, n_utts: int) -> "Cells":
        """Return the grid of one hypothesis an utterance."""
        return cls(list(range(n_utts)), 1, torch.arange(n_utts))

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Lay out what the hypotheses have: (n, ...) to (A * W, ...)."""
        if self.hypotheses is None:
            return values
        return values.index_select(0, self.hypotheses)

    def collect(self, values: torch.Tensor) -> torch.Tensor:
        """Return what the hypotheses have in the grid: (A * W, ...) to (n, ...)."""
        return values if self.cells is None else values.index_select(0, self.cells)

    def select(
        self, selection: Selection
    ) -> tuple["Cells", torch.Tensor, torch.Tensor | None]:
        """Return the grid of the chosen extensions.

        Returns:
            The grid; for each of its cells the one of this grid that it goes on from; and
            which rows of this grid are left, (A',), None for all. Both are on the device.
        """
        spans, device = selection.spans, selection.parents.device
        counts = [span.stop - span.start for span in spans]
        utts, width, rows = self.utts, max(counts), None
        if width <= self.width < 2 * width:
            width = self.width
        if 2 * len(spans) <= len(utts):
            utts = [span.utt for span in spans]
            rows = torch.tensor([self.utts.index(utt) for utt in utts])
            rows = rows.to(device, non_blocking=True)
        row_of = {utt: row for row, utt in enumerate(utts)}
        shifts = [row_of[span.utt] * width - span.start for span in spans]
        every = torch.arange(sum(counts))
        shift = torch.tensor(shifts).repeat_interleave(torch.tensor(counts))
        places = every + shift
        hypotheses = torch.zeros(len(utts) * width, dtype=torch.long)
        hypotheses[places] = every
        parents = self.places[selection.parents_on_cpu][hypotheses]
        if len(every) == len(hypotheses):
            parents = parents.to(device, non_blocking=True)
            return Cells(utts, width, places), parents, rows
        sizes = [len(parents), len(hypotheses), len(places)]
        together = torch.cat([parents, hypotheses, places])
        together = together.to(device, non_blocking=True)
        parents, there, cells = torch.split(together, sizes)
        return Cells(utts, width, places, cells, there), parents, rows


def padded_frames(
    x: torch.Tensor, lengths: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the frames of all utterances with zeros for padding, and where they are.

    Args:
        x: (B, T or more, D), padded with anything.
        lengths: Frames of each.

    Returns:
        (B, T, D), and (B, T) bool.
    """
    longest = max(lengths)
    inside = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)
    x = x[:, :longest]
    inside = inside.to(x.device, non_blocking=True)
    return x.masked_fill(~inside.unsqueeze(2), 0.0), inside


def as_bias(inside: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return what is added to energies so that padding gets no attention: 0 or -inf."""
    return torch.zeros_like(inside, dtype=like.dtype).masked_fill(~inside, -torch.inf)
