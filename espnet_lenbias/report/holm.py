"""P-values of several tests, corrected for their number."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

T = TypeVar("T", bound=Any)

# How a reader learns of it.
CORRECTED = (
    "`p (Holm)` is corrected for all tests on the same set, by Holm's procedure: it is "
    "the one to go by where several rows or beams were looked at."
)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of a family of tests by the procedure of Holm (1979).

    Rejecting where a corrected value is at most a level keeps the probability of any
    wrong rejection in the family within that level, however the tests depend on one
    another.

    Args:
        p_values: Of m tests.

    Returns:
        The corrected ones, in the same order: the k-th smallest is multiplied by
        m - k + 1; none is smaller than that of a smaller p-value, or above 1.
    """
    corrected = [1.0] * len(p_values)
    least = 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = least
    return corrected


def holm_by_set(datasets: Sequence[str], p_values: Sequence[float]) -> list[float]:
    """Correct p-values for all tests on the same set, whose name each test comes with."""
    corrected = list(p_values)
    for dataset in set(datasets):
        family = [i for i, of_test in enumerate(datasets) if of_test == dataset]
        for i, p in zip(family, holm([p_values[i] for i in family]), strict=True):
            corrected[i] = p
    return corrected


def with_holm(lines: Sequence[T]) -> list[T]:
    """Return the lines of tests with their `p` corrected as `p_holm`, set by set."""
    corrected = holm_by_set([x.dataset for x in lines], [x.p for x in lines])
    return [replace(x, p_holm=p) for x, p in zip(lines, corrected, strict=True)]
