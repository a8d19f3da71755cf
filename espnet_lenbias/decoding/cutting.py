"""Where to cut a recording, by how probable speech is in it. Pure functions."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from espnet_lenbias.errors import OptionError

# Speech begins above the one probability and ends below the other, as in Silero's own
# tools: one threshold would cut where the detector hesitates.
_BEGINS = 0.5
_ENDS = 0.35

# Seconds of the shortest piece, where the silence around it allows: encoders cannot read
# less than a tenth of a second.
_SHORTEST = 0.3

# A piece that is too long is cut at the least speech in the mean of so many frames.
_SMOOTHED = 5


@dataclass(frozen=True)
class CutOptions:
    """How to cut; in seconds.

    Raises:
        OptionError: Names the number that is wrong.
    """

    longest: float = 20.0  # a piece
    silence: float = 0.3  # the shortest that is cut at
    margin: float = 0.05  # of silence that is kept around speech

    def __post_init__(self) -> None:
        if self.silence <= 0:
            raise OptionError(f"silence is {self.silence:g}: it is longer than 0 s")
        if self.margin < 0:
            raise OptionError(f"margin is {self.margin:g}: it is 0 s or longer")
        if self.longest < 1 or self.longest <= 2 * self.margin:
            raise OptionError(
                f"longest is {self.longest:g}: it is 1 s or longer, and longer than two "
                "margins"
            )


def cut(
    probabilities: np.ndarray, frame: float, length: float, options: CutOptions
) -> list[tuple[float, float]]:
    """Return the pieces of a recording that hold its speech, (start, end) in seconds.

    Args:
        probabilities: Of speech in each frame, (frames,).
        frame: Seconds of a frame.
        length: Seconds of the recording, where the last piece ends at the latest.
        options: How to cut.
    """
    room = options.longest - 2 * options.margin
    pieces = [
        piece
        for run in _runs(probabilities, options.silence / frame)
        for piece in _divided(probabilities, *run, max(1, int(room / frame)))
    ]
    starts = [start * frame for start, _ in pieces]
    ends = [min(end * frame, length) for _, end in pieces]
    margins = [
        max(options.margin, (_SHORTEST - (end - start)) / 2)
        for start, end in zip(starts, ends, strict=True)
    ]
    # No further than to the middle of the silence between two.
    middles = [(e + s) / 2 for e, s in zip(ends, starts[1:], strict=False)]
    return [
        (max(start - margin, before), min(end + margin, after))
        for start, end, margin, before, after in zip(
            starts, ends, margins, [0.0, *middles], [*middles, length], strict=False
        )
        if start < length
    ]


def _runs(probabilities: np.ndarray, silence: float) -> list[tuple[int, int]]:
    """Return the runs of speech, (first frame, frame after the last).

    Args:
        probabilities: (frames,)
        silence: Runs with fewer frames than these between them are one.
    """
    # 1 where speech is sure, 0 where silence is; between them as it was before
    sure = np.where(probabilities >= _BEGINS, 1, np.where(probabilities < _ENDS, 0, -1))
    known = np.where(sure >= 0, np.arange(len(sure)), -1)
    last_known = np.maximum.accumulate(known)
    speaks = np.where(last_known >= 0, sure[last_known], 0)
    edges = np.flatnonzero(np.diff(speaks, prepend=0, append=0))
    runs: list[tuple[int, int]] = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if runs and start - runs[-1][1] < silence:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return runs


def _divided(
    probabilities: np.ndarray, start: int, end: int, most: int
) -> Iterator[tuple[int, int]]:
    """Cut a run into pieces of at most so many frames, where there is least speech.

    Not in the first half of what a piece may have, so that no piece is a scrap.
    """
    smoothed = np.convolve(probabilities, np.full(_SMOOTHED, 1 / _SMOOTHED), "same")
    while end - start > most:
        first = start + (most + 1) // 2
        place = first + int(np.argmin(smoothed[first : start + most + 1]))
        yield start, place
        start = place
    yield start, end
