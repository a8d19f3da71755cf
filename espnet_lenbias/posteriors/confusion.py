"""How sure each word of a hypothesis is: the probability of those that have it, too.

The hypotheses of an n-best list are aligned with one of them by edit distance, which
makes a confusion network of the list along that one. Sequences are of words or of
labels; symbols are those of :mod:`espnet_lenbias.posteriors.distribution`.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from espnet_lenbias.posteriors.distribution import Floats

Words = Sequence[Hashable]


def agreement(words: Words, others: Sequence[Words]) -> NDArray[np.bool_]:
    """Tell which words of a sequence stand at their place in others, too.

    Args:
        words: n of them.
        others: P sequences, each aligned with `words` by the fewest errors.

    Returns:
        (P, n) whether a word is aligned with itself.
    """
    same = np.zeros((len(others), len(words)), dtype=bool)
    rows: dict[tuple[Hashable, ...], int] = {}  # what is aligned already
    for row, other in enumerate(others):
        known = rows.setdefault(tuple(other), row)
        if known != row:
            same[row] = same[known]
            continue
        for tag, start, stop, _, _ in Levenshtein.opcodes(words, other):
            same[row, start:stop] = tag == "equal"
    return same


def confidences(words: Words, others: Sequence[Words], probability: Floats) -> Floats:
    """Return how sure each word of a sequence is.

    Args:
        words: n of them.
        others: The P sequences of an n-best list, `words` among them.
        probability: (P,) theirs, of the sum 1.

    Returns:
        (n,) from 0 to 1: the probability of the sequences that have the word, too.
    """
    mass: Floats = probability @ agreement(words, others)
    return mass.clip(0.0, 1.0)
