"""The proposed search against the best other one, on the same utterances."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from espnet_lenbias.report.bootstrap import difference
from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.holm import with_holm
from espnet_lenbias.report.systems import PROPOSED
from espnet_lenbias.report.tables import column


@dataclass(frozen=True)
class PairedLine(CellLine):
    """How much higher the word error rate of a system is than that of another."""

    wer: float = column("WER %", ".1f")
    other: str = column("best other")
    other_lm_weight: float = column("its LM", "g")
    other_beam_size: int = column("its beam")
    other_wer: float = column("its WER %", ".1f")
    difference: float = column("difference", "+.2f")
    low: float = column("from", "+.2f")
    high: float = column("to", "+.2f")
    p: float = column("p", ".4f")
    p_holm: float = column("p (Holm)", ".4f")  # corrected for all tests on the set


def paired_lines(cells: Sequence[Cell]) -> list[PairedLine]:
    """Compare each finished decoding of the proposed search with the best other one.

    The best others are chosen on the set itself, of those with the same kinds of models:
    that of the same beam size, then that of any.

    Args:
        cells: Of any sets.
    """
    finished = [cell for cell in cells if cell.complete]
    finished.sort(key=lambda cell: cell.dataset)
    lines = [
        paired_line(cell, other)
        for cell in finished
        if cell.system.search == PROPOSED
        for other in best_others(cell, finished, _wer)
    ]
    return with_holm(lines)


def paired_line(cell: Cell, other: Cell) -> PairedLine:
    """Compare two systems on the same utterances, as if it were the only test."""
    result = difference(
        cell.errors.wer, other.errors.wer, cell.resampled.wer, other.resampled.wer
    )
    return PairedLine(
        **cell.head,
        wer=cell.errors.wer,
        other=other.system.name,
        other_lm_weight=other.system.lm_weight,
        other_beam_size=other.system.beam_size,
        other_wer=other.errors.wer,
        difference=result.value,
        low=result.low,
        high=result.high,
        p=result.p,
        p_holm=result.p,
    )


def best_others(
    cell: Cell, finished: Iterable[Cell], loss: Callable[[Cell], float]
) -> Iterator[Cell]:
    """Yield the best baseline at a cell's beam size and, if it is another, at any.

    Args:
        cell: What is compared with them.
        finished: What they are chosen from.
        loss: The best have the lowest.
    """
    others = [
        other
        for other in finished
        if other.dataset == cell.dataset
        and other.system.search != PROPOSED
        and other.system.models == cell.system.models
    ]
    level = [o for o in others if o.system.beam_size == cell.system.beam_size]
    best = [min(group, key=loss) for group in (level, others) if group]
    yield from dict.fromkeys(best)


def _wer(cell: Cell) -> float:
    return cell.errors.wer
