"""The utterances of a page: which ones, and what each search made of them."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from espnet_lenbias.report.cells import Cell, cells_of
from espnet_lenbias.report.page.alignment import (
    ERRORS,
    align_words,
    grid,
    word_kinds,
)


class Chosen(NamedTuple):
    """An utterance of a set."""

    dataset: str
    key: str


def worst(cells: Iterable[Cell], count: int | None) -> list[Chosen]:
    """Return utterances, those with the most word errors first.

    Args:
        cells: Those of all sets.
        count: How many; None: all. Where they are level, the first sets and ids.

    Returns:
        The utterances that some search has decoded, by the mean number of errors over
        these searches.
    """
    errors: dict[Chosen, list[int]] = {}
    for cell in cells:
        for key, counts in zip(cell.keys, cell.counts, strict=True):
            errors.setdefault(Chosen(cell.dataset, key), []).append(
                int(counts[1:].sum())
            )
    ranked = sorted(errors, key=lambda x: (-sum(errors[x]) / len(errors[x]), x))
    return ranked[:count]


def asked_for(cells: Iterable[Cell], keys: Sequence[str]) -> list[Chosen]:
    """Return the utterances with these ids, in their order, of all sets that have them."""
    decoded = {Chosen(cell.dataset, key) for cell in cells for key in cell.keys}
    datasets = sorted({x.dataset for x in decoded})
    both = [Chosen(dataset, key) for key in keys for dataset in datasets]
    return [x for x in both if x in decoded]


def utterance(
    cells: Sequence[Cell],
    chosen: Chosen,
    audio: Callable[[Chosen], dict[str, Any] | None],
) -> dict[str, Any]:
    """Return all that a page shows of an utterance.

    Args:
        cells: Those of all sets.
        chosen: The utterance.
        audio: Gives its audio, see :func:`espnet_lenbias.report.page.audio.page_audio`.
    """
    of_set = [
        cell
        for cell in cells_of(cells, chosen.dataset)
        if chosen.key in cell.decoding.texts
    ]
    reference = of_set[0].references.texts[chosen.key].split()
    texts = [" ".join(cell.decoding.texts[chosen.key].split()) for cell in of_set]
    names = _joined(zip(texts, map(_name, of_set)))
    aligned = {text: align_words(reference, text.split()) for text in names}
    kinds = {text: word_kinds(reference, words) for text, words in aligned.items()}
    lines = grid(reference, list(aligned.values()))
    for row, own in zip(lines["rows"], names.values(), strict=True):
        row["names"] = own
        row["errors"] = sum(cell["kind"] in ERRORS for cell in row["cells"])
    errors = [row["errors"] for row in lines["rows"] for _ in row["names"]]
    said = [
        spoken(
            text,
            kinds[text],
            cell.decoding.word_times.get(chosen.key),
            cell.decoding.word_confidence.get(chosen.key),
        )
        for text, cell in zip(texts, of_set)
    ]
    rows = _rows(said, [_name(cell) for cell in of_set])
    return {
        "dataset": chosen.dataset,
        "key": chosen.key,
        "words": len(reference),
        "errors": sum(errors) / len(errors),
        "fewest": min(errors),
        "most": max(errors),
        "grid": lines,
        "player": {
            "key": chosen.key,
            "rows": rows,
            "shown": first_shown(rows),
            "audio": audio(chosen),
        },
    }


def spoken(
    text: str,
    kinds: str = "",
    times: Sequence[tuple[float, float]] | None = None,
    confidence: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Return a hypothesis of n words for the player.

    Args:
        text: The words, between single spaces.
        kinds: (n,) a letter for each, see :mod:`.alignment`; empty: not known.
        times: (n,) start and end of each in seconds; None: not known.
        confidence: (n,) of each; None: not known.
    """
    return {
        "text": text,
        "kinds": kinds,
        "times": None if times is None else [list(pair) for pair in times],
        "confidence": None if confidence is None else list(map(_rounded, confidence)),
    }


def first_shown(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return whose words are shown first: the last of those of which most is known.

    The last rows are those of the proposed search with the largest beams.
    """

    def known(place: int) -> tuple[bool, bool, int]:
        row = rows[place]
        return row["times"] is not None, row["confidence"] is not None, place

    return max(range(len(rows)), key=known)


def _rounded(value: float) -> float | None:
    """Return a confidence; None of NaN, which JSON does not have."""
    return None if math.isnan(value) else round(value, 3)


def _name(cell: Cell) -> str:
    return f"{cell.system.label}, beam {cell.system.beam_size}"


def _rows(said: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return hypotheses with the names of all whose they are."""
    same = _joined(zip(map(json.dumps, said), names))
    return [{"names": own, **json.loads(row)} for row, own in same.items()]


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that have a value, by the value, in order."""
    names: dict[str, list[str]] = {}
    for value, name in pairs:
        names.setdefault(value, []).append(name)
    return names
