"""How outputs end: loops, empty outputs, and searches that ran to the length limit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.tables import column
from espnet_lenbias.search.loops import TIMES

EXPLANATION = (
    f"Loops are outputs in which the same labels stand {TIMES} times or more in a row, "
    "and empty ones have no text. At the limit are searches that went on to the length "
    "limit (`maxlenratio`) and returned the best that had ended. Forced are outputs "
    "that were made to end there, since none had.\n\n"
    "What to try: where outputs loop, `search_conf: {repeat_limit: 3}`, and a look at "
    "the audio: without speech, longer than what the model was trained on, or, for "
    "Whisper, not padded to 30 s. Where they are forced and do not loop, a larger "
    "`maxlenratio`. Where searches run to the limit and the outputs are right, "
    "`search_conf: {stop_length: 3}` of `explicit_length` saves time."
)


@dataclass(frozen=True)
class EndingLine(CellLine):
    """How the outputs of a decoding end."""

    utterances: int = column("utterances")
    loops: int = column("loops")
    empty: int = column("empty")
    at_limit: float = column("at the limit", ".0f")  # NaN where it is not known
    forced: float = column("forced", ".0f")  # likewise


def ending_line(cell: Cell) -> EndingLine:
    """Return how many outputs loop, are empty, or were cut or nearly so."""
    decoding = cell.decoding
    return EndingLine(
        **cell.head,
        utterances=len(cell.keys),
        loops=sum(key in decoding.loops for key in cell.keys),
        empty=sum(not decoding.texts[key] for key in cell.keys) - cell.failed,
        at_limit=_count(cell, "limit"),
        forced=_count(cell, "forced"),
    )


def worth_showing(lines: Sequence[EndingLine]) -> bool:
    """Tell whether there is anything to show."""
    return any(
        count > 0 for x in lines for count in (x.loops, x.empty, x.at_limit, x.forced)
    )


def _count(cell: Cell, why: str) -> float:
    """Return how many searches stopped for a reason; NaN where no reason is known."""
    stopped = [reason for reason in cell.decoding.stopped.values() if reason]
    return stopped.count(why) if stopped else math.nan
