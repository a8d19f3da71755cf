"""The temperature at which confidences are right as often as they say.

A confidence c becomes c^(1/T): above 1 a temperature makes words surer, below 1 less
sure. It is one number for all words, fitted on a development set, and changes nothing in
which word is surer than which.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from espnet_lenbias.posteriors.distribution import Floats

# The temperatures that are tried, as their logarithms.
_RANGE = (-3.0, 3.0)


def at_temperature(confidence: Floats, temperature: float) -> Floats:
    """Return confidences, (n,) from 0 to 1, at a temperature above 0."""
    powers: Floats = confidence ** (1 / temperature)
    return powers


def fit_temperature(confidence: Floats, right: NDArray[np.bool_]) -> float:
    """Return the temperature with the least squared error of confidences.

    The error of a word is its confidence less 1 if it is right, less 0 if it is wrong.
    Unlike a likelihood it stays finite for a word that is wrong and certain.

    Args:
        confidence: (n,) of the words of a development set, at least one.
        right: (n,) whether each is right.

    Returns:
        exp(-3) to exp(3).

    Raises:
        ValueError: There are no words.
    """
    if not len(confidence):
        raise ValueError("a temperature cannot be fitted without words")

    def error(log_temperature: float) -> float:
        values = at_temperature(confidence, float(np.exp(log_temperature)))
        return float(np.mean((values - right) ** 2))

    best = minimize_scalar(error, bounds=_RANGE, method="bounded")
    return float(np.exp(best.x))
