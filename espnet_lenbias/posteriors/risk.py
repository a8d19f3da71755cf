"""Minimum Bayes risk: the hypothesis of which the fewest words are expected to be wrong.

Symbols are those of :mod:`espnet_lenbias.posteriors.distribution`.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from espnet_lenbias.posteriors.distribution import Floats


def expected_errors(
    hypotheses: Sequence[Sequence[Hashable]], probability: Floats
) -> Floats:
    """Return how many words are expected to be wrong in each hypothesis.

    It is the mean edit distance to all hypotheses, each weighted with its probability:
    as many errors as there would be if one of them, who knows which, were the reference.

    Args:
        hypotheses: P sequences of words.
        probability: (P,) theirs, of the sum 1.

    Returns:
        (P,)
    """
    places: dict[tuple[Hashable, ...], int] = {}  # of U different ones
    place = [places.setdefault(tuple(words), len(places)) for words in hypotheses]
    mass = np.bincount(place, weights=probability, minlength=len(places))
    different = list(places)
    distance = cdist(
        different, different, scorer=Levenshtein.distance, dtype=np.int32
    )  # (U, U)
    expected: Floats = (distance @ mass)[place]
    return expected


def least_risk(
    hypotheses: Sequence[Sequence[Hashable]], probability: Floats, slack: float = 1e-9
) -> int:
    """Return the place of the hypothesis with the fewest expected errors.

    Args:
        hypotheses: P sequences of words, the best score first.
        probability: (P,) theirs, of the sum 1.
        slack: Expected errors that differ by less are equal; of equals the first wins.
    """
    risk = expected_errors(hypotheses, probability)
    return int(np.argmax(risk <= risk.min() + slack))
