"""Cues of subtitles: which words are shown together, and for how long. Pure functions."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import regex

from espnet_lenbias.decoding.transcript import Word

# What a reader takes for one sign: a letter with what combines with it.
_SIGN = regex.compile(r"\X")
_STAND_IN = "\U000f0000"  # and those behind it, which have no meaning of their own

# What people can read, by the guides of broadcasters: signs of a line, lines, seconds.
_LINE = 42
_LINES = 2
_LONGEST = 7.0
_SHORTEST = 1.0

# Seconds of silence that a new cue begins after.
_PAUSE = 0.5

# What has more signs is no word, but text of a language without spaces.
_LONG_WORD = 20


@dataclass(frozen=True)
class Cue:
    """What is shown at once."""

    start: float  # seconds
    end: float
    lines: Sequence[str]


def cues(words: Sequence[Word]) -> list[Cue]:
    """Return the cues of a text, in the order of time.

    A cue has two lines of 42 signs and 7 s at most. One ends at a pause, where a
    recording was cut, and else at the longest gap in its second half.

    Args:
        words: With their times; those that have none are left out.
    """
    parts = [part for word in words if word.time for part in _parts(word)]
    found = [cue for run in _runs(parts) for cue in _divided(run)]
    found.sort(key=lambda cue: _time(cue[0])[0])  # pieces of a recording may overlap
    starts = [_time(cue[0])[0] for cue in found]
    ends = [max(_time(word)[1] for word in cue) for cue in found]
    return [
        Cue(start, _shown_until(start, end, following), _lines(cue))
        for cue, start, end, following in zip(
            found, starts, ends, [*starts[1:], math.inf]
        )
    ]


def _time(word: Word) -> tuple[float, float]:
    assert word.time is not None
    return word.time


def _parts(word: Word) -> Iterator[Word]:
    """Yield a word, or the parts of one that is too long for a cue, equally long each."""
    start, end = _time(word)
    signs = _SIGN.findall(word.text)
    n_signs = len(signs)
    n = max(n_signs / (_LINE * _LINES), (end - start) / _LONGEST)
    n_parts = min(math.ceil(n), n_signs) if n_signs > _LONG_WORD else 1
    edges = [round(i * n_signs / n_parts) for i in range(n_parts + 1)]
    a_sign = (end - start) / n_signs
    for first, last in pairwise(edges):
        yield replace(
            word,
            text="".join(signs[first:last]),
            start=start + first * a_sign,
            end=start + last * a_sign,
        )


def _runs(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield words between two pauses, or two places where a recording was cut."""
    run: list[Word] = []
    for word in words:
        if run and (word.begins or _gap(run[-1], word) >= _PAUSE):
            yield run
            run = []
        run.append(word)
    if run:
        yield run


def _divided(run: list[Word]) -> Iterator[list[Word]]:
    """Cut words into those of one cue each."""
    while not _fits(run):
        most = next(n for n in range(len(run) - 1, 0, -1) if n == 1 or _fits(run[:n]))
        even = len(run) / math.ceil(len(run) / most)
        gaps = {
            i: round(_gap(run[i - 1], run[i]), 3)
            for i in range((most + 1) // 2, most + 1)
        }
        # of equal gaps that which makes cues of about equally many words
        place = min(gaps, key=lambda i: (-gaps[i], abs(i - even)))
        yield run[:place]
        run = run[place:]
    yield run


def _fits(words: Sequence[Word]) -> bool:
    """Tell whether words can be one cue; a single one always is."""
    if len(words) == 1:
        return True
    seconds = max(_time(word)[1] for word in words) - _time(words[0])[0]
    return seconds <= _LONGEST and len(_lines(words)) <= _LINES


def _gap(word: Word, following: Word) -> float:
    return _time(following)[0] - _time(word)[1]


def _lines(words: Sequence[Word]) -> list[str]:
    """Return the lines of words, which `textwrap` counts as a reader does.

    In the place of each sign that is several code points stands another code point.
    """
    text = " ".join(word.text for word in words)
    stand_ins: dict[str, str] = {}

    def stand_in(sign: Any) -> str:
        if len(sign[0]) == 1 and sign[0] < _STAND_IN:
            return str(sign[0])
        return stand_ins.setdefault(sign[0], chr(ord(_STAND_IN) + len(stand_ins)))

    lines = textwrap.wrap(_SIGN.sub(stand_in, text), _LINE, break_on_hyphens=False)
    signs = str.maketrans({there: sign for sign, there in stand_ins.items()})
    return [line.translate(signs) for line in lines]


def _shown_until(start: float, end: float, following: float) -> float:
    """Return when a cue ends: not too early to be read, nor with the next one there."""
    earliest = min(start + _SHORTEST, following)
    return max(min(end, start + _LONGEST), earliest)
