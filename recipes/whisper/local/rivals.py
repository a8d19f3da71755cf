"""The beam searches of openai-whisper and of faster-whisper, loaded."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from local.pack import load

PACKAGES = {"openai": "openai-whisper", "faster": "faster-whisper"}
PRECISIONS = {False: "float32", True: "float16"}  # on the CPU, on a GPU


class Output(NamedTuple):
    """What is made of an utterance, by the names of ESPnet's result files."""

    text: str
    steps: str
    score: str
    token_int: str


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


def openai(args: argparse.Namespace) -> Rival:
    """Return openai-whisper's beam search."""
    import whisper

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
            f"faster-whisper: {e}: pip install faster-whisper, or leave --rival faster out"
        )
    name = args.faster_model or args.checkpoint
    if Path(name).is_file():
        sys.exit(
            f"faster-whisper cannot read {name}: name a model in its form, "
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
            f"faster-whisper cannot load {name} ({why}): name a folder that "
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
