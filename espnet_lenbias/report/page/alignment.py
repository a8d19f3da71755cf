"""A reference and what several searches made of it, aligned word by word."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jiwer

# What a word is, in sclite's letters.
HIT, SUBSTITUTION, INSERTION, DELETION = "C", "S", "I", "D"
ERRORS = (SUBSTITUTION, INSERTION, DELETION)
NOTHING = ""  # where only others have words


class Aligned(NamedTuple):
    """A hypothesis aligned with its reference of R words, with the fewest errors."""

    at: list[str | None]  # (R,) the word in the place of each; None: it is deleted
    inserted: list[list[str]]  # (R + 1,) before each, and at the end


def align_words(reference: Sequence[str], hypothesis: Sequence[str]) -> Aligned:
    """Align two lists of words."""
    aligned = Aligned([None] * len(reference), [[] for _ in range(len(reference) + 1)])
    out = jiwer.process_words(" ".join(reference), " ".join(hypothesis))
    for chunk in out.alignments[0]:
        words = list(hypothesis[chunk.hyp_start_idx : chunk.hyp_end_idx])
        if chunk.type == "insert":
            aligned.inserted[chunk.ref_start_idx] += words
        elif chunk.type != "delete":
            aligned.at[chunk.ref_start_idx : chunk.ref_end_idx] = words
    return aligned


def word_kinds(reference: Sequence[str], aligned: Aligned) -> str:
    """Return a letter for each word of a hypothesis: right, or what is wrong with it."""
    columns = [len(words) for words in aligned.inserted]
    kinds = (cell["kind"] for cell in _row(reference, aligned, columns))
    return "".join(kind for kind in kinds if kind != DELETION)


def grid(reference: Sequence[str], hypotheses: Sequence[Aligned]) -> dict[str, Any]:
    """Return all below one another, in columns.

    A column is a word of the reference, or a place where some hypothesis has a word more.

    Returns:
        `reference`: its word in each column, "" where it has none. `rows`: of each
        hypothesis its `cells`, one for each column, with `word` and `kind`.
    """
    columns = [
        max((len(aligned.inserted[place]) for aligned in hypotheses), default=0)
        for place in range(len(reference) + 1)
    ]
    head = []
    for place, more in enumerate(columns):
        head += [""] * more + list(reference[place : place + 1])
    return {
        "reference": head,
        "rows": [
            {"cells": list(_row(reference, aligned, columns))} for aligned in hypotheses
        ],
    }


def _row(
    reference: Sequence[str], aligned: Aligned, columns: Sequence[int]
) -> Iterator[dict[str, str]]:
    """Yield the cells of a hypothesis.

    Args:
        reference: R words.
        aligned: The hypothesis.
        columns: (R + 1,) how many columns there are before each word of the reference,
            and at the end.
    """
    for place, more in enumerate(columns):
        inserted = aligned.inserted[place]
        yield from ({"word": word, "kind": INSERTION} for word in inserted)
        yield from [{"word": "", "kind": NOTHING}] * (more - len(inserted))
        if place == len(reference):
            return
        word = aligned.at[place]
        if word is None:
            yield {"word": reference[place], "kind": DELETION}
        else:
            kind = HIT if word == reference[place] else SUBSTITUTION
            yield {"word": word, "kind": kind}
