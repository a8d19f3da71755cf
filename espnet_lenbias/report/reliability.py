"""Whether a confidence is right as often as it says: bins, calibration error, ROC."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

_BINS = 10
_POINTS = 100  # of a ROC curve, at most


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


def roc(confidence: np.ndarray, right: np.ndarray) -> list[tuple[float, float]]:
    """Return the ROC curve: what is above a threshold is taken for right.

    Args:
        confidence: (n,) from 0 to 1.
        right: (n,) bool.

    Returns:
        (share of the wrong ones that are taken, share of the right ones) at falling
        thresholds, from (0, 0) to (1, 1), about a hundred points; none where all are
        right or all wrong.
    """
    n_right, n_wrong = int(right.sum()), int((~right).sum())
    if not n_right or not n_wrong:
        return []
    order = np.argsort(-confidence, kind="stable")
    values, is_right = confidence[order], right[order]
    last = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)  # of equal ones
    if len(last) > _POINTS:
        last = last[np.linspace(0, len(last) - 1, _POINTS).round().astype(int)]
    x = np.cumsum(~is_right)[last] / n_wrong
    y = np.cumsum(is_right)[last] / n_right
    return [(0.0, 0.0), *zip(x.tolist(), y.tolist())]
