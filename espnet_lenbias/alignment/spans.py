"""Spans of frames: of labels, of the words that they make, and in seconds.

A span is (start, end), the first frame and the one behind the last. Ends need no whole
frames.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

# For so many seconds at most a label goes on behind the last frame that tells of it: a
# silence behind a word is not the word's.
LONGEST_TAIL = 0.5


class NotAlignedError(ValueError):
    """Labels cannot be aligned with the frames; says why."""


class Span(NamedTuple):
    """What a label or a word takes, in frames or in seconds."""

    start: float
    end: float


class FrameRate(NamedTuple):
    """How frames of an encoder go with the audio that they are of."""

    seconds: float  # of a frame
    n_heard: int  # frames that are of audio, not of the silence behind it
    end: float  # of the audio, s

    def times(self, spans: Sequence[Span]) -> list[tuple[float, float]]:
        """Return spans of frames in seconds, none behind the end of the audio."""
        return [
            (min(start * self.seconds, self.end), min(end * self.seconds, self.end))
            for start, end in spans
        ]


def frame_rate(duration: float, window: float, n_frames: int) -> FrameRate:
    """Return how frames go with audio.

    What the encoder has made of the audio counts, not what its options say: the audio
    and the frames end together. At most a frame is lost at the edges, by convolutions.

    Args:
        duration: Of the audio, s.
        window: What the model pads or cuts the audio to, s; 0: it does not.
        n_frames: T, 1 or more.
    """
    seconds = (window or duration) / n_frames
    n_heard = min(max(math.ceil(duration / seconds - 1e-6), 1), n_frames)
    return FrameRate(seconds, n_heard, min(duration, window or duration))


def until_next(
    starts: Sequence[float], lasts: Sequence[float], end: float, seconds: float
) -> list[Span]:
    """Return the span of each label: until the next one starts, or a while before.

    Args:
        starts: (n,) first frames.
        lasts: (n,) behind the last frames that tell of the labels.
        end: Behind the last frame of all.
        seconds: Of a frame; see `LONGEST_TAIL`.
    """
    tail = LONGEST_TAIL / seconds
    return [
        Span(start, min(following, last + tail))
        for start, last, following in zip(starts, lasts, [*starts[1:], end])
    ]


def filled(spans: Sequence[Span | None]) -> list[Span]:
    """Return spans of all labels: those that have none take no time.

    Such a label, e.g. one of a prompt, is where the one before it ends; before all
    others it is where the first one starts.
    """
    known = [span for span in spans if span is not None]
    place = known[0].start if known else 0.0
    found = []
    for span in spans:
        found.append(span or Span(place, place))
        place = found[-1].end
    return found


def word_spans(labels: Sequence[tuple[Span, int]], n_words: int) -> list[Span]:
    """Return the span of each word: from its first label to its last one.

    Args:
        labels: Their spans, in order, each with the place of the word that it belongs
            to; every word has one.
        n_words: How many words there are.
    """
    spans: list[list[Span]] = [[] for _ in range(n_words)]
    for span, place in labels:
        spans[place].append(span)
    return [Span(*_hull(of_word)) for of_word in spans]


def _hull(spans: Sequence[Span]) -> tuple[float, float]:
    """Return start and end of labels; those without time count if there are no others."""
    timed = [span for span in spans if span.end > span.start] or spans
    return timed[0].start, timed[-1].end
