"""Word errors by the length of the reference."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.scoring import Errors
from espnet_lenbias.report.tables import column

_BINS = 6


@dataclass(frozen=True)
class LengthLine(CellLine):
    """How a system did on the utterances whose references have so many words."""

    shortest: int = column("from words")
    longest: int = column("to words")
    utterances: int = column("utterances")
    wer: float = column("WER %", ".1f")
    length_ratio: float = column("length ratio", ".3f")


def length_lines(cells: Sequence[Cell]) -> list[LengthLine]:
    """Return a line for each finished decoding of a set and each bin of lengths.

    Args:
        cells: Those of the set.
    """
    finished = [cell for cell in cells if cell.complete]
    return [line for cell in finished for line in _lines(cell)]


def length_bins(words: np.ndarray, n_bins: int = _BINS) -> list[tuple[int, int]]:
    """Cut lengths into ranges of about equally many utterances.

    Args:
        words: (n,) words of each reference.
        n_bins: At most so many ranges; fewer where many lengths are the same.

    Returns:
        The shortest and the longest length of each range that has utterances.
    """
    edges = np.quantile(words, np.linspace(0, 1, n_bins + 1), method="inverted_cdf")
    ends = np.unique(edges[1:])
    starts = [words.min(), *(ends[:-1] + 1)]
    bins = [words[(a <= words) & (words <= b)] for a, b in zip(starts, ends)]
    return [(int(inside.min()), int(inside.max())) for inside in bins]


def _lines(cell: Cell) -> list[LengthLine]:
    words = np.array([len(cell.references.texts[key].split()) for key in cell.keys])
    lines = []
    for shortest, longest in length_bins(words):
        inside = (shortest <= words) & (words <= longest)
        errors = Errors(int(inside.sum()), *cell.counts[inside].sum(axis=0).tolist())
        lines.append(
            LengthLine(
                **cell.head,
                shortest=shortest,
                longest=longest,
                utterances=errors.utterances,
                wer=errors.wer,
                length_ratio=errors.length_ratio,
            )
        )
    return lines
