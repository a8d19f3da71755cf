"""Decode with openai-whisper's own beam search, or with faster-whisper.

Both start from the same prompt, and hear the first 30 s, without time stamps. Started
again, this decodes what is missing; results of another model, beam, option or version of
the program are refused. An utterance whose audio cannot be read has empty lines and is
named in the file `failed` and at the end, where the status is then 3; it is tried again.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
import torch
import yaml
from tqdm import tqdm

from espnet_lenbias.options.audio_files import WHISPER_WINDOW as WINDOW
from espnet_lenbias.options.data_files import as_it_is
from espnet_lenbias.options.run_options import described
from espnet_lenbias.report.scoring import read_text

PACKAGES = {"openai": "openai-whisper", "faster": "faster-whisper"}
PRECISIONS = {False: "float32", True: "float16"}  # on the CPU, on a GPU

_FILES = ("text", "steps", "score", "token_int", "seconds", "audio")

SOME_FAILED = 3  # the exit status


class Output(NamedTuple):
    """What is made of an utterance, by the names of ESPnet's result files."""

    text: str
    steps: str
    score: str
    token_int: str


_NOTHING = Output("", "0", "nan", "")  # of audio that cannot be read

Decode = Callable[[np.ndarray, int], Output]  # of samples, with this beam size


class Stopwatch:
    """Adds up the seconds that functions take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def on(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and is timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.seconds += time.perf_counter() - start
            return result

        return timed


class Rival(NamedTuple):
    """A rival, loaded."""

    title: str  # what tables call it
    decode: Decode
    encoder: Stopwatch  # on its features and its encoder


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


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what a rival loads, and what it is to do."""
    add = parser.add_argument
    add(
        "--checkpoint",
        required=True,
        help="a name of openai-whisper's, or a file (.pt)",
    )
    add("--language", default="en")
    add("--task", default="transcribe", choices=["transcribe", "translate"])
    add("--faster_model", help="of faster-whisper: a name, or a folder")


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
            if of.get(key) != value
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


def openai(args: argparse.Namespace) -> Rival:
    """Return openai-whisper's beam search."""
    import whisper

    from local.pack import load

    model = load(args.checkpoint).to("cuda" if args.ngpu else "cpu")
    options = whisper.DecodingOptions(
        task=args.task,
        language=args.language,
        without_timestamps=True,
        fp16=PRECISIONS[bool(args.ngpu)] == "float16",
    )
    calls = []
    model.decoder.register_forward_hook(lambda *_: calls.append(1))
    watch = Stopwatch()
    model.encoder.forward = watch.on(model.encoder.forward)
    features = watch.on(whisper.log_mel_spectrogram)

    def decode(samples: np.ndarray, beam_size: int) -> Output:
        calls.clear()
        padded = whisper.pad_or_trim(torch.as_tensor(samples))
        mel = features(padded, model.dims.n_mels).to(model.device)
        found: Any = whisper.decode(model, mel, options, beam_size=beam_size)
        score = found.avg_logprob * (len(found.tokens) + 1)
        return Output(
            " ".join(found.text.split()),
            str(len(calls)),
            str(score),
            " ".join(map(str, found.tokens)),
        )

    return Rival("openai-whisper", decode, watch)


def faster(args: argparse.Namespace) -> Rival:
    """Return faster-whisper's beam search."""
    try:
        from faster_whisper import WhisperModel
    except ImportError as e:
        sys.exit(
            f"rival.py: {e}: pip install faster-whisper, or leave --rival faster out"
        )
    name = args.faster_model or args.checkpoint
    if Path(name).is_file():
        sys.exit(
            f"rival.py: faster-whisper cannot read {name}: name a model in its form, "
            "--faster_model NAME|FOLDER"
        )
    try:
        model = WhisperModel(
            name,
            device="cuda" if args.ngpu else "cpu",
            compute_type=PRECISIONS[bool(args.ngpu)],
            cpu_threads=torch.get_num_threads(),
        )
    except Exception as e:  # of the net, of the disk
        why = " ".join(str(e).split())
        sys.exit(
            f"rival.py: faster-whisper cannot load {name} ({why}): name a folder that "
            "holds it, --faster_model FOLDER"
        )
    watch = Stopwatch()
    model.encode = watch.on(model.encode)
    features = type(model.feature_extractor)
    model.feature_extractor.__class__ = type(  # where Python looks for the call
        features.__name__, (features,), {"__call__": watch.on(features.__call__)}
    )

    def decode(samples: np.ndarray, beam_size: int) -> Output:
        segments, _ = model.transcribe(
            samples,
            language=args.language,
            task=args.task,
            beam_size=beam_size,
            temperature=0.0,
            without_timestamps=True,
            condition_on_previous_text=False,
        )
        found = list(segments)
        tokens = [token for segment in found for token in segment.tokens]
        score = sum(s.avg_logprob * (len(s.tokens) + 1) for s in found)
        text = " ".join("".join(segment.text for segment in found).split())
        # it does not say how many positions it has searched
        return Output(
            text, str(len(tokens) + 1), str(score), " ".join(map(str, tokens))
        )

    return Rival("faster-whisper", decode, watch)


RIVALS: dict[str, Callable[[argparse.Namespace], Rival]]
RIVALS = {"openai": openai, "faster": faster}

if __name__ == "__main__":
    main()
