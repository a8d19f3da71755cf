"""Decode with openai-whisper's own beam search, or with faster-whisper.

Both start from the same prompt, and hear the first 30 s, without time stamps. Started
again, this decodes what is missing; results of another model, beam, option or version of
the program are refused. An utterance whose audio cannot be read has empty lines and is
named in the file `failed` and at the end, where the status is then 3; it is tried again.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import soundfile
import yaml
from tqdm import tqdm

from espnet_lenbias.options.audio_files import WHISPER_WINDOW as WINDOW
from espnet_lenbias.options.data_files import as_it_is
from espnet_lenbias.options.run_options import described, is_same
from espnet_lenbias.report.scoring import read_text
from local.rivals import PACKAGES, PRECISIONS, RIVALS, Output, add_model

_FILES = ("text", "steps", "score", "token_int", "seconds", "audio")

SOME_FAILED = 3  # the exit status

_NOTHING = Output("", "0", "nan", "")  # of audio that cannot be read


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("rival", choices=sorted(RIVALS))
    add("wav_scp", type=Path, help="the audio, at 16 kHz")
    add("out", type=Path, help="gets 1best_recog/{text,...}")
    add("--beam_size", type=int, default=5)
    add("--ngpu", type=int, default=0)
    add_model(parser)
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    audio = read_text(args.wav_scp)
    results = args.out / "1best_recog"
    results.mkdir(parents=True, exist_ok=True)
    check_same_run(args.out, run_of(args))
    of = {key: as_it_is(path) for key, path in audio.items()}
    done = already_done(results, of)
    todo = [key for key in audio if key not in done]
    print(f"{len(audio) - len(todo)} of {len(audio)} utterances are decoded already")
    if not todo:
        return
    rival = RIVALS[args.rival](args)
    config = {"row": rival.title, "search": args.rival, "beam_size": args.beam_size}
    (args.out.parent / "decode.yaml").write_text(yaml.safe_dump(config), "utf-8")
    failures = {}
    for key in tqdm(todo, unit="file", disable=None):
        values = (*_NOTHING, "", "")  # of no audio: the next run decodes it again
        try:
            samples, _ = soundfile.read(audio[key], dtype="float32")
        except (OSError, soundfile.LibsndfileError) as e:
            failures[key] = " ".join(str(e).split())
        else:
            start = time.perf_counter()
            output = rival.decode(samples[:WINDOW], args.beam_size)
            values = (*output, f"{time.perf_counter() - start:.3f}", of[key])
        for name, value in zip(_FILES, values, strict=True):
            with (results / name).open("a", encoding="utf-8") as f:
                f.write(f"{key} {value}\n")
    report_failures(args.out / "failed", failures)


def report_failures(path: Path, failures: Mapping[str, str]) -> None:
    """Write why utterances are not decoded, and end with status 3 if there are any."""
    lines = [f"failed: {key}: {why}\n" for key, why in failures.items()]
    path.write_text("".join(lines), "utf-8")
    sys.stderr.writelines(lines)
    if failures:
        sys.exit(SOME_FAILED)


def run_of(args: argparse.Namespace) -> dict[str, str]:
    """Return what decides the texts of a run, the audio aside."""
    model = args.checkpoint
    if args.rival == "faster" and args.faster_model:
        weights = Path(args.faster_model, "model.bin")
        model = str(weights) if weights.is_file() else args.faster_model
    package = PACKAGES[args.rival]
    try:
        program = f"{package} {version(package)}"
    except PackageNotFoundError:
        program = f"{package}, which is not installed"
    return {
        "program": program,
        "model": described(model),
        "beam_size": str(args.beam_size),
        "language": args.language,
        "task": args.task,
        "precision": PRECISIONS[bool(args.ngpu)],
    }


def check_same_run(folder: Path, run: Mapping[str, str]) -> None:
    """Verify that results in a folder are of such a run, and note of which they are.

    Raises:
        SystemExit: They are of another one.
    """
    note, text = folder / "run.yaml", folder / "1best_recog" / "text"
    if text.is_file() and text.stat().st_size:
        of = yaml.safe_load(note.read_text("utf-8")) if note.is_file() else {}
        other = [
            f"{key} {of.get(key, 'that is not known')}, not {value}"
            for key, value in run.items()
            if not is_same(of.get(key), value)
        ]
        if other:
            sys.exit(
                f"rival.py: the results in {folder} are of {'; '.join(other)}: remove it "
                "to decode anew, or give the run another --name"
            )
    note.write_text(yaml.safe_dump(dict(run), sort_keys=False), "utf-8")


def already_done(results: Path, audio: Mapping[str, str]) -> set[str]:
    """Return what has a line in all files; other lines go.

    Those are of a run that was killed, or of audio that was another, or is no longer
    there.

    Args:
        results: The folder.
        audio: What each utterance is decoded from, by its key.
    """
    lines: dict[str, dict[str, str]] = {}
    for name in _FILES:
        path = results / name
        text = path.read_text("utf-8") if path.is_file() else ""
        whole = [line for line in text.split("\n")[:-1] if line]  # the last may be half
        lines[name] = {line.split(" ", 1)[0]: line for line in whole}
    done = set.intersection(*(set(found) for found in lines.values()))
    done = {key for key in done if lines["audio"][key] == f"{key} {audio.get(key)}"}
    for name, found in lines.items():
        kept = "".join(f"{line}\n" for key, line in found.items() if key in done)
        (results / name).write_text(kept, "utf-8")
    return done


if __name__ == "__main__":
    main()
