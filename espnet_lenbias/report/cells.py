"""Decodings scored: the cells of Table 1, with confidence intervals."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from espnet_lenbias.posteriors.confusion import agreement
from espnet_lenbias.report.bootstrap import resampled_totals
from espnet_lenbias.report.decodings import Decoding, ReferenceSet
from espnet_lenbias.report.scoring import Array, Errors, ResampledErrors, align
from espnet_lenbias.report.systems import System, label
from espnet_lenbias.report.tables import column


@dataclass(frozen=True, eq=False)
class Cell:
    """A decoding, scored over the n utterances that are decoded."""

    decoding: Decoding
    keys: Sequence[str]  # n, sorted
    counts: Array  # (n, 4); see scoring.align
    resampled: ResampledErrors

    @property
    def system(self) -> System:
        """The row of the tables that it belongs to."""
        return self.decoding.system

    @property
    def references(self) -> ReferenceSet:
        """The set that was decoded, and what was said in it."""
        return self.decoding.references

    @property
    def dataset(self) -> str:
        """The name of the set."""
        return self.references.name

    @property
    def head(self) -> dict[str, Any]:
        """The fields of a :class:`CellLine`."""
        system = self.system
        return {
            "dataset": self.dataset,
            "search": system.name,
            "lm_weight": system.lm_weight,
            "beam_size": system.beam_size,
        }

    @property
    def missing(self) -> int:
        """How many utterances of the set are not decoded."""
        return len(self.references.texts) - len(self.keys)

    @property
    def complete(self) -> bool:
        """Whether every utterance of the set is decoded."""
        return self.missing == 0

    @property
    def errors(self) -> Errors:
        """The counts of all n utterances."""
        return Errors(len(self.keys), *self.counts.sum(axis=0).tolist())

    @property
    def right(self) -> Array:
        """Whether an utterance has no error, (n,) bool."""
        right: Array = self.counts[:, 1:].sum(axis=1) == 0
        return right

    @cached_property
    def rated_words(self) -> tuple[Array, Array]:
        """The confidences of its words, (n,), and whether each word is right, (n,) bool.

        A word is right if it stands at its place in the reference, both aligned with the
        fewest errors. The words are those of all utterances, one after the other.
        """
        confidence: list[float] = []
        right: list[bool] = []
        for key in self.keys:
            values = self.decoding.word_confidence.get(key)
            if values is None:
                continue
            words = self.decoding.texts[key].split()
            confidence += values
            right += agreement(words, [self.references.texts[key].split()])[0].tolist()
        return np.array(confidence), np.array(right, dtype=bool)

    @property
    def failed(self) -> int:
        """How many utterances have no hypothesis but a line that is empty."""
        texts = self.decoding.texts
        scores = self.decoding.score.items()
        return sum(math.isnan(score) and not texts.get(key) for key, score in scores)

    @property
    def mean_steps(self) -> float:
        """Positions searched for an utterance that is decoded; NaN if not known."""
        steps = [n for n in self.decoding.steps.values() if n]
        return float(np.mean(steps)) if steps else np.nan


@dataclass(frozen=True)
class CellLine:
    """What the lines of all tables begin with."""

    dataset: str = column("set")
    search: str = column("search")
    lm_weight: float = column("LM", "g")
    beam_size: int = column("beam")

    @property
    def label(self) -> str:
        """What a plot calls the system."""
        return label(self.search, self.lm_weight)


def score(decodings: Iterable[Decoding]) -> list[Cell]:
    """Score decodings, in their order; those of the same utterances share resamples."""
    decodings = list(decodings)
    keys = [tuple(sorted(decoding.texts)) for decoding in decodings]
    counts = [_count(d, of_it) for d, of_it in zip(decodings, keys, strict=True)]
    places = [(d.references.name, of_it) for d, of_it in zip(decodings, keys)]
    totals = resampled_by_set(places, counts)
    return [
        Cell(decoding, keys[i], counts[i], ResampledErrors(len(keys[i]), *totals[i].T))
        for i, decoding in enumerate(decodings)
    ]


def resampled_by_set(
    places: Sequence[tuple[str, Sequence[str]]], counts: Sequence[Array]
) -> list[Array]:
    """Sum counts over the utterances of each resample.

    Args:
        places: Of each decoding its set and its n utterances.
        counts: Of each decoding, (n, C).

    Returns:
        (R, C) of each decoding; those of the same utterances share resamples.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for i, (name, keys) in enumerate(places):
        groups.setdefault((name, tuple(keys)), []).append(i)
    totals: dict[int, Array] = {}
    for group in groups.values():
        stacked = resampled_totals(np.stack([counts[i] for i in group], axis=1))
        totals |= zip(group, np.moveaxis(stacked, 1, 0), strict=True)
    return [totals[i] for i in range(len(places))]


def cells_of(cells: Iterable[Cell], dataset: str) -> list[Cell]:
    """Return the cells of a set."""
    return [cell for cell in cells if cell.dataset == dataset]


def _count(decoding: Decoding, keys: Sequence[str]) -> Array:
    """Return the errors of these utterances, (n, 4)."""
    references = [decoding.references.texts[key] for key in keys]
    return align(references, [decoding.texts[key] for key in keys])
