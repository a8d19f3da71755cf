"""Which results are not to be trusted: those that fit their audio too badly.

Every search gives text for noise, too. What tells it from speech is the original score
per label: the final score is a probability among the hypotheses of the beam, and does
not see that all of them fit badly. How low is too low depends on the model, and a
development set says it: few of its utterances lie below.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from espnet_lenbias.report.cells import Cell, CellLine
from espnet_lenbias.report.decodings import Decoding
from espnet_lenbias.report.scoring import Errors
from espnet_lenbias.report.tables import column

SHARE = 0.05  # of a development set that may lie below the threshold


@dataclass(frozen=True)
class TrustLine(CellLine):
    """How many utterances of a decoding are doubtful, and how wrong they are."""

    threshold: float = column("threshold", ".2f")
    utterances: int = column("utterances")
    doubtful: int = column("doubtful")
    doubtful_wer: float = column("their WER %", ".1f")
    others_wer: float = column("WER % of the others", ".1f")


@dataclass(frozen=True)
class DoubtfulLine(CellLine):
    """An utterance whose result is not to be trusted."""

    utterance: str = column("utterance")
    score_per_label: float = column("original score per label", ".2f")
    text: str = column("transcript")


def scores_per_label(decoding: Decoding) -> dict[str, float]:
    """Return the original score per label of each utterance that has one."""
    return {
        key: q / decoding.labels[key]
        for key, q in decoding.original_score.items()
        if key in decoding.labels and q == q
    }


def threshold_of(scores: Iterable[float]) -> float:
    """Return the score below which at most 5 % of a development set lie."""
    return float(np.quantile(list(scores), SHARE, method="lower"))


def trust_line(cell: Cell, threshold: float | None) -> TrustLine:
    """Return how many utterances are doubtful.

    Args:
        cell: One with scores; see :func:`scores_per_label`.
        threshold: Lower scores are doubtful; None: as this set says itself.
    """
    scores = scores_per_label(cell.decoding)
    limit = threshold_of(scores.values()) if threshold is None else threshold
    low = np.array([scores.get(key, limit) < limit for key in cell.keys])
    return TrustLine(
        **cell.head,
        threshold=limit,
        utterances=len(cell.keys),
        doubtful=int(low.sum()),
        doubtful_wer=_wer(cell, low),
        others_wer=_wer(cell, ~low),
    )


def doubtful_lines(cell: Cell, threshold: float | None) -> list[DoubtfulLine]:
    """Return the utterances that are doubtful, the worst first; see :func:`trust_line`."""
    scores = scores_per_label(cell.decoding)
    limit = threshold_of(scores.values()) if threshold is None else threshold
    low = sorted((score, key) for key, score in scores.items() if score < limit)
    texts = cell.decoding.texts
    return [
        DoubtfulLine(
            **cell.head,
            utterance=key,
            score_per_label=score,
            text=texts.get(key, ""),
        )
        for score, key in low
    ]


def _wer(cell: Cell, which: np.ndarray) -> float:
    """Return the word error rate of some utterances of a cell; NaN for none.

    Args:
        cell: Of n utterances.
        which: (n,) bool.
    """
    counts = cell.counts[which].sum(axis=0).tolist()
    return Errors(int(which.sum()), *counts).wer
