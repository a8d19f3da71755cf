"""The values of result files: how they are read, and whether they are of the same run."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Symbols of OWSM, such as <eng> or <0.02>, which stand in `text` like words.
_SYMBOL = re.compile(r"<[^<>\s]+>")


def check_words(
    folder: Path,
    texts: Mapping[str, str],
    name: str,
    values: Mapping[str, Sequence[Any]],
) -> None:
    """Verify that a file has a value for each word."""
    for key in sorted(values.keys() & texts.keys()):
        n_words, n_values = len(texts[key].split()), len(values[key])
        if n_words != n_values:
            raise ValueError(
                f"{folder}: {key} has {n_words} words in `text` and {n_values} values in "
                f"`{name}`: one of the files was cut, changed, or is of another run; "
                "the command that decoded them, started again, writes them anew"
            )


def shares(values: str) -> list[float]:
    """Read ``0.98 0.5``, confidences from 0 to 1."""
    found = [float(value) for value in values.split()]
    for value in found:
        if not 0 <= value <= 1:  # nor is NaN
            raise ValueError(f"{value} is not from 0 to 1")
    return found


def times(values: str) -> list[tuple[float, float]]:
    """Read ``0.12-0.45 0.48-0.91``."""
    pairs = []
    for value in values.split():
        start, end = map(float, value.split("-"))
        if not (math.isfinite(start) and math.isfinite(end)):
            raise ValueError(f"{value} is no time")
        pairs.append((start, end))
    return pairs


def words_said(text: str, plain: str) -> list[int] | None:
    """Return which words of a text of OWSM are said, and are no symbols.

    Args:
        text: With the symbols, which stand in it like words.
        plain: What ESPnet makes of it without them.

    Returns:
        Their places; None where words and symbols cannot be told apart.
    """
    bare = [_SYMBOL.sub("", word) for word in text.split()]
    places = [i for i, word in enumerate(bare) if word]
    return places if [bare[i] for i in places] == plain.split() else None
