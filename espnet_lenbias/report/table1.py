"""Table 1 of the paper: word errors of searches and beam sizes on each set."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from espnet_lenbias.report.bootstrap import interval
from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.systems import System
from espnet_lenbias.report.tables import NOTHING, column, markdown_grid

UNFINISHED = "†"


@dataclass(frozen=True)
class ScoreLine(CellLine):
    """A cell in numbers: a measure, and the ends of its 95 % confidence interval."""

    tag: str = column("tag")
    utterances: int = column("utterances")
    missing: int = column("not decoded")
    failed: int = column("failed")
    wer: float = column("WER %", ".1f")
    wer_low: float = column("from", ".1f")
    wer_high: float = column("to", ".1f")
    insertions: int = column("ins")
    insertions_low: float = column("from", ".0f")
    insertions_high: float = column("to", ".0f")
    deletions: int = column("del")
    deletions_low: float = column("from", ".0f")
    deletions_high: float = column("to", ".0f")
    substitutions: int = column("sub")
    substitutions_low: float = column("from", ".0f")
    substitutions_high: float = column("to", ".0f")
    mean_reference_words: float = column("reference words", ".1f")
    mean_words: float = column("words", ".1f")
    mean_words_low: float = column("from", ".1f")
    mean_words_high: float = column("to", ".1f")
    length_ratio: float = column("length ratio", ".3f")
    length_ratio_low: float = column("from", ".3f")
    length_ratio_high: float = column("to", ".3f")
    steps: float = column("steps", ".1f")


_MEASURES = (
    "wer",
    "insertions",
    "deletions",
    "substitutions",
    "mean_words",
    "length_ratio",
)


def score_line(cell: Cell) -> ScoreLine:
    """Return what a cell says."""
    errors, resampled = cell.errors, cell.resampled
    measures: dict[str, Any] = {}
    for name in _MEASURES:
        low, high = interval(getattr(resampled, name))
        measures |= {
            name: getattr(errors, name),
            f"{name}_low": low,
            f"{name}_high": high,
        }
    return ScoreLine(
        **cell.head,
        tag=cell.system.tag,
        utterances=len(cell.keys),
        missing=cell.missing,
        failed=cell.failed,
        mean_reference_words=errors.mean_reference_words,
        steps=cell.mean_steps,
        **measures,
    )


def table1(systems: Sequence[System], cells: Iterable[Cell], detail: str) -> str:
    """Return the word error rates in the layout of the paper's Table 1.

    Args:
        systems: The rows.
        cells: Those of any sets.
        detail: The set of which kinds of errors and mean length are shown too.
    """
    by_place = {(cell.system, cell.dataset): cell for cell in cells}
    sets = sorted({dataset for _, dataset in by_place})
    columns = [
        _wer_column([by_place.get((system, dataset)) for system in systems])
        for dataset in sets
    ]
    details = [_detail_cells(by_place.get((s, detail))) for s in systems]
    rows = [
        [system.name, system.lm, str(system.beam_size), *wers, *more]
        for system, wers, more in zip(
            systems, zip(*columns, strict=True), details, strict=True
        )
    ]
    kinds = [f"{detail} {kind}" for kind in ("ins", "del", "sub", "words")]
    return markdown_grid(["search", "LM", "beam", *sets, *kinds], rows)


def wer_by_beam(systems: Sequence[System], cells: Iterable[Cell]) -> str:
    """Return the word error rates of one set, a row per search, a column per beam.

    Args:
        systems: Whose rows and beams make the table.
        cells: Those of the set.
    """
    by_place = {(cell.system.row, cell.system.beam_size): cell for cell in cells}
    beams = sorted({system.beam_size for system in systems})
    heads = list({system.row: [system.name, system.lm] for system in systems}.items())
    columns = [
        _wer_column([by_place.get((row, beam)) for row, _ in heads]) for beam in beams
    ]
    rows = [
        [*head, *wers]
        for (_, head), wers in zip(heads, zip(*columns, strict=True), strict=True)
    ]
    return markdown_grid(["search", "LM", *(f"beam {beam}" for beam in beams)], rows)


def _wer_column(cells: Sequence[Cell | None]) -> list[str]:
    """Return word error rates in %, the lowest ones of finished decodings in bold."""
    shown = [_wer(cell) for cell in cells]
    finished = [text for text in shown if text[-1].isdigit()]
    lowest = min(finished, key=float, default=None)
    return [f"**{text}**" if text == lowest else text for text in shown]


def _wer(cell: Cell | None) -> str:
    if cell is None or math.isnan(cell.errors.wer):
        return NOTHING
    return f"{cell.errors.wer:.1f}" + ("" if cell.complete else UNFINISHED)


def _detail_cells(cell: Cell | None) -> list[str]:
    """Return insertions, deletions, substitutions and mean length of the output."""
    if cell is None or not cell.keys:
        return [NOTHING] * 4
    errors, mark = cell.errors, "" if cell.complete else UNFINISHED
    counts = (errors.insertions, errors.deletions, errors.substitutions)
    return [f"{n}{mark}" for n in counts] + [f"{errors.mean_words:.1f}{mark}"]
