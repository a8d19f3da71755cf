"""Whether a score tells how likely an utterance is right.

The final score of the proposed search is a log-probability, so exp of it is a confidence
without further ado. The usual one is compared: exp of the original score divided by the
number of labels, as simple beam search leaves it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.reliability import auc, calibration_error, reliability
from espnet_lenbias.report.systems import PROPOSED, SIMPLE
from espnet_lenbias.report.tables import column
from espnet_lenbias.report.trust import scores_per_label

FINAL = "exp(final score)"
PER_LABEL = "exp(original score / labels)"


@dataclass(frozen=True)
class ConfidenceLine(CellLine):
    """How well a confidence says which utterances are right."""

    measure: str = column("confidence")
    utterances: int = column("utterances")
    right: float = column("right", ".3f")  # share of utterances, like the next
    mean_confidence: float = column("mean confidence", ".3f")
    calibration_error: float = column("ECE", ".3f")
    auc: float = column("AUC", ".3f")


@dataclass(frozen=True)
class ReliabilityLine(CellLine):
    """The utterances of one confidence bin: how many of them are right."""

    measure: str = column("confidence")
    low: float = column("from", ".1f")
    high: float = column("to", ".1f")
    utterances: int = column("utterances")
    mean_confidence: float = column("mean confidence", ".3f")
    right: float = column("right", ".3f")


def confidence_of(cell: Cell) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the confidences that a cell's utterances have.

    Returns:
        What they are, (n,) confidences, and whether each utterance is right, (n,) bool.
        Utterances without a score are left out.
    """
    decoding = cell.decoding
    if cell.system.search == PROPOSED:
        measure, scores = FINAL, decoding.score
    else:
        measure = PER_LABEL
        scores = scores_per_label(decoding)
    logs = np.array([scores.get(key, math.nan) for key in cell.keys])
    there = ~np.isnan(logs)
    return measure, np.exp(np.minimum(logs[there], 0.0)), cell.right[there]


def rated(cells: Iterable[Cell]) -> list[Cell]:
    """Return those of a set's finished cells whose confidence is examined.

    They are those of the proposed search and, of the same beam size and kinds of models,
    of the simple search with the fewest heuristics.
    """
    finished = [cell for cell in cells if cell.complete]
    proposed = [cell for cell in finished if cell.system.search == PROPOSED]
    places = {_place(cell) for cell in proposed}
    simple = [
        cell
        for cell in finished
        if cell.system.search == SIMPLE and _place(cell) in places
    ]
    simple.sort(key=lambda cell: (_place(cell), cell.system.order))
    plainest = [next(group) for _, group in groupby(simple, key=_place)]
    chosen = [cell for cell in plainest + proposed if len(confidence_of(cell)[1])]
    return sorted(chosen, key=lambda cell: cell.system.order)


def confidence_line(cell: Cell) -> ConfidenceLine:
    """Return how good a cell's confidence is."""
    measure, confidence, right = confidence_of(cell)
    return ConfidenceLine(
        **cell.head,
        measure=measure,
        utterances=len(right),
        right=float(right.mean()),
        mean_confidence=float(confidence.mean()),
        calibration_error=calibration_error(reliability(confidence, right)),
        auc=auc(confidence, right),
    )


def reliability_lines(cell: Cell) -> list[ReliabilityLine]:
    """Return the bins of a cell's confidence."""
    measure, confidence, right = confidence_of(cell)
    return [
        ReliabilityLine(**cell.head, measure=measure, **vars(b))
        for b in reliability(confidence, right)
    ]


def _place(cell: Cell) -> tuple[tuple[bool, bool], int]:
    return cell.system.models, cell.system.beam_size
