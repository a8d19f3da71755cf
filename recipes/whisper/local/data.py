"""From a folder of audio to ESPnet's data folder: audio at 16 kHz, and transcripts."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import soundfile

from espnet_lenbias.decoding.audio_blocks import soundfile_blocks
from espnet_lenbias.decoding.found_audio import SUFFIXES, audio_in
from espnet_lenbias.decoding.plain_audio import plain_audio
from espnet_lenbias.options.audio_files import WHISPER_RATE as RATE
from espnet_lenbias.options.audio_files import WHISPER_WINDOW as WINDOW

_SHOWN = 5  # files that a message names


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("audio", type=Path, help="a folder, searched recursively")
    add("out", type=Path, help="gets wav.scp, utt2spk, spk2utt, and text")
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    files = dict(sorted(audio_files(args.audio)))
    if not files:
        sys.exit(
            f"data.py: there is no audio in {args.audio}: files that end in "
            f"{', '.join(sorted(SUFFIXES))} are read"
        )
    texts = {key: path.with_suffix(".txt") for key, path in files.items()}
    said = {key: _one_line(path) for key, path in texts.items() if path.is_file()}
    args.out.mkdir(parents=True, exist_ok=True)
    out = args.out.resolve()
    ready, broken, long = {}, [], []
    for key, path in files.items():
        try:
            ready[key], done = plain_audio(path, RATE, out, f"audio/{key}")
            # to its end, where damage shows; what is a copy has been read so
            for _ in soundfile_blocks(path, RATE) if not done else ():
                pass
        except (OSError, ValueError) as e:
            broken.append(str(e))
            continue
        if soundfile.info(ready[key]).frames > WINDOW:
            long.append(str(path))
    if broken:
        sys.exit(
            f"data.py: {len(broken)} of {len(files)} files cannot be read: "
            f"{'; '.join(broken[:_SHOWN])}. Mend them, or take them out of {args.audio}"
        )
    write(args.out / "wav.scp", ready)
    write(args.out / "utt2spk", {key: key for key in files})
    write(args.out / "spk2utt", {key: key for key in files})
    if len(said) == len(files):
        write(args.out / "text", said)
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
    for path in audio_in(folder.resolve()):
        inner = path.relative_to(folder.resolve()).with_suffix("")
        key = "-".join("-".join(inner.parts).split())
        if key in found:
            sys.exit(
                f"data.py: {found[key]} and {path} would both be called {key}: rename one"
            )
        found[key] = path
        yield key, path


def write(path: Path, values: Mapping[str, object]) -> None:
    """Write a line for each utterance; a file that would not change keeps its date."""
    text = "".join(f"{key} {value}\n" for key, value in values.items())
    if not path.is_file() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _one_line(path: Path) -> str:
    """Return a transcript.

    Raises:
        SystemExit: It is no text.
    """
    try:
        return " ".join(path.read_text("utf-8-sig").split())
    except UnicodeDecodeError:
        sys.exit(f"data.py: {path} is no text in UTF-8")


def _some(names: list[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])


if __name__ == "__main__":
    main()
