"""Transcripts of all that has been decoded, and texts for the report.

The report compares words as they are. What is compared here are texts behind Whisper's
own normaliser, references and hypotheses alike: without case, punctuation and fillers,
with numbers as digits and one spelling of English.
"""

import argparse
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from whisper.normalizers import BasicTextNormalizer, EnglishTextNormalizer

from espnet_lenbias.decoding.format_list import renew_files
from espnet_lenbias.report.scoring import read_text

# What the files of transcripts are called.
_TRANSCRIPT = re.compile(r"[^/]+\.txt")

# Languages that are written without blanks: their words are characters here.
_WITHOUT_BLANKS = ("zh", "ja", "th", "lo", "my", "yue")


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("dir", type=Path, help="holds <tag>/<set>/1best_recog/text")
    add("data", type=Path, help="holds <set>/text, where there are transcripts")
    add("--name", required=True, help="of the report")
    add("--sets", nargs="+", required=True)
    add("--language", default="en")
    add("--task", default="transcribe")
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    language = "en" if args.task == "translate" else args.language
    normalise = normaliser(language)
    found = decoded(args.dir, args.sets)
    for tag, name in found:
        texts = read_text(args.dir / tag / name / "1best_recog" / "text")
        folder = args.dir / "transcripts" / tag / name
        folder.mkdir(parents=True, exist_ok=True)
        files = {f"{key}.txt": [f"{text}\n"] for key, text in texts.items()}
        renew_files(folder, files, _TRANSCRIPT)
    print(f"transcripts are in {args.dir / 'transcripts'}/<row>/<set>/<name>.txt")
    for kind in ("scored", "references"):
        shutil.rmtree(args.dir / kind, ignore_errors=True)
    scored = [name for name in args.sets if (args.data / name / "text").is_file()]
    for name in scored:
        copy(args.data / name, args.dir / "references" / name, normalise)
    for tag, name in found:
        if name in scored:
            source, out = args.dir / tag, args.dir / "scored" / args.name / tag
            copy(source / name / "1best_recog", out / name / "1best_recog", normalise)
            shutil.copy(source / "decode.yaml", out)
    for name in args.sets:
        if name not in scored:
            print(f"{name}: without transcripts there is nothing to score")


def normaliser(language: str) -> Callable[[str], str]:
    """Return Whisper's normaliser for texts of a language."""
    if language == "en":
        return EnglishTextNormalizer()
    return BasicTextNormalizer(split_letters=language in _WITHOUT_BLANKS)


def decoded(folder: Path, sets: Sequence[str]) -> list[tuple[str, str]]:
    """Return tag and set of each decoding in a folder."""
    return sorted(
        (path.parts[-4], path.parts[-3])
        for path in folder.glob("*/*/1best_recog/text")
        if path.parts[-3] in sets
    )


def copy(source: Path, out: Path, normalise: Callable[[str], str]) -> None:
    """Copy the files of a set, the text normalised."""
    out.mkdir(parents=True)
    for path in source.iterdir():
        if path.is_file() and path.name != "text":
            shutil.copy(path, out)
    texts = read_text(source / "text")
    lines = (f"{key} {' '.join(normalise(t).split())}\n" for key, t in texts.items())
    (out / "text").write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
