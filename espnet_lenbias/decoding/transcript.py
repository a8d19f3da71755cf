"""What was heard in an utterance, or in a recording: read from result rows."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from espnet_lenbias.decoding.journal import ResultRow
from espnet_lenbias.options.segments import Segment, by_recording
from espnet_lenbias.options.values import score_number
from espnet_lenbias.report.result_values import shares, times, words_said

# What ends the names of files where there is an n-best list for each speaker.
_SPEAKER = re.compile(r"1best_recog/token((?:_spk\d+)?)")


@dataclass(frozen=True)
class Word:
    """A word of a text; what nobody has asked for is None."""

    text: str
    start: float | None = None  # seconds
    end: float | None = None
    confidence: float | None = None  # from 0 to 1
    # Whether it is the first of a piece, before which the recording was cut.
    begins: bool = False

    @property
    def time(self) -> tuple[float, float] | None:
        """Start and end, if they are known."""
        if self.start is None or self.end is None:
            return None
        return self.start, self.end


@dataclass(frozen=True)
class Hypothesis:
    """One line of an n-best list."""

    text: str
    words: Sequence[Word]
    score: float
    original_score: float | None
    posterior: float | None
    steps: int | None
    stopped: str | None


@dataclass(frozen=True)
class Transcript:
    """The n-best list of an utterance, or the text of a recording.

    Attributes:
        key: Of the utterance, or the recording.
        hypotheses: Best first; none: it could not be decoded. Of a recording of several
            pieces there is one, which was made of theirs.
        pieces: Key, start and end of each piece of a recording, in the order of time;
            empty for an utterance.
    """

    key: str
    hypotheses: Sequence[Hypothesis] = ()
    pieces: Sequence[tuple[str, float, float]] = field(default=())

    def words(self, rank: int = 1) -> Sequence[Word]:
        """Return the words of a hypothesis; none where there is none."""
        ranked = self.hypotheses[rank - 1 : rank]
        return ranked[0].words if ranked else ()

    def text(self, rank: int = 1) -> str:
        """Return the text of a hypothesis; "" where there is none."""
        ranked = self.hypotheses[rank - 1 : rank]
        return ranked[0].text if ranked else ""


def speakers_in(rows: Iterable[ResultRow]) -> list[str]:
    """Return what the names of result files end in, for each speaker.

    Returns:
        [""] where there is one n-best list for an utterance, as usual.
    """
    for row in rows:
        found = [m[1] for m in map(_SPEAKER.fullmatch, row) if m]
        if found:
            return found
    return [""]


def transcript_of(
    key: str, row: ResultRow, nbest: int, speaker: str = ""
) -> Transcript:
    """Return what the row of an utterance says.

    Args:
        key: Of the utterance.
        row: Empty where it could not be decoded.
        nbest: How many ranks there are at most.
        speaker: One of :func:`speakers_in`.
    """
    ranks = [_fields(row, rank, speaker) for rank in range(1, nbest + 1)]
    # of a rank that there is no hypothesis for the score is NaN
    there = [fields for fields in ranks if not math.isnan(_score(fields))]
    return Transcript(key, [_hypothesis(fields) for fields in there])


def recordings_of(
    segments: Mapping[str, Segment],
    transcripts: Iterable[Transcript],
    recordings: Iterable[str] = (),
) -> list[Transcript]:
    """Return the transcripts of recordings.

    Args:
        segments: The pieces, by utterance.
        transcripts: Of the pieces; others are left out.
        recordings: They have one even where they have no pieces; see
            :func:`espnet_lenbias.options.segments.by_recording`.
    """
    said = {transcript.key: transcript for transcript in transcripts}
    return [
        _joined(recording, [(segments[key], said[key]) for key in keys])
        for recording, keys in by_recording(segments, said, recordings).items()
    ]


def _joined(recording: str, pieces: Sequence[tuple[Segment, Transcript]]) -> Transcript:
    """Return the transcript of a recording, put together from those of its pieces.

    Args:
        recording: Its key.
        pieces: In the order of time; of several the best hypothesis of each counts.
    """
    places = [(said.key, segment.start, segment.end) for segment, said in pieces]
    if len(pieces) == 1:
        ((segment, said),) = pieces
        shifted = [_shifted(hyp, segment.start) for hyp in said.hypotheses]
        return Transcript(recording, shifted, places)
    best = [_shifted(t.hypotheses[0], s.start) for s, t in pieces if t.hypotheses]
    if not best:
        return Transcript(recording, pieces=places)
    steps = [hyp.steps for hyp in best if hyp.steps is not None]
    whole = Hypothesis(
        text=" ".join(hyp.text for hyp in best if hyp.text),
        words=[word for hyp in best for word in hyp.words],
        score=sum(hyp.score for hyp in best),
        original_score=None,
        posterior=None,
        steps=sum(steps) if steps else None,
        stopped=None,
    )
    return Transcript(recording, [whole], places)


def _shifted(hypothesis: Hypothesis, seconds: float) -> Hypothesis:
    """Return the hypothesis of a piece that begins so many seconds later."""
    words = [_later(word, seconds) for word in hypothesis.words]
    first = [replace(word, begins=True) for word in words[:1]]
    return replace(hypothesis, words=[*first, *words[1:]])


def _later(word: Word, seconds: float) -> Word:
    if word.time is None:
        return word
    start, end = (round(time + seconds, 3) for time in word.time)
    return replace(word, start=start, end=end)


def _fields(row: ResultRow, rank: int, speaker: str) -> dict[str, str]:
    """Return what a row says of a hypothesis, by the names of files without speakers."""
    folder = f"{rank}best_recog/"
    names = [n for n in row if n.startswith(folder) and n.endswith(speaker)]
    return {n.removeprefix(folder).removesuffix(speaker): row[n] for n in names}


def _hypothesis(fields: Mapping[str, str]) -> Hypothesis:
    # without a tokenizer there is no text but the labels
    text = fields.get("text", fields["token"])
    steps = fields.get("steps")
    return Hypothesis(
        text=fields.get("text_nospecial", text).strip(),
        words=_words(text, fields),
        score=_score(fields),
        original_score=_number(fields, "original_score"),
        posterior=_number(fields, "posterior"),
        steps=int(steps) if steps else None,
        stopped=fields.get("stopped") or None,
    )


def _words(text: str, fields: Mapping[str, str]) -> list[Word]:
    """Return the words of a text, without symbols, with what is known of each."""
    words = text.split()
    confidences: Sequence[Any] = shares(fields.get("word_confidence", ""))
    spans: Sequence[Any] = times(fields.get("word_times", ""))
    confidences = confidences or [None] * len(words)
    spans = spans or [(None, None)] * len(words)
    rated = [
        Word(word, start, end, sure)
        for word, (start, end), sure in zip(words, spans, confidences, strict=True)
    ]
    plain = fields.get("text_nospecial")
    if plain is None:
        return rated
    places = words_said(text, plain)
    if places is None:
        return rated
    return [replace(rated[i], text=w) for i, w in zip(places, plain.split())]


def _score(fields: Mapping[str, str]) -> float:
    return score_number(fields.get("score", "nan"))


def _number(fields: Mapping[str, str], name: str) -> float | None:
    return float(fields[name]) if fields.get(name) else None
