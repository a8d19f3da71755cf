"""When labels are said, by forced alignment on CTC's posteriors.

The best path of CTC through the given labels has a frame or a few for each label, and
blanks between them. A label is put out when enough of it has been heard to be certain,
not when it begins, so all labels are moved `LEAD` frames back. CTC does not say when a
label is over: see :func:`espnet_lenbias.alignment.spans.until_next`.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch

from espnet_lenbias.alignment.spans import NotAlignedError, Span, until_next

# By so many frames CTC is late: of 0, 0.5, 1, 1.5 and 2 the number with which most word
# starts of recipes/mini_librispeech's dev-other are within 50 ms.
LEAD = 1.5


def ctc_spans(
    log_probs: torch.Tensor, labels: Sequence[int], blank: int, seconds: float
) -> list[Span]:
    """Return the span of each label.

    Args:
        log_probs: (T, V), those of CTC.
        labels: (n,) none of them blank, n >= 1.
        blank: CTC's label for none.
        seconds: Of a frame.

    Returns:
        (n,) spans of frames, which do not overlap.

    Raises:
        NotAlignedError: There are fewer frames than the labels take.
    """
    spans = emitted(best_path(log_probs, labels, blank), blank)
    starts = [max(span.start - LEAD, 0.0) for span in spans]
    lasts = [max(span.end - LEAD, 0.0) for span in spans]
    return until_next(starts, lasts, float(len(log_probs)), seconds)


def best_path(log_probs: torch.Tensor, labels: Sequence[int], blank: int) -> list[int]:
    """Return what each frame puts out on the best path through given labels.

    Args:
        log_probs: (T, V).
        labels: (n,), n >= 1.
        blank: CTC's label for none.

    Returns:
        (T,) labels and blanks.

    Raises:
        NotAlignedError: There are fewer frames than the labels take, or NaN.
    """
    if bool(log_probs.isnan().any()):
        raise NotAlignedError("CTC gives NaN")
    from torchaudio.functional import forced_align  # not needed where nobody asks

    repeats = sum(a == b for a, b in pairwise(labels))
    if len(labels) + repeats > len(log_probs):
        between = f" and {repeats} blanks between equal ones" if repeats else ""
        raise NotAlignedError(
            f"CTC takes a frame for each of {len(labels)} labels{between}, and there are "
            f"{len(log_probs)} frames"
        )
    targets = torch.tensor([list(labels)], dtype=torch.int64)
    path, _ = forced_align(log_probs.float().cpu().unsqueeze(0), targets, blank=blank)
    best: list[int] = path[0].tolist()
    return best


def emitted(path: Sequence[int], blank: int) -> list[Span]:
    """Return the frames that put out each label of a path, repeats of a label merged."""
    spans: list[Span] = []
    for frame, (before, label) in enumerate(zip([blank, *path], path)):
        if label == blank:
            continue
        if label == before:
            spans[-1] = spans[-1]._replace(end=frame + 1.0)
        else:
            spans.append(Span(float(frame), frame + 1.0))
    return spans
