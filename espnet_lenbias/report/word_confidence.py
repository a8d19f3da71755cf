"""Whether the words of a decoding are right as often as their confidences say."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from espnet_lenbias.posteriors.temperature import at_temperature, fit_temperature
from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.reliability import (
    auc,
    calibration_error,
    reliability,
    roc,
)
from espnet_lenbias.report.tables import column


@dataclass(frozen=True)
class WordConfidenceLine(CellLine):
    """How well confidences say which words are right."""

    measure: str = column("confidence")
    words: int = column("words")
    right: float = column("right", ".3f")  # share of the words, like the next
    mean_confidence: float = column("mean confidence", ".3f")
    calibration_error: float = column("ECE", ".3f")
    auc: float = column("AUC", ".3f")
    # that another set asks for, and the error with it; NaN: there is no such set
    temperature: float = column("temperature", ".2f")
    calibrated_error: float = column("ECE at it", ".3f")


@dataclass(frozen=True)
class WordReliabilityLine(CellLine):
    """The words of one confidence bin: how many of them are right."""

    measure: str = column("confidence")
    low: float = column("from", ".1f")
    high: float = column("to", ".1f")
    words: int = column("words")
    mean_confidence: float = column("mean confidence", ".3f")
    right: float = column("right", ".3f")


@dataclass(frozen=True)
class RocLine(CellLine):
    """A point of the ROC curve: words above a confidence are taken for right."""

    measure: str = column("confidence")
    wrong_taken: float = column("share of the wrong words that is taken", ".3f")
    right_taken: float = column("share of the right words that is taken", ".3f")


def with_words(cells: Iterable[Cell]) -> list[Cell]:
    """Return those of a set's finished cells whose words have confidences."""
    return [cell for cell in cells if cell.complete and len(cell.rated_words[0])]


def temperatures(cells: Iterable[Cell], dataset: str | None) -> dict[str, float]:
    """Return the temperature that a set asks for, by the tag of the system.

    Args:
        cells: Those of :func:`with_words`.
        dataset: Its name; None: there is none.
    """
    return {
        cell.system.tag: fit_temperature(*cell.rated_words)
        for cell in cells
        if cell.dataset == dataset
    }


def word_confidence_line(cell: Cell, fitted: Mapping[str, float]) -> WordConfidenceLine:
    """Return how good the confidences of a cell's words are.

    Args:
        cell: One of :func:`with_words`.
        fitted: See :func:`temperatures`.
    """
    confidence, right = cell.rated_words
    temperature = fitted.get(cell.system.tag, math.nan)
    calibrated = math.nan
    if not math.isnan(temperature):
        warmer = at_temperature(confidence, temperature)
        calibrated = calibration_error(reliability(warmer, right))
    return WordConfidenceLine(
        **cell.head,
        measure=cell.system.confidence,
        words=len(right),
        right=float(right.mean()),
        mean_confidence=float(confidence.mean()),
        calibration_error=calibration_error(reliability(confidence, right)),
        auc=auc(confidence, right),
        temperature=temperature,
        calibrated_error=calibrated,
    )


def word_reliability_lines(cell: Cell) -> list[WordReliabilityLine]:
    """Return the bins of the confidences of a cell's words."""
    return [
        WordReliabilityLine(
            **cell.head,
            measure=cell.system.confidence,
            low=b.low,
            high=b.high,
            words=b.utterances,
            mean_confidence=b.mean_confidence,
            right=b.right,
        )
        for b in reliability(*cell.rated_words)
    ]


def roc_lines(cell: Cell) -> list[RocLine]:
    """Return the ROC curve of a cell's words, none where all are right or all wrong."""
    return [
        RocLine(
            **cell.head, measure=cell.system.confidence, wrong_taken=x, right_taken=y
        )
        for x, y in roc(*cell.rated_words)
    ]
