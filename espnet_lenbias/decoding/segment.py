"""``espnet-lenbias segment``: cut long recordings at silences.

Writes Kaldi's `segments` of the recordings in a wav.scp, one line for each piece:
`piece recording start end`, in seconds. The tools of this package decode the pieces with
--segments, and write the text of each recording into OUTPUT_DIR/recordings/.

Where there is speech Silero's detector says, an extra of this package (`vad`). No part of
a recording is in memory but what is read at once.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from espnet_lenbias.decoding.cutting import CutOptions, cut
from espnet_lenbias.decoding.plain_files import free_name, replace_file
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.audio_files import check_audio_file, seconds_of
from espnet_lenbias.options.data_files import read_lines
from espnet_lenbias.options.output_folder import make_output_dir, named_path
from espnet_lenbias.options.values import finite, take_as_written

_PROG = "espnet-lenbias segment"


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog=_PROG,
        description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    take_as_written(parser)
    add = parser.add_argument
    add(
        "wav_scp",
        type=named_path,
        metavar="WAV_SCP",
        help="lines `recording audio-file`",
    )
    add(
        "--output_dir",
        type=named_path,
        required=True,
        help="where to write `segments`, e.g. the folder of WAV_SCP",
    )
    add(
        "--longest",
        type=finite,
        default=CutOptions.longest,
        metavar="SECONDS",
        help="no piece is longer: no more than the model was trained on, which for "
        "ESPnet's recipes are 20 to 30 s (default: %(default)g)",
    )
    add(
        "--silence",
        type=finite,
        default=CutOptions.silence,
        metavar="SECONDS",
        help="the shortest silence to cut at (default: %(default)g)",
    )
    add(
        "--margin",
        type=finite,
        default=CutOptions.margin,
        metavar="SECONDS",
        help="of silence left before and after speech (default: %(default)g)",
    )
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 1 if recordings failed, which are named."""
    parser = get_parser()
    args = parser.parse_args(cmd)
    failures: list[str] = []
    try:
        options = CutOptions(args.longest, args.silence, args.margin)
        recordings = _readable(read_lines(args.wav_scp), failures)
        found = []
        if recordings:
            make_output_dir(args.output_dir)
            _check_own(args.output_dir / "segments")
            # Here, not above: this loads torch.
            from espnet_lenbias.decoding.voice import load_detector

            found = list(_lines(recordings, load_detector(), options, failures))
        if not found:
            none = "there is no speech in its recordings"
            raise OptionError(f"{args.wav_scp}: {'; '.join(failures) or none}")
        _put_aside(args.output_dir / "segments", found)
        replace_file(args.output_dir, "segments", found)
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    print(f"{len(found)} pieces in {args.output_dir / 'segments'}")
    for why in failures:
        print(f"{_PROG}: failed: {why}", file=sys.stderr)
    return 1 if failures else 0


def _check_own(path: Path) -> None:
    """Verify that what is written over, if there is something, is of this command.

    Raises:
        OptionError: There is a file with other lines.
    """
    if not os.path.lexists(path):
        return
    if not path.is_file():
        why = "is a folder" if path.is_dir() else "is no file"
        raise OptionError(f"output_dir: {path} {why}: move it, or name another folder")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not all(map(_is_own, lines)):
        raise OptionError(
            f"output_dir: {path} holds segments that this command has not written: "
            "move the file, or name another folder"
        )


def _put_aside(path: Path, lines: Sequence[str]) -> None:
    """Give older segments another name, unless they are the same: a person may have cut.

    Raises:
        OSError: They cannot be read or renamed.
    """
    if path.is_file() and path.read_text(encoding="utf-8") != "".join(lines):
        other = free_name(path)
        path.rename(other)
        print(f"{_PROG}: the segments that were there are {other} now", file=sys.stderr)


def _is_own(line: str) -> bool:
    """Tell whether a line of `segments` is as this command writes it."""
    try:
        _, recording, start, end = line.split()
        return f"{line}\n" == segment_line(recording, float(start), float(end))
    except (ValueError, OverflowError):  # other columns, no numbers, infinity
        return False


def _readable(recordings: Mapping[str, str], failures: list[str]) -> dict[str, str]:
    """Return the recordings that can be read.

    Args:
        recordings: The file of each.
        failures: Gets a line for each of the others.
    """
    readable = {}
    for recording, file in recordings.items():
        if not file:
            failures.append(f"{recording}: no file stands behind it")
            continue
        if file.endswith("|"):
            failures.append(f"{recording}: {file}: name a file, not a command")
            continue
        try:
            check_audio_file(Path(file))
        except (OSError, ValueError) as e:
            failures.append(f"{recording}: {e}")
            continue
        readable[recording] = file
    return readable


def _lines(
    recordings: Mapping[str, str],
    detector: Any,
    options: CutOptions,
    failures: list[str],
) -> Iterator[str]:
    """Yield the lines of `segments`; say which recordings have none.

    Args:
        recordings: The file of each.
        detector: See :func:`espnet_lenbias.decoding.voice.load_detector`.
        options: How to cut.
        failures: Gets a line for each recording that cannot be cut.
    """
    for recording, file in recordings.items():
        try:
            pieces = cut_recording(Path(file), detector, options)
        except (OSError, ValueError) as e:
            failures.append(f"{recording}: {e}")
            continue
        if not pieces:
            print(f"{recording}: there is no speech in {file}", file=sys.stderr)
        for start, end in pieces:
            yield segment_line(recording, start, end)


def cut_recording(
    path: Path, detector: Any, options: CutOptions
) -> list[tuple[float, float]]:
    """Return the pieces of a recording that hold speech, (start, end) in seconds.

    Args:
        path: An audio file.
        detector: See :func:`espnet_lenbias.decoding.voice.load_detector`.
        options: How to cut.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no audio.
        AudioError: It holds NaN or infinity, or ends too early.
    """
    from espnet_lenbias.decoding.voice import FRAME_SECONDS, speech_probabilities

    probabilities = speech_probabilities(path, detector)
    return cut(probabilities, FRAME_SECONDS, seconds_of(path), options)


def segment_line(recording: str, start: float, end: float) -> str:
    """Return a line of `segments`; sorted by their names pieces are in order of time."""
    key = f"{recording}-{round(start * 100):07d}-{round(end * 100):07d}"
    return f"{key} {recording} {start:.2f} {end:.2f}\n"
