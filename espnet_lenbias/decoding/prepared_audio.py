"""Audio files of any kind prepared for decoding: as the model takes them, and cut."""

import os
import sys
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from tqdm import tqdm

from espnet_lenbias.decoding.cutting import CutOptions
from espnet_lenbias.decoding.plain_audio import COPIES, plain_audio
from espnet_lenbias.decoding.segment import cut_recording, segment_line
from espnet_lenbias.options.audio_files import seconds_of

# Bytes of the name of a transcript: with the ending of a file, and with the place of a
# piece, it is no longer than names of files may be.
_LONGEST_NAME = 255 - len("-0000000-0000000.jsonl")


def prepared(
    files: Mapping[str, Path], rate: int, folder: Path
) -> tuple[dict[str, Path], list[str]]:
    """Return audio as the model takes it, and why there is none of other files.

    Args:
        files: By the names of their transcripts.
        rate: Of the model, in Hz.
        folder: The output folder, which gets copies of what has to be changed.

    Returns:
        A file of one channel for each name; a line for each file that cannot be read.

    Raises:
        OSError: A copy cannot be written.
    """
    ready, failures = {}, []
    for name, path in tqdm(files.items(), "audio", unit="file", disable=_no_bar()):
        if len(os.fsencode(name)) > _LONGEST_NAME:
            failures.append(
                f"{path}: {name[:40]}..., as its transcript would be called, is too "
                "long for the name of a file: rename it, so that no other is called alike"
            )
            continue
        try:
            ready[name], done = plain_audio(path, rate, folder, f"{COPIES}/{name}")
        except ValueError as e:
            failures.append(str(e))
            continue
        if done:
            tqdm.write(f"{path}: {done}", file=sys.stderr)
    return ready, failures


def states_of(files: Iterable[Path]) -> dict[str, str]:
    """Return what tells audio files from what they were before: size and date.

    Args:
        files: As they are decoded. Copies need none of it: their names tell of what they
            are copies.
    """
    return {str(file): _state(file) for file in files}


def _state(file: Path) -> str:
    try:
        found = file.stat()
    except OSError:
        return ""
    return f" {found.st_size} {found.st_mtime_ns}"


def cut_at_silences(files: Mapping[str, Path], options: CutOptions) -> list[str]:
    """Return the lines of `segments`; say which files hold no speech.

    Args:
        files: The recordings, by name; those that are short enough stay whole.
        options: How to cut.

    Raises:
        OptionError: Silences are to be found, and the detector is not installed.
    """
    detector, lines = None, []
    for name, path in tqdm(files.items(), "silences", unit="file", disable=_no_bar()):
        whole = f"{name} {name} 0 -1\n"
        if not _is_longer(path, options.longest):
            lines.append(whole)
            continue
        if detector is None:
            # Here, not above: this loads torch.
            from espnet_lenbias.decoding.voice import load_detector

            detector = load_detector()
        try:
            pieces = cut_recording(path, detector, options)
        except (OSError, ValueError):
            lines.append(whole)  # its decoding fails, and says so
            continue
        if not pieces:
            tqdm.write(f"{name}: there is no speech in {path}", file=sys.stderr)
        lines += [_unlike(segment_line(name, *piece), files) for piece in pieces]
    return lines


def _unlike(line: str, names: Container[str]) -> str:
    """Return the line of a piece, which is called as no whole file is."""
    while line.split(" ")[0] in names:
        line = line.replace(" ", "- ", 1)
    return line


def _is_longer(path: Path, seconds: float) -> bool:
    """Tell whether audio is longer than this; what cannot be read is not."""
    try:
        return seconds_of(path) > seconds
    except (OSError, ValueError):
        return False


def _no_bar() -> bool:
    """Tell whether nobody would see a bar of progress."""
    return not sys.stderr.isatty()
