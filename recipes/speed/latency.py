"""What a listener waits for: searches that get the encoder's frames block by block.

The bundled model is no streaming one, and a search does not ask: it gets the frames, of
one utterance or of several in a row, in blocks of the size in which ESPnet's contextual
block encoders make them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

import torch
from corpus import bundled_models
from measure import now
from tqdm import tqdm

from espnet_lenbias import Speech2Text
from espnet_lenbias.compare.compare import encode
from espnet_lenbias.compare.utterances import Utterance, spread
from espnet_lenbias.espnet_compat import BatchBeamSearchOnline
from espnet_lenbias.options.registry import settings_of
from espnet_lenbias.report.tables import column
from espnet_lenbias.search.online import build_online_search

# Frames of the first block and of each later one, with ESPnet's block_size of 40,
# look_ahead and hop_size of 16.
_FIRST, _HOP = 24, 16
_BEAM = 20  # ESPnet's default in streaming
# CTC weight and disable_repetition_detection.
SETTINGS = ((0.0, False), (0.3, False), (0.3, True))
# Utterances in a row -> how many times.
RUNS = {1: 24, 6: 4}
_SEARCHES = ("espnet", "explicit_length")


@dataclass(frozen=True)
class LatencyLine:
    """A search on inputs of about the same length."""

    frames: float = column("frames", ".0f")  # mean
    blocks: float = column("blocks", ".1f")  # mean
    inputs: int = column("inputs")
    ctc_weight: float = column("CTC weight", ".1f")
    repetitions: bool = column("disable_repetition_detection")
    beam_size: int = column("beam")
    search: str = column("search")
    block: float = column("a block ms", ".0f")  # mean of all but the last
    last: float = column("last block ms", ".0f")  # median
    speedup: float = column("espnet / this, last block", ".1f")


def latency_lines(
    utterances: Sequence[Utterance],
    device: torch.device,
    settings: Sequence[tuple[float, bool]] = SETTINGS,
    runs: Mapping[int, int] = RUNS,
) -> list[LatencyLine]:
    """Search block by block, an input by all searches before the next has its turn.

    Args:
        utterances: At least as many as the runs take.
        device: Where to search.
        settings: See `SETTINGS`.
        runs: See `RUNS`.
    """
    models = bundled_models([weight for weight, _ in settings], device)
    searches = {
        (setting, name): search
        for setting in settings
        for name, search in _searches(models[setting[0]], setting[1]).items()
    }
    model, *_ = models.values()  # whichever: they have one encoder
    taken = spread(utterances, max(n * times for n, times in runs.items()))
    frames = [encode(model, u.audio) for u in taken]
    lines = []
    for n, times in runs.items():
        inputs = [torch.cat(frames[i * n : i * n + n]) for i in range(times)]
        lines += _lines(searches, inputs, device)
    return lines


def _lines(
    searches: Mapping[tuple[tuple[float, bool], str], torch.nn.Module],
    inputs: Sequence[torch.Tensor],
    device: torch.device,
) -> list[LatencyLine]:
    """Measure all searches on inputs, (T, D) each; (setting, name) -> search."""
    cut = [_blocks(x) for x in inputs]
    seconds: dict = {key: [] for key in searches}
    for search in searches.values():
        _seconds(search, cut[0], device)  # warm
    for blocks in tqdm(cut, desc="streaming"):
        for key, search in searches.items():
            seconds[key].append(_seconds(search, blocks, device))
    last = {key: median(s[-1] for s in each) for key, each in seconds.items()}
    return [
        LatencyLine(
            frames=mean(map(len, inputs)),
            blocks=mean(map(len, cut)),
            inputs=len(inputs),
            ctc_weight=setting[0],
            repetitions=setting[1],
            beam_size=_BEAM,
            search=name,
            block=1e3 * mean(s for each in seconds[setting, name] for s in each[:-1]),
            last=1e3 * last[setting, name],
            speedup=last[setting, "espnet"] / last[setting, name],
        )
        for setting, name in searches
    ]


def _searches(model: Speech2Text, repetitions: bool) -> dict[str, torch.nn.Module]:
    """Return both online searches with the scorers of a model."""
    settings = settings_of(model.beam_search, _BEAM)
    espnet = BatchBeamSearchOnline(**settings, disable_repetition_detection=repetitions)
    return {name: build_online_search(name, espnet).eval() for name in _SEARCHES}


def _blocks(x: torch.Tensor) -> list[torch.Tensor]:
    """Cut the frames (T, D) of an utterance into blocks."""
    first, rest = x[:_FIRST], x[_FIRST:]
    return [first, *rest.split(_HOP)] if len(rest) else [first]


def _seconds(
    search: torch.nn.Module, blocks: Sequence[torch.Tensor], device: torch.device
) -> list[float]:
    """Search an utterance; return the seconds of each block."""
    search.reset()
    seconds = []
    for i, block in enumerate(blocks, 1):
        start = now(device)
        with torch.no_grad():
            search(x=block, is_final=i == len(blocks))
        seconds.append(now(device) - start)
    return seconds
