"""When labels are said, by what the decoder attends to: dynamic time warping.

The frames are cut into as many runs as there are labels, in their order, so that the
runs hold as much as possible of the attention of their labels. A label starts where it
gets attention, which in a silence it does not.
"""

import numpy as np
from numpy.typing import NDArray

from espnet_lenbias.alignment.spans import NotAlignedError, Span, until_next

AttentionWeights = NDArray[np.floating]

# A head is listened to if its best cut holds at least so much of what that of the best
# head does.
_AT_LEAST = 0.5

# From one frame to the next a path stays with the label, or goes on to the next one.
_STEPS = np.array([[0, 1], [1, 1]])


def attention_spans(attention: AttentionWeights, seconds: float) -> list[Span]:
    """Return the span of each label.

    Args:
        attention: (H, N, T), for each head and label weights that add up to 1.
        seconds: Of a frame.

    Returns:
        (N,) spans of frames, which do not overlap.

    Raises:
        NotAlignedError: There are fewer frames than labels, or NaN.
    """
    if np.isnan(attention).any():
        raise NotAlignedError("the attention holds NaN")
    _, n_labels, n_frames = attention.shape
    if n_labels > n_frames:
        raise NotAlignedError(
            f"{n_labels} labels, the end counted, are more than {n_frames} frames"
        )
    mean = attention[following_heads(attention)].mean(axis=0)
    firsts = cut(mean)
    attended = [
        _attended(weights, start, end)
        for weights, start, end in zip(mean, firsts, [*firsts[1:], n_frames])
    ]
    starts, lasts = zip(*attended)
    return until_next(starts, lasts, float(n_frames), seconds)


def following_heads(attention: AttentionWeights) -> list[int]:
    """Return the heads that follow the audio, by how much their best cut holds.

    Args:
        attention: (H, N, T), N <= T.

    Returns:
        Those that hold at least half of what the best one does, which is among them.
    """
    held = [_held(head, cut(head)) for head in attention]
    return [i for i, share in enumerate(held) if share >= _AT_LEAST * max(held)]


def cut(attention: AttentionWeights) -> list[int]:
    """Return where runs of frames start that hold most of the labels' attention.

    Args:
        attention: (N, T), N <= T.

    Returns:
        (N,) the first frame of each label; the first of all is 0.
    """
    from librosa.sequence import dtw  # not needed where nobody asks

    # The path is written from its end.
    _, path = dtw(C=-attention.astype(np.float64), step_sizes_sigma=_STEPS)
    starts = [0] * len(attention)
    for label, frame in path:
        starts[label] = int(frame)
    return starts


def _held(attention: AttentionWeights, starts: list[int]) -> float:
    """Return the share of all labels' attention that their runs of frames hold."""
    ends = [*starts[1:], attention.shape[1]]
    runs = (
        weights[start:end].sum() for weights, start, end in zip(attention, starts, ends)
    )
    return float(sum(runs)) / len(attention)


def _attended(weights: AttentionWeights, start: int, end: int) -> Span:
    """Return a run without the frames at its edges that get hardly any attention.

    That is less than all frames would get if they got the same. At least one is left.

    Args:
        weights: (T,) of the label.
        start: First frame of its run.
        end: Behind its last one.
    """
    run = weights[start:end]
    heard = np.flatnonzero(run > 1 / len(weights))
    if not len(heard):
        heard = np.array([run.argmax()])
    return Span(float(start + heard[0]), float(start + heard[-1] + 1))
