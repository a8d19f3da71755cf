"""Transcripts as lines of each format; see `FORMATS` in `options/formats.py`."""

import html
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from espnet_lenbias.decoding.cues import cues
from espnet_lenbias.decoding.transcript import Hypothesis, Transcript, Word
from espnet_lenbias.report.trn import plain_word

_COMMENT = ";;"  # of a line of CTM


def ctm_lines(transcript: Transcript, rank: int = 1) -> Iterator[str]:
    """Yield ``recording channel start duration word [confidence]`` of each word.

    The columns are the same for Kaldi and for NIST's sclite, whose signs for alternatives
    are replaced as in trn. Words without a time have no line; the others stand in the
    order of time, which that of pieces of a recording is not where they overlap.
    """
    key = transcript.key
    if key.startswith(_COMMENT):  # its lines would not count
        key = plain_word(_COMMENT) + key.removeprefix(_COMMENT)
    timed = [(word.time, word) for word in transcript.words(rank) if word.time]
    for (start, end), word in sorted(timed, key=lambda pair: pair[0][0]):
        sure = "" if word.confidence is None else f" {word.confidence:.2f}"
        yield f"{key} 1 {start:.3f} {end - start:.3f} {plain_word(word.text)}{sure}\n"


def srt_lines(transcript: Transcript, rank: int = 1) -> Iterator[str]:
    """Yield SubRip's subtitles."""
    for number, cue in enumerate(cues(transcript.words(rank)), 1):
        yield f"{number}\n{clock(cue.start, ',')} --> {clock(cue.end, ',')}\n"
        yield from (f"{line}\n" for line in cue.lines)
        yield "\n"


def vtt_lines(transcript: Transcript, rank: int = 1) -> Iterator[str]:
    """Yield WebVTT's subtitles, in whose text `&`, `<` and `>` are escaped."""
    yield "WEBVTT\n"
    for cue in cues(transcript.words(rank)):
        yield f"\n{clock(cue.start)} --> {clock(cue.end)}\n"
        yield from (f"{html.escape(line, quote=False)}\n" for line in cue.lines)


def json_line(
    transcript: Transcript,
    audio: str | None,
    seconds: float | None,
    options: Mapping[str, Any],
) -> str:
    """Return the object of an utterance, or of a recording, as a line of strict JSON.

    Args:
        transcript: Without hypotheses its text is null.
        audio: The file; None: it is none.
        seconds: How long that is; None: not known.
        options: What it was decoded with.
    """
    best = transcript.hypotheses[0] if transcript.hypotheses else None
    values: dict[str, Any] = {
        "key": transcript.key,
        "audio": audio,
        "duration": None if seconds is None else round(seconds, 3),
        "text": None if best is None else best.text,
        "words": [_word(word) for word in transcript.words()],
        "nbest": [_hypothesis(hyp) for hyp in transcript.hypotheses],
        "steps": None if best is None else best.steps,
        "stopped": None if best is None else best.stopped,
        "options": options,
    }
    if transcript.pieces:
        values["pieces"] = [
            {"key": key, "start": round(start, 3), "end": round(end, 3)}
            for key, start, end in transcript.pieces
        ]
    return json.dumps(_finite(values), ensure_ascii=False, allow_nan=False) + "\n"


def clock(seconds: float, point: str = ".") -> str:
    """Return a time as subtitles have it, ``01:02:03.456``."""
    milliseconds = round(seconds * 1000)
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{hours:02}:{minutes:02}:{seconds:02}{point}{milliseconds:03}"


def _word(word: Word) -> dict[str, Any]:
    return {
        "word": word.text,
        "start": word.start,
        "end": word.end,
        "confidence": word.confidence,
    }


def _hypothesis(hypothesis: Hypothesis) -> dict[str, Any]:
    return {
        "text": hypothesis.text,
        "score": hypothesis.score,
        "original_score": hypothesis.original_score,
        "posterior": hypothesis.posterior,
    }


def _finite(value: Any) -> Any:
    """Return a value without what JSON has no number for: NaN and infinity are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
