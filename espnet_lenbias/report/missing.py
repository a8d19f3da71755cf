"""What is missing in a folder of decodings: whole sets, utterances, hypotheses."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from espnet_lenbias.report.cells import Cell
from espnet_lenbias.report.systems import System
from espnet_lenbias.report.table1 import UNFINISHED
from espnet_lenbias.report.tables import escape


@dataclass(frozen=True)
class Note:
    """What is missing, of one kind."""

    summary: str
    details: Sequence[str]  # row by row


def notes(
    systems: Sequence[System],
    cells: Sequence[Cell],
    skipped: Sequence[str] = (),
    contradicted: Sequence[str] = (),
    incomplete: Sequence[str] = (),
    mixed: Sequence[str] = (),
) -> list[Note]:
    """Say what is missing or doubtful, a note for each kind that there is.

    Args:
        systems: The rows.
        cells: What they have decoded.
        skipped: What cannot be reported, and why.
        contradicted: Decode configs that are not of what ran.
        incomplete: Result files that lack what their runs have decoded.
        mixed: Rows whose sets were decoded with different models.
    """
    sets = sorted({cell.dataset for cell in cells})
    # Sets of a folder that were decoded differently are of several systems.
    decoded = {(cell.system.tag, cell.dataset) for cell in cells}
    tags = dict.fromkeys(system.tag for system in systems)
    absent = {
        tag: [name for name in sets if (tag, name) not in decoded] for tag in tags
    }
    unfinished = [cell for cell in cells if not cell.complete]
    failed = [cell for cell in cells if cell.failed]
    found = [
        Note(
            f"WARNING: decodings that are not reported: {len(skipped)}",
            skipped,
        ),
        Note(
            "WARNING: decode configs that do not say what ran, which is what the "
            f"tables show: {len(contradicted)}",
            contradicted,
        ),
        Note(
            "WARNING: rows whose sets were decoded with different models, or with models "
            f"that compute otherwise: {len(mixed)}",
            mixed,
        ),
        Note(
            "WARNING: result files that are not whole, which the command that decoded "
            f"them writes anew when it is started again: {'; '.join(incomplete)}",
            incomplete,
        ),
        Note(
            "nothing is decoded of "
            + _count(name for names in absent.values() for name in names),
            [f"`{tag}`: nothing of {', '.join(x)}" for tag, x in absent.items() if x],
        ),
        Note(
            f"{UNFINISHED} not finished: {_count(cell.dataset for cell in unfinished)}; "
            "the numbers are of the utterances decoded so far, and no comparison, plot "
            "or mark has them",
            [
                f"`{cell.system.tag}`, {cell.dataset}: only {len(cell.keys)} of "
                f"{len(cell.references.texts)} utterances are decoded"
                for cell in unfinished
            ],
        ),
        Note(
            f"utterances without a hypothesis: {_count(cell.dataset for cell in failed)}"
            "; their score is nan, and they count as empty output",
            [
                f"`{cell.system.tag}`, {cell.dataset}: {cell.failed} of "
                f"{len(cell.references.texts)} utterances have no hypothesis"
                for cell in failed
            ],
        ),
    ]
    return [note for note in found if note.details]


def _count(sets: Iterable[str]) -> str:
    """Return each set with the number of its rows, e.g. ``dev (1 row), test (2 rows)``."""
    rows = sorted(Counter(sets).items())
    return ", ".join(
        f"{escape(name)} ({n} row{'s' if n > 1 else ''})" for name, n in rows
    )
