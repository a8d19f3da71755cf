"""The hypotheses of an n-best list as a probability distribution.

========  =====================================================================
P         hypotheses of an n-best list
n         words (or labels) of one of them
========  =====================================================================
"""

from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def posteriors(scores: Sequence[float], temperature: float = 1.0) -> Floats:
    """Return how probable each hypothesis of an n-best list is.

    They are exp(score / temperature), divided by their sum. With the final scores of
    explicit length modelling (eq. 4), log-probs of a text and its length, and a
    temperature of 1 that is the probability of a hypothesis given that it is one of the
    list. A higher temperature makes the probabilities more equal.

    Args:
        scores: P log-probs, or other scores that rank.
        temperature: Above 0; infinity makes all equally probable, as those of a list
            that was sampled from the model are.

    Returns:
        (P,), their sum 1. Hypotheses of a score of -inf have 0; where all of them do,
        nothing tells them apart, and they are equally probable.

    Raises:
        ValueError: A score is NaN or plus infinity, or the temperature not above 0.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not isinstance(temperature, Real) or not temperature > 0:
        raise ValueError(f"temperature must be a number above 0, not {temperature!r}")
    if np.isnan(values).any() or (values == np.inf).any():
        raise ValueError(f"scores must be numbers or -inf, not {list(scores)}")
    if not len(values):
        return values
    best = values.max()
    if best == -np.inf:
        return np.full(len(values), 1 / len(values))
    possible = values > -np.inf
    weights = np.zeros(len(values))
    with np.errstate(over="ignore"):  # of a temperature next to 0
        weights[possible] = np.exp((values[possible] - best) / temperature)
    share: Floats = weights / weights.sum()
    return share
