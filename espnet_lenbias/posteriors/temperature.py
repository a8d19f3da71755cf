"""The temperature at which confidences are right as often as they say."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from espnet_lenbias.posteriors.confusion import agreement
from espnet_lenbias.posteriors.distribution import Floats, posteriors

# The temperatures that are tried, as their logarithms.
_RANGE = (-3.0, 3.0)


class Judged(NamedTuple):
    """The n-best list of an utterance, and which words of the result are right."""

    scores: Sequence[float]  # P, of the hypotheses
    same: NDArray[np.bool_]  # (P, n) which of them have a word of the result
    right: NDArray[np.bool_]  # (n,) whether it is right


def judged(
    scores: Sequence[float],
    hypotheses: Sequence[Sequence[Hashable]],
    reference: Sequence[Hashable],
    result: int = 0,
) -> Judged:
    """Align an n-best list with its result, and the result with what was said.

    Args:
        scores: P of them.
        hypotheses: P sequences of words.
        reference: What was said.
        result: The place of the hypothesis whose words are judged.
    """
    words = hypotheses[result]
    right = agreement(words, [reference])[0]
    return Judged(scores, agreement(words, hypotheses), right)


def at_temperature(lists: Sequence[Judged], temperature: float) -> Floats:
    """Return the confidences of the words of some utterances, one after the other."""
    parts = [posteriors(one.scores, temperature) @ one.same for one in lists]
    return np.concatenate([np.zeros(0), *parts])


def fit_temperature(lists: Sequence[Judged]) -> float:
    """Return the temperature with the least squared error of confidences.

    The error of a word is its confidence less 1 if it is right, less 0 if it is wrong.
    Unlike a likelihood it stays finite for a word that is wrong in all hypotheses.

    Args:
        lists: Of the utterances of a development set, at least one with a word.

    Returns:
        exp(-3) to exp(3).
    """
    right = np.concatenate([np.zeros(0), *(one.right for one in lists)])

    def error(log_temperature: float) -> float:
        confidence = at_temperature(lists, float(np.exp(log_temperature)))
        return float(np.mean((confidence - right) ** 2))

    best = minimize_scalar(error, bounds=_RANGE, method="bounded")
    return float(np.exp(best.x))
