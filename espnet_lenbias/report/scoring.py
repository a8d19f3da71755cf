"""Word errors and output lengths of hypotheses against references.

Texts are taken as they are, without any normalisation, and words are what stands between
white space. The alignment is the one with the fewest errors.
"""

import codecs
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import jiwer
import numpy as np

from espnet_lenbias.options.data_files import line_of_lone_return
from espnet_lenbias.options.run_journal import check_regular

# What the kinds of jiwer's alignment add to, in the order of the fields of `Errors`.
_KINDS = ("equal", "substitute", "delete", "insert")

Array = np.ndarray[Any, Any]
C = TypeVar("C", int, Array)  # counts
R = TypeVar("R", float, Array)  # ratios


@dataclass(frozen=True)
class _Counts(Generic[C, R]):
    """Counts of words over some utterances."""

    utterances: int
    hits: C
    substitutions: C
    deletions: C
    insertions: C

    @property
    def reference_words(self) -> C:
        return self.hits + self.substitutions + self.deletions

    @property
    def hypothesis_words(self) -> C:
        return self.hits + self.substitutions + self.insertions

    @property
    def wer(self) -> R:
        """Word error rate in %; NaN without reference words."""
        errors = self.substitutions + self.deletions + self.insertions
        return 100 * self.ratio(errors, self.reference_words)

    @property
    def length_ratio(self) -> R:
        """Hypothesis words per reference word; NaN without reference words."""
        return self.ratio(self.hypothesis_words, self.reference_words)

    @property
    def mean_words(self) -> R:
        """Hypothesis words per utterance; NaN without utterances."""
        return self.ratio(self.hypothesis_words, self.utterances)

    @property
    def mean_reference_words(self) -> R:
        """Reference words per utterance; NaN without utterances."""
        return self.ratio(self.reference_words, self.utterances)

    def ratio(self, a: C, b: C | int) -> R:
        """Return a / b, NaN where b is 0."""
        raise NotImplementedError


class Errors(_Counts[int, float]):
    """Counts of words over some utterances."""

    def ratio(self, a: int, b: int) -> float:
        """Return a / b, NaN where b is 0."""
        return a / b if b else math.nan


class ResampledErrors(_Counts[Array, Array]):
    """Counts of words over R resamples of some utterances; all have shape (R,)."""

    def ratio(self, a: Array, b: Array | int) -> Array:
        """Return a / b, NaN where b is 0."""
        a, b = np.broadcast_arrays(np.asarray(a, dtype=float), b)
        ratios: Array = np.divide(a, b, out=np.full(a.shape, np.nan), where=b != 0)
        return ratios


def count_errors(
    references: Mapping[str, str], hypotheses: Mapping[str, str]
) -> Errors:
    """Align each hypothesis with its reference, word by word, and count.

    Args:
        references: Utterance id -> text, of words between spaces; may be empty.
        hypotheses: Likewise; utterances without a reference do not count.

    Raises:
        ValueError: Names an utterance that has a reference and no hypothesis.
    """
    missing = sorted(references.keys() - hypotheses.keys())
    if missing:
        raise ValueError(
            f"no hypothesis for {len(missing)} of {len(references)} utterances, e.g. "
            f"{missing[0]}: an utterance without output needs an empty hypothesis"
        )
    keys = sorted(references)
    counts = align([references[key] for key in keys], [hypotheses[key] for key in keys])
    return Errors(len(keys), *counts.sum(axis=0).tolist())


def align(references: Sequence[str], hypotheses: Sequence[str]) -> Array:
    """Align n hypotheses with their references, word by word.

    Returns:
        (n, 4) hits, substitutions, deletions and insertions of each.
    """
    counts = np.zeros((len(references), len(_KINDS)), dtype=int)
    if not len(references):
        return counts  # for which jiwer has an alignment, of two empty texts
    out = jiwer.process_words(
        [" ".join(text.split()) for text in references],
        [" ".join(text.split()) for text in hypotheses],
    )
    for row, chunks in zip(counts, out.alignments, strict=True):
        for chunk in chunks:
            in_reference = chunk.ref_end_idx - chunk.ref_start_idx
            in_hypothesis = chunk.hyp_end_idx - chunk.hyp_start_idx
            row[_KINDS.index(chunk.type)] += max(in_reference, in_hypothesis)
    return counts


def read_text(path: Path) -> dict[str, str]:
    """Read a file of lines ``key text``, where the text may be empty.

    Raises:
        ValueError: A key stands there twice, or a line is no UTF-8, or holds a NUL.
    """
    texts: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            key, *text = line.decode("utf-8").split(maxsplit=1) or [""]
        except UnicodeDecodeError as e:
            raise ValueError(f"{path}, line {number} is no text in UTF-8: {e}") from e
        if b"\0" in line:
            raise ValueError(f"{path}, line {number} holds a NUL, which is no text")
        if key in texts:
            raise ValueError(f"{path} has two lines for {key}")
        if key:
            texts[key] = text[0].rstrip() if text else ""
    return texts


def _lines(path: Path) -> list[bytes]:
    """Return the lines of a file, without the mark that some editors begin it with.

    Raises:
        ValueError: A line holds a carriage return alone.
    """
    check_regular(path)
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    number = line_of_lone_return(content)
    if number is not None:
        raise ValueError(
            f"{path}, line {number} holds a carriage return alone: end lines with a line "
            "feed, and write a space within one"
        )
    return content.splitlines()
