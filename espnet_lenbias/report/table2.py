"""Table 2 of the paper: example transcripts with scores, and search steps."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.decodings import Decoding
from espnet_lenbias.report.systems import System
from espnet_lenbias.report.table1 import UNFINISHED
from espnet_lenbias.report.tables import NOTHING, column, markdown_grid


@dataclass(frozen=True)
class ExampleLine(CellLine):
    """What a system made of one utterance."""

    utterance: str = column("utterance")
    original_score: float = column("original score", ".2f")
    score: float = column("final score", ".2f")
    steps: float = column("steps", ".0f")
    text: str = column("transcript")


def most_different(cells: Sequence[Cell], count: int) -> list[str]:
    """Return the utterances of a set on whose length in words the systems differ most.

    Args:
        cells: Those of the set; unfinished ones do not count.
        count: How many utterances; where they are level, the first ids.
    """
    finished = [cell for cell in cells if cell.complete]
    if not finished:
        return []
    lengths = {
        key: [len(cell.decoding.texts[key].split()) for cell in finished]
        for key in finished[0].keys
    }
    spread = {key: max(words) - min(words) for key, words in lengths.items()}
    return sorted(spread, key=lambda key: (-spread[key], key))[:count]


def find_utterances(decodings: Iterable[Decoding], utterances: Iterable[str]) -> None:
    """Verify that utterances are in a set.

    Raises:
        ValueError: Names those that are in none.
    """
    known = {key for d in decodings for key in d.references.texts}
    unknown = [key for key in utterances if key not in known]
    if unknown:
        raise ValueError(f"--utterances: no set has {', '.join(unknown)}")


def home(
    utterance: str, sets: Mapping[str, Sequence[Cell]], first: str
) -> Sequence[Cell]:
    """Return the cells of the set that has an utterance, `first` if several have it."""
    return next(
        sets[name]
        for name in (first, *sets)
        if utterance in sets[name][0].references.texts
    )


def example_lines(cells: Iterable[Cell], utterance: str) -> list[ExampleLine]:
    """Return a line for each system that has decoded an utterance of a set.

    Args:
        cells: Those of the set.
        utterance: Its id.
    """
    return [
        ExampleLine(
            **cell.head,
            utterance=utterance,
            original_score=cell.decoding.original_score.get(utterance, math.nan),
            score=cell.decoding.score.get(utterance, math.nan),
            steps=cell.decoding.steps.get(utterance, math.nan),
            text=cell.decoding.texts[utterance],
        )
        for cell in cells
        if utterance in cell.decoding.texts
    ]


def steps_table(systems: Sequence[System], cells: Iterable[Cell]) -> str:
    """Return the mean search steps of each system and set."""
    by_place = {(cell.system, cell.dataset): cell for cell in cells}
    sets = sorted({dataset for _, dataset in by_place})
    rows = [
        [
            system.name,
            system.lm,
            str(system.beam_size),
            *(_steps(by_place.get((system, dataset))) for dataset in sets),
        ]
        for system in systems
    ]
    return markdown_grid(["search", "LM", "beam", *sets], rows)


def _steps(cell: Cell | None) -> str:
    if cell is None or math.isnan(cell.mean_steps):
        return NOTHING
    return f"{cell.mean_steps:.1f}" + ("" if cell.complete else UNFINISHED)
