"""How long rows and rivals take, on the same clips, in turns.

Each clip is decoded by all of them before the next one has its turn, so that whatever
else the machine does falls on all alike. Loading is not counted, nor the first clip, which
warms everything up.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
import soundfile
import torch
import yaml
from tqdm import tqdm

from espnet_lenbias import Speech2Text
from espnet_lenbias.compare.utterances import spread
from espnet_lenbias.inference.encoding import encode_alone
from espnet_lenbias.inference.use_search import use_search
from espnet_lenbias.options.audio_files import WHISPER_WINDOW as WINDOW
from espnet_lenbias.options.freed_memory import keep_freed_memory
from espnet_lenbias.report.scoring import read_text
from espnet_lenbias.report.tables import (
    column,
    markdown_table,
    write_csv,
    write_text,
)
from local.rivals import RIVALS, Rival, add_model


class Turn(NamedTuple):
    """What one decoding of one clip took."""

    encoder: float  # seconds, features included
    search: float  # seconds of all else
    steps: float  # output positions


@dataclass(frozen=True)
class Line:
    """A row or rival at a beam size; means over the clips, of the medians of the rounds."""

    name: str = column("search")
    beam_size: int = column("beam")
    clips: int = column("clips")
    encoder: float = column("encoder s/clip", ".3f")
    search: float = column("search s/clip", ".3f")
    together: float = column("together s/clip", ".3f")
    steps: float = column("steps", ".1f")
    ratio: float = column("search / that of the first", ".2f")  # median, clip by clip


Contestant = Callable[[np.ndarray], Turn]


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("packed", type=Path, help="whisper.zip of stage 2")
    add("out", type=Path, help="gets speed.md and speed.csv")
    add("--wav_scp", type=Path, nargs="+", required=True, help="the audio, at 16 kHz")
    add(
        "--configs", type=Path, nargs="+", required=True, help="decode.yaml of each row"
    )
    add("--rivals", nargs="*", default=[], choices=sorted(RIVALS))
    add("--rival_beams", nargs="*", type=int, default=[5, 64])
    add("--clips", type=int, default=10, help="evenly spread; 0: all")
    add("--rounds", type=int, default=3)
    add("--ngpu", type=int, default=0)
    add_model(parser)
    return parser


def read_clip(path: str) -> np.ndarray:
    """Return what Whisper hears of a file, (samples,); exit where there is none."""
    try:
        return soundfile.read(path, dtype="float32")[0][:WINDOW]
    except (OSError, soundfile.LibsndfileError) as e:
        why = " ".join(str(e).split())
        sys.exit(f"speed.py: {why}: mend {path}, or start again from stage 1")


def main() -> None:
    """Run the command; see the module's docstring."""
    keep_freed_memory()  # as the tools do
    args = get_parser().parse_args()
    files = [path for scp in args.wav_scp for path in read_text(scp).values()]
    clips = [read_clip(path) for path in spread(files, args.clips)]
    contestants = {**rows(args), **rivals(args)}
    turns = take_turns(contestants, clips, args.rounds)
    lines = list(summed(turns))
    args.out.mkdir(parents=True, exist_ok=True)
    table = markdown_table(lines)
    how = f"{args.rounds} rounds, threads: {torch.get_num_threads()}"
    write_text(args.out / "speed.md", f"{table}\n{how}, torch {torch.__version__}\n")
    write_csv(args.out / "speed.csv", lines)
    print(table)
    print(f"{how}; {args.out / 'speed.md'}")


def rows(args: argparse.Namespace) -> dict[tuple[str, int], Contestant]:
    """Return the searches of the decode configs, on one loaded model.

    Raises:
        SystemExit: There is no such search.
    """
    device = "cuda" if args.ngpu else "cpu"
    model = Speech2Text.from_pretrained(
        str(args.packed), device=device, ctc_weight=0.0, lm_weight=0.0
    )
    found = {}
    for path in args.configs:
        config = yaml.safe_load(path.read_text("utf-8"))
        beam, name = config["beam_size"], path.parent.name.partition("_beam")[0]
        try:
            use_search(
                model,
                config["search"],
                beam_size=beam,
                decoder_dtype=config.get("decoder_dtype"),
                **(config.get("search_conf") or {}),
            )
        except ValueError as e:
            sys.exit(f"speed.py: {path}: {e}")
        found[name, beam] = partial(rows_turn, model, model.beam_search)
    return found


@torch.no_grad()
def rows_turn(model: Any, search: Any, samples: np.ndarray) -> Turn:
    """Decode a clip with a search of a loaded model, timed."""
    start = _now()
    frames = encode_alone(model, torch.from_numpy(samples))
    encoded = _now()
    search(frames, model.maxlenratio, model.minlenratio)
    end = _now()
    traces = getattr(search, "trace", None)  # ESPnet's own has none
    steps = traces[0].steps if traces else math.nan
    return Turn(encoded - start, end - encoded, steps)


def rivals(args: argparse.Namespace) -> dict[tuple[str, int], Contestant]:
    """Return the rivals, at their beam sizes."""
    loaded = [RIVALS[kind](args) for kind in args.rivals]
    return {
        (rival.title, beam): partial(rivals_turn, rival, beam)
        for rival in loaded
        for beam in args.rival_beams
    }


def rivals_turn(rival: Rival, beam_size: int, samples: np.ndarray) -> Turn:
    """Decode a clip with a rival, timed."""
    rival.encoder.seconds = 0.0
    start = _now()
    output = rival.decode(samples, beam_size)
    together = _now() - start
    encoder = rival.encoder.seconds
    return Turn(encoder, together - encoder, float(output.steps))


def take_turns(
    contestants: dict[tuple[str, int], Contestant],
    clips: Sequence[np.ndarray],
    rounds: int,
) -> dict[tuple[str, int], list[list[Turn]]]:
    """Return the turns of each contestant, clip by clip."""
    for decode in contestants.values():
        decode(clips[0])
    turns: dict[tuple[str, int], list[list[Turn]]]
    turns = {key: [[] for _ in clips] for key in contestants}
    for _ in tqdm(range(rounds), unit="round", disable=None):
        for i, clip in enumerate(clips):
            for key, decode in contestants.items():
                turns[key][i].append(decode(clip))
    return turns


def summed(turns: dict[tuple[str, int], list[list[Turn]]]) -> Iterator[Line]:
    """Yield a line for each contestant; those of a beam one below the other."""
    for name, beam in sorted(turns, key=lambda key: key[1]):
        by_clip = turns[name, beam]
        first = next(turns[key] for key in turns if key[1] == beam)
        ratios = [
            mine.search / other.search
            for pair in zip(by_clip, first, strict=True)
            for mine, other in zip(*pair, strict=True)
        ]
        encoder, search, steps = (
            mean(median(getattr(turn, what) for turn in clip) for clip in by_clip)
            for what in Turn._fields
        )
        yield Line(
            name,
            beam,
            len(by_clip),
            encoder,
            search,
            encoder + search,
            steps,
            median(ratios),
        )


def _now() -> float:
    """Return the time in seconds, once a GPU has done its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    main()
