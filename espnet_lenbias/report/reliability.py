"""Whether a confidence is right as often as it says: bins, calibration error, AUC."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

_BINS = 10


@dataclass(frozen=True)
class Bin:
    """The utterances whose confidence is in a range."""

    low: float
    high: float
    utterances: int
    mean_confidence: float
    right: float  # share of the utterances


def reliability(confidence: np.ndarray, right: np.ndarray) -> list[Bin]:
    """Sort utterances into ten bins of confidence; those without any are left out.

    Args:
        confidence: (n,) from 0 to 1.
        right: (n,) bool.
    """
    place = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    return [
        Bin(
            low=i / _BINS,
            high=(i + 1) / _BINS,
            utterances=int((place == i).sum()),
            mean_confidence=float(confidence[place == i].mean()),
            right=float(right[place == i].mean()),
        )
        for i in np.unique(place).tolist()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error: how far confidence and truth are apart."""
    total = sum(b.utterances for b in bins)
    return sum(b.utterances * abs(b.mean_confidence - b.right) for b in bins) / total


def auc(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the area under the ROC curve for finding the wrong utterances.

    It is the probability that of a right and a wrong utterance the wrong one has the
    lower confidence, a tie counting half; NaN where all are right or all wrong.
    """
    n_right, n_wrong = int(right.sum()), int((~right).sum())
    if not n_right or not n_wrong:
        return math.nan
    # of the pairs of a right and another utterance, those in which the right one leads
    leads = rankdata(confidence)[right].sum() - n_right * (n_right + 1) / 2
    return float(leads) / (n_right * n_wrong)
