"""Confidence intervals and a paired test by resampling utterances.

A resample draws, with replacement, as many utterances as there are. The draws depend on
the number of utterances alone, so systems scored on the same ones share them: that is
what makes the test a paired one.
"""

from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95
_SEED = 0
_AT_ONCE = 500  # resamples, to bound the memory


@dataclass(frozen=True)
class Difference:
    """How far one system's measure is above another's, on the same utterances."""

    value: float
    low: float  # of the confidence interval
    high: float
    p: float  # two-sided p-value of the difference


def resampled_totals(values: np.ndarray, resamples: int = RESAMPLES) -> np.ndarray:
    """Sum over the utterances of each resample.

    Args:
        values: (n, ...) of n utterances, in an order that is the same for all systems.
        resamples: R.

    Returns:
        (R, ...).
    """
    rng = np.random.default_rng(_SEED)
    n_utts = len(values)
    if not n_utts:
        return np.zeros((resamples, *values.shape[1:]))
    flat = values.reshape(n_utts, -1).astype(float)
    totals = [
        _draw(rng, min(_AT_ONCE, resamples - done), n_utts) @ flat
        for done in range(0, resamples, _AT_ONCE)
    ]
    return np.concatenate(totals).reshape(resamples, *values.shape[1:])


def interval(samples: np.ndarray) -> tuple[float, float]:
    """Return the percentile interval of a measure's resamples, (R,); NaN do not count."""
    samples = samples[~np.isnan(samples)]
    if not len(samples):
        return np.nan, np.nan
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def difference(
    value: float, other: float, samples: np.ndarray, other_samples: np.ndarray
) -> Difference:
    """Compare two systems by a measure, over the same resamples.

    Args:
        value: The first one's.
        other: The second one's.
        samples: (R,) the first one's in each resample.
        other_samples: (R,) the second one's.

    Returns:
        The first minus the second. `p` counts the resamples on the rarer side of 0,
        twice, and is never below 2 / (R + 1).
    """
    deltas = samples - other_samples
    rarer = min((deltas <= 0).sum(), (deltas >= 0).sum())
    p = min(1.0, 2 * (1 + int(rarer)) / (1 + len(deltas)))
    return Difference(value - other, *interval(deltas), p)


def _draw(rng: np.random.Generator, resamples: int, n_utts: int) -> np.ndarray:
    """Return how often each utterance is in each resample, (R, n)."""
    chosen = rng.integers(n_utts, size=(resamples, n_utts))
    chosen += n_utts * np.arange(resamples)[:, None]
    counts = np.bincount(chosen.ravel(), minlength=resamples * n_utts)
    return counts.reshape(resamples, n_utts).astype(float)
