"""The page of a report: its tables, its curves, and utterances to look at and listen to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espnet_lenbias.report.cells import Cell
from espnet_lenbias.report.endings import EXPLANATION, worth_showing
from espnet_lenbias.report.figures.looks import kinds_of
from espnet_lenbias.report.missing import Note
from espnet_lenbias.report.page.audio import Source, page_audio
from espnet_lenbias.report.page.curves import curves
from espnet_lenbias.report.page.tables import page_table
from espnet_lenbias.report.page.utterances import Chosen, asked_for, utterance, worst
from espnet_lenbias.report.systems import System

# The tables of a page, in order: name of the CSV file, heading, how to read it.
_TABLES = (
    (
        "translation",
        "Translation: BLEU and chrF",
        "Of sacrebleu, on the texts as they are.",
    ),
    (
        "table1",
        "Word errors",
        "Small numbers are the ends of 95 % bootstrap intervals.",
    ),
    (
        "paired_bleu",
        "BLEU against the best other search",
        "The difference is positive where explicit_length is better; p (Holm) is "
        "corrected for all tests on the same set.",
    ),
    (
        "paired",
        "Word errors against the best other search",
        "The difference is negative where explicit_length has fewer errors; interval and "
        "p are of a paired bootstrap; p (Holm) is corrected for all tests on the same "
        "set.",
    ),
    (
        "reference_length",
        "Word errors by the length of the reference",
        "",
    ),
    ("endings", "Loops, empty outputs, forced ends", EXPLANATION.partition("\n\n")[0]),
    (
        "confidence",
        "The score as a confidence",
        "Of whole utterances. ECE: the calibration error, 0 is best; AUC: 0.5 is chance, "
        "1 is best.",
    ),
    (
        "word_confidence",
        "How sure words are",
        "The same of the confidences of words.",
    ),
    (
        "trust",
        "Results not to be trusted",
        "Doubtful are results with an original score per label below the threshold.",
    ),
    ("doubtful", "Doubtful results", ""),
)


@dataclass(frozen=True)
class PageRequest:
    """What is asked of the page of a report."""

    count: int | None  # of utterances; None: all
    how: str  # see options.html_page
    sources: Mapping[str, Mapping[str, Source]]  # the audio, by set and utterance


def report_page(
    name: str,
    systems: Sequence[System],
    cells: Sequence[Cell],
    tables: Mapping[str, Sequence[Any]],
    notes: Sequence[Note],
    keys: Sequence[str],
    request: PageRequest,
    folder: Path,
) -> dict[str, Any]:
    """Return all that the page shows.

    Args:
        name: Of the folder that was read.
        systems: The rows.
        cells: What they have decoded.
        tables: The lines of each table, of all sets.
        notes: What is missing.
        keys: The utterances that are asked for; none: those with the most errors.
        request: What else is asked for.
        folder: Where the page will lie.
    """
    chosen = asked_for(cells, keys) if keys else worst(cells, request.count)

    def audio(one: Chosen) -> dict[str, Any] | None:
        source = request.sources.get(one.dataset, {}).get(one.key)
        return page_audio(source, request.how, folder)

    sets = {cell.dataset: cell.references for cell in cells}
    finished, translated = (
        [line for line in tables[table] if not line.missing]
        for table in ("table1", "translation")
    )
    return {
        "title": f"Decodings of {name}",
        "sets": [
            {
                "name": dataset,
                "utterances": len(references.texts),
                "words": references.mean_words,
            }
            for dataset, references in sorted(sets.items())
        ],
        "tables": [
            page_table(table, title, about, tables[table], _untold(tables[table]))
            for table, title, about in _TABLES
            if tables[table] and (table != "endings" or worth_showing(tables[table]))
        ],
        "curves": curves(finished, translated, kinds_of(systems)),
        "how_chosen": _how_chosen(keys, len(chosen), len(worst(cells, None))),
        "utterances": [utterance(cells, one, audio) for one in chosen],
        "notes": [note.summary for note in notes],
    }


def _untold(lines: Sequence[Any]) -> set[str]:
    """Return the columns that tell nothing: tags, counts of 0, what is all the same.

    How long references are the head of the page says.
    """
    names = {"tag", "mean_reference_words"}
    for name in ("missing", "failed", "lm_weight"):
        if not any(getattr(line, name, 0) for line in lines):
            names.add(name)
    if len({line.dataset for line in lines}) == 1:
        names.add("dataset")
    return names


def _how_chosen(keys: Sequence[str], shown: int, all_of_them: int) -> str:
    if keys:
        return "The utterances that were asked for."
    if shown == all_of_them:
        return f"All {shown} utterances, those with the most word errors first."
    return (
        f"The {shown} of {all_of_them} utterances with the most word errors, on average "
        "over the rows."
    )
