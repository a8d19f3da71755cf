"""From a folder of audio to ESPnet's data folder: audio at 16 kHz, and transcripts."""

import argparse
import sys
from collections.abc import Iterator
from math import gcd
from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import resample_poly

from espnet_lenbias.options.audio_files import WHISPER_RATE as RATE
from espnet_lenbias.options.audio_files import WHISPER_WINDOW as WINDOW
from espnet_lenbias.options.cut_audio import check_whole

_SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif", ".au", ".sph")
_SHOWN = 5  # files that a message names


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("audio", type=Path, help="a folder, searched to its depths")
    add("out", type=Path, help="gets wav.scp, utt2spk, spk2utt, and text")
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    files = dict(sorted(audio_files(args.audio)))
    if not files:
        sys.exit(
            f"data.py: there is no audio in {args.audio}: files that end in "
            f"{', '.join(_SUFFIXES)} are read; ffmpeg makes such of others"
        )
    args.out.mkdir(parents=True, exist_ok=True)
    converted = args.out.resolve() / "audio"
    ready, broken, long = {}, [], []
    for key, path in files.items():
        try:
            ready[key] = at_16_khz(path, converted / f"{key}.flac")
        except (OSError, RuntimeError, ValueError) as e:
            broken.append(f"{path}: {e}")
            continue
        if soundfile.info(ready[key]).frames > WINDOW:
            long.append(str(path))
    if broken:
        sys.exit(
            f"data.py: {len(broken)} of {len(files)} files cannot be read: "
            f"{'; '.join(broken[:_SHOWN])}. Mend them, or take them out of {args.audio}"
        )
    texts = {key: path.with_suffix(".txt") for key, path in files.items()}
    said = {key: path for key, path in texts.items() if path.is_file()}
    write(args.out / "wav.scp", ready)
    write(args.out / "utt2spk", {key: key for key in files})
    write(args.out / "spk2utt", {key: key for key in files})
    if len(said) == len(files):
        write(args.out / "text", {k: _one_line(path) for k, path in said.items()})
    else:
        (args.out / "text").unlink(missing_ok=True)
    print(f"{len(files)} files, {len(said)} with a transcript (NAME.txt beside it)")
    if 0 < len(said) < len(files):
        lacking = [str(texts[key]) for key in files if key not in said]
        print(f"no table is made: there is no {_some(lacking)}")
    if long:
        print(
            f"WARNING: {len(long)} are longer than {WINDOW // RATE} s, of which Whisper "
            f"hears the beginning alone; cut them into pieces: {_some(long)}"
        )


def audio_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield a name for each audio file below a folder, with the file.

    The name is that of the file, below the folder, with "-" for what a name of an
    utterance may not have.

    Raises:
        SystemExit: Two files would have the same name.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.resolve().rglob("*")):
        if path.suffix.lower() in _SUFFIXES and path.is_file():
            inner = path.relative_to(folder.resolve()).with_suffix("")
            key = "-".join("-".join(inner.parts).split())
            if key in found:
                sys.exit(
                    f"data.py: {found[key]} and {path} would both be called {key}: "
                    "rename one"
                )
            found[key] = path
            yield key, path


def at_16_khz(path: Path, copy: Path) -> Path:
    """Return a file of that audio at Whisper's rate, of one channel.

    Args:
        path: Of audio, which is returned where it is so.
        copy: Is written where it is not, unless it is newer than the audio.

    Raises:
        RuntimeError: It is no audio.
        ValueError: There is nothing in it, or it is cut off.
    """
    check_whole(path)
    info = soundfile.info(path)
    whole = path.suffix.lower() in (".wav", ".flac")
    if whole and (info.samplerate, info.channels) == (RATE, 1):
        if not info.frames:
            raise ValueError("it is empty")
        return path
    if not copy.is_file() or copy.stat().st_mtime < path.stat().st_mtime:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        if not len(samples):
            raise ValueError("it is empty")
        mono = samples.mean(axis=1)
        common = gcd(rate, RATE)
        resampled = resample_poly(mono, RATE // common, rate // common)
        copy.parent.mkdir(parents=True, exist_ok=True)
        draft = copy.with_name(f".{copy.name}")
        soundfile.write(draft, np.clip(resampled, -1, 1), RATE, format="FLAC")
        draft.replace(copy)
    return copy


def write(path: Path, values: dict[str, object]) -> None:
    """Write a line for each utterance; a file that would not change keeps its date."""
    text = "".join(f"{key} {value}\n" for key, value in values.items())
    if not path.is_file() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _one_line(path: Path) -> str:
    return " ".join(path.read_text("utf-8-sig").split())


def _some(names: list[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])


if __name__ == "__main__":
    main()
