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
    return [[int(label) for label in labels] for labels in primers]


def _is_nested(primer: Sequence[Any]) -> bool:
    """Tell whether there is a primer for each utterance."""
    first = primer[0]
    return isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) > 0
