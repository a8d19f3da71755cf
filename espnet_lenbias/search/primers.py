"""What hypotheses start from: ESPnet's `hyp_primer`, one for all or one for each."""

from collections.abc import Sequence
from typing import Any

# Labels, or a list of labels for each utterance; None: the start label.
HypPrimer = Sequence[Any] | None


def primers_of(hyp_primer: HypPrimer, sos: int, n_utts: int) -> list[list[int]]:
    """Return the primer of each utterance.

    Raises:
        ValueError: It is empty, or there are more or fewer than utterances.
    """
    primer = [sos] if hyp_primer is None else hyp_primer
    if len(primer) == 0:
        raise ValueError("hyp_primer is empty; None means the start label")
    primers: Sequence[Any] = primer if _is_nested(primer) else [primer] * n_utts
    if len(primers) != n_utts:
        raise ValueError(f"{len(primers)} primers were set for {n_utts} utterances")
    if empty := [b for b, labels in enumerate(primers) if len(labels) == 0]:
        raise ValueError(f"hyp_primer is empty for the utterances {empty} of the batch")
    return [[int(label) for label in labels] for labels in primers]


def primer_length(hyp_primer: HypPrimer, yseq: Sequence[int]) -> int:
    """Return how many labels a hypothesis starts from.

    Args:
        hyp_primer: Of one utterance, or of each of several.
        yseq: The labels of the hypothesis: of several primers it is the longest that
            they begin with.
    """
    if hyp_primer is None:
        return 1
    if not _is_nested(hyp_primer):
        return len(hyp_primer)
    primers = [[int(label) for label in primer] for primer in hyp_primer]
    return max(len(p) for p in primers if [*yseq[: len(p)]] == p)


def _is_nested(primer: Sequence[Any]) -> bool:
    """Tell whether there is a primer for each utterance."""
    first = primer[0]
    return isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) > 0
