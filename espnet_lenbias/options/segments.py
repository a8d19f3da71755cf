"""Kaldi's `segments`: utterances that are pieces of recordings; no torch here.

A line is ``<utterance> <recording> <start> <end>``, in seconds; ``wav.scp`` beside it
has a line for each recording. An end of -1 is that of the recording.
"""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.audio_files import seconds_of
from espnet_lenbias.options.data_files import as_it_is, as_they_are, read_lines

# Seconds that a piece may go beyond its recording, as in Kaldi; it then ends with it.
_OVERSHOOT = 0.5

_TO_THE_END = -1.0


@dataclass(frozen=True)
class Segment:
    """A piece of a recording."""

    recording: str
    file: str
    start: float  # seconds
    end: float  # seconds, no more than there are; -1: those of a file that is broken

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start


def read_segments(path: Path, recordings: Mapping[str, str]) -> dict[str, Segment]:
    """Read the pieces of recordings, by utterance, and verify them.

    A file that is not there, or no audio, is left to the decoding: other recordings can
    be sound.

    Args:
        path: The `segments`.
        recordings: Of ``wav.scp``: the file of each recording.

    Raises:
        OSError: It cannot be read.
        OptionError: Names the line that is wrong and what is wrong with it.
    """
    segments = {}
    lengths: dict[str, float | None] = {}
    for number, (key, value) in enumerate(read_lines(path).items(), 1):
        where = f"{path}, line {number}: {key}"
        recording, start, end = _columns(where, value)
        file = recordings.get(recording)
        if file is None:
            raise OptionError(
                f"{where} is a piece of {recording}, and wav.scp has no such recording"
            )
        if file not in lengths:
            lengths[file] = _length(where, file)
        length = lengths[file]
        if length is not None:
            end = _checked_end(f"{where} is {value}, and {file}", start, end, length)
        segments[key] = Segment(recording, file, start, end)
    return segments


def segments_of(args: argparse.Namespace) -> dict[str, Segment]:
    """Return the pieces that a run's options ask for; none: whole files are decoded.

    Raises:
        OSError: A file cannot be read.
        OptionError: Says what is wrong.
    """
    if args.segments is None:
        return {}
    path, _ = cut_data(args.data_path_and_name_and_type)
    return read_segments(Path(args.segments), read_lines(Path(path)))


def by_recording(
    segments: Mapping[str, Segment],
    keys: Iterable[str],
    recordings: Iterable[str] = (),
) -> dict[str, list[str]]:
    """Return the pieces of each recording in the order of time.

    Args:
        segments: All pieces.
        keys: Of utterances, of which others are left out.
        recordings: They come first, in this order, whether they have pieces or not;
            others follow in the order of the first piece of theirs.
    """
    pieces: dict[str, list[str]] = {recording: [] for recording in recordings}
    for key in keys:
        if key in segments:
            pieces.setdefault(segments[key].recording, []).append(key)
    for of_one in pieces.values():
        of_one.sort(key=lambda key: (segments[key].start, segments[key].end))
    return pieces


def cut_data(data: Sequence[tuple[str, str, str]]) -> tuple[str, str]:
    """Return file and name of the data that is cut into pieces.

    Raises:
        OptionError: There is none, or several.
    """
    sounds = [(path, name) for path, name, kind in data if kind == "sound"]
    if len(sounds) == 1:
        return sounds[0]
    raise OptionError(
        f"segments: they are pieces of data of the type sound, of which there are "
        f"{len(sounds)} in data_path_and_name_and_type: say wav.scp,speech,sound once"
    )


def cut_lines(
    args: argparse.Namespace, segments: Mapping[str, Segment]
) -> dict[str, Mapping[str, str]]:
    """Return the lines of the data files, those of recordings cut into utterances.

    Args:
        args: The options of a tool.
        segments: The pieces; none: whole files are decoded.

    Returns:
        File -> key of an utterance -> what tells its data from any other.

    Raises:
        OSError: A file cannot be read.
        OptionError: Says what is wrong.
    """
    lines = as_they_are(args)
    if segments:
        path, _ = cut_data(args.data_path_and_name_and_type)
        files = {piece.file: as_it_is(piece.file) for piece in segments.values()}
        lines[path] = {
            key: f"{files[piece.file]} {piece.start:g} {piece.end:g}"
            for key, piece in segments.items()
        }
    return lines


def _columns(where: str, value: str) -> tuple[str, float, float]:
    """Return recording, start and end of a line."""
    try:
        recording, *times = value.split()
        start, end = map(float, times)
        if "_" in "".join(times) or not (math.isfinite(start) and math.isfinite(end)):
            raise ValueError  # Python reads 1_0 as ten
    except ValueError:
        raise OptionError(
            f"{where} has {value!r} behind it: write recording, start and end in seconds"
        ) from None
    if start < 0:
        raise OptionError(f"{where} starts at {start:g} s: start at 0 or later")
    if end <= start and end != _TO_THE_END:
        raise OptionError(
            f"{where} ends at {end:g} s, which is not after its start, {start:g} s"
        )
    return recording, start, end


def _length(where: str, file: str) -> float | None:
    """Return the seconds of a recording; None of one that is broken."""
    if file.endswith("|"):
        raise OptionError(
            f"{where} is a piece of {file}, a command: write what it gives into a file, "
            "or cut it with ESPnet's scripts/audio/format_wav_scp.sh --segments"
        )
    with suppress(OSError, ValueError):
        return seconds_of(Path(file))
    return None


def _checked_end(what: str, start: float, end: float, length: float) -> float:
    """Return where a piece ends in a recording of this length."""
    if start >= length or end > length + _OVERSHOOT:
        raise OptionError(
            f"{what} has {length:.2f} s: no piece goes beyond its recording"
        )
    return length if end == _TO_THE_END else min(end, length)
