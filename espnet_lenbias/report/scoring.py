"""Word errors and output lengths of hypotheses against references."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jiwer


@dataclass(frozen=True)
class Errors:
    """Counts of words over some utterances."""

    utterances: int
    hits: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def reference_words(self) -> int:
        return self.hits + self.substitutions + self.deletions

    @property
    def hypothesis_words(self) -> int:
        return self.hits + self.substitutions + self.insertions

    @property
    def wer(self) -> float:
        """Word error rate in %; NaN without reference words."""
        errors = self.substitutions + self.deletions + self.insertions
        return 100 * _ratio(errors, self.reference_words)

    @property
    def length_ratio(self) -> float:
        """Hypothesis words per reference word; NaN without reference words."""
        return _ratio(self.hypothesis_words, self.reference_words)

    @property
    def mean_words(self) -> float:
        """Hypothesis words per utterance; NaN without utterances."""
        return _ratio(self.hypothesis_words, self.utterances)

    @property
    def mean_reference_words(self) -> float:
        """Reference words per utterance; NaN without utterances."""
        return _ratio(self.reference_words, self.utterances)


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
    out = jiwer.process_words(
        [references[key] for key in keys], [hypotheses[key] for key in keys]
    )
    return Errors(len(keys), out.hits, out.substitutions, out.deletions, out.insertions)


def read_text(path: Path) -> dict[str, str]:
    """Read a file of lines ``key text``, where the text may be empty.

    Raises:
        ValueError: A key stands there twice.
    """
    texts: dict[str, str] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            key, *text = line.split(maxsplit=1) or [""]
            if key in texts:
                raise ValueError(f"{path} has two lines for {key}")
            if key:
                texts[key] = text[0].rstrip() if text else ""
    return texts


def _ratio(a: int, b: int) -> float:
    return a / b if b else math.nan
