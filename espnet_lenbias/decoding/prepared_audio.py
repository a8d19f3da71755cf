"""Audio files of any kind prepared for decoding: as the model takes them, and cut."""

import sys
from collections.abc import Container, Mapping
from pathlib import Path

from tqdm import tqdm

from espnet_lenbias.decoding.cutting import CutOptions
from espnet_lenbias.decoding.plain_audio import AN_ENDING, COPIES, plain_audio
from espnet_lenbias.decoding.plain_files import file_name
from espnet_lenbias.decoding.segment import cut_recording, segment_line
from espnet_lenbias.errors import shown
from espnet_lenbias.options.audio_files import seconds_of


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
        copy = f"{COPIES}/{file_name(name, AN_ENDING)}"
        try:
            ready[name], done = plain_audio(path, rate, folder, copy)
        except ValueError as e:
            failures.append(str(e))
            continue
        if done:
            tqdm.write(f"{shown(path)}: {done}", file=sys.stderr)
    return ready, failures


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
