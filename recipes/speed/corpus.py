"""Bundled audio decoded with a bundled model, from the audio to the text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean

import soundfile
import torch
from measure import now
from tqdm import tqdm

from espnet_lenbias import Speech2Text
from espnet_lenbias.compare.compare import ComparedSearch, Contestant, Result, encode
from espnet_lenbias.compare.utterances import Utterance, read_set
from espnet_lenbias.decoding.batches import (
    DEFAULT_BINS,
    FEWEST_BATCHES,
    bounded,
    by_length,
)
from espnet_lenbias.report.tables import column

_RECIPE = Path(__file__).resolve().parents[1] / "mini_librispeech"
_PACKED = _RECIPE / "pretrained/asr_transformer.zip"
_AUDIO = _RECIPE / "slice/LibriSpeech"
SETS = ("dev-clean", "dev-other", "test-other")
# CTC weight and beam size.
SETTINGS = ((0.0, 8), (0.0, 64), (0.3, 8))
# What decodes, what tables call it, and whether it gets batches.
_SEARCHES = (
    ("espnet", "espnet", False),
    ("explicit_length", "explicit_length", False),
    ("explicit_length", "explicit_length, batches", True),
)


@dataclass(frozen=True)
class CorpusLine:
    """A search on all utterances."""

    search: str = column("search")
    ctc_weight: float = column("CTC weight", ".1f")
    beam_size: int = column("beam")
    utterances: int = column("utterances")
    audio: float = column("audio s", ".0f")
    encoder: float = column("encoder s", ".1f")
    seconds: float = column("search s", ".1f")
    together: float = column("together s", ".1f")
    speedup: float = column("espnet / this", ".1f")  # of both together
    steps: float = column("steps", ".1f")  # mean


def bundled_models(
    ctc_weights: Iterable[float], device: torch.device
) -> dict[float, Speech2Text]:
    """Load the bundled model with each of these CTC weights."""
    return {
        weight: Speech2Text.from_pretrained(
            str(_PACKED),
            search="espnet",
            ctc_weight=weight,
            lm_weight=0.0,
            device=device.type,
        )
        for weight in dict.fromkeys(ctc_weights)
    }


def bundled() -> list[Utterance]:
    """List the bundled utterances."""
    return [utterance for name in SETS for utterance in read_set(_AUDIO, name)]


def corpus_lines(
    utterances: Sequence[Utterance],
    device: torch.device,
    settings: Sequence[tuple[float, int]] = SETTINGS,
) -> list[CorpusLine]:
    """Decode in float32, a few utterances by all searches before others have their turn.

    They are sorted by length and cut into the batches that the drop-in makes of them.
    """
    models = bundled_models([weight for weight, _ in settings], device)
    model, *_ = models.values()  # whichever: they have one encoder
    rows = [
        (
            label,
            together,
            Contestant(models[weight], ComparedSearch(label, name, beam), 1),
        )
        for name, label, together in _SEARCHES
        for weight, beam in settings
    ]
    warm_up, *_ = utterances
    for _, _, contestant in rows:
        contestant.decode([warm_up], [encode(model, warm_up.audio)])

    encoder = 0.0
    searched: list[list[Result]] = [[] for _ in rows]
    seconds = {u.key: soundfile.info(u.audio).duration for u in utterances}
    by_key = {u.key: u for u in utterances}
    keys = by_length(list(by_key), seconds)
    most = max(1, len(keys) // FEWEST_BATCHES)
    for start in tqdm(range(0, len(keys), most), desc="mini_librispeech"):
        turn = keys[start : start + most]
        begin = now(device)
        encoded = {key: encode(model, by_key[key].audio) for key in turn}
        encoder += now(device) - begin
        for results, (_, together, contestant) in zip(searched, rows):
            limit = DEFAULT_BINS / contestant.row.beam_size
            for batch in bounded(turn, seconds, limit, most if together else 1):
                results += contestant.decode(
                    [by_key[key] for key in batch], [encoded[key] for key in batch]
                )
    names = [
        (label, *setting) for (_, label, _), setting in product(_SEARCHES, settings)
    ]
    audio = sum(seconds.values())
    return summed(dict(zip(names, searched, strict=True)), audio, encoder)


def summed(
    results: Mapping[tuple[str, float, int], Sequence[Result]],
    audio: float,
    encoder: float,
) -> list[CorpusLine]:
    """Return a line for each search, CTC weight and beam size.

    Args:
        results: (search, CTC weight, beam size) -> those of all utterances.
        audio: Seconds of it.
        encoder: Seconds that it took.
    """
    together = {
        key: encoder + sum(r.seconds for r in rs) for key, rs in results.items()
    }
    return [
        CorpusLine(
            search=search,
            ctc_weight=weight,
            beam_size=beam,
            utterances=len(rs),
            audio=audio,
            encoder=encoder,
            seconds=together[search, weight, beam] - encoder,
            together=together[search, weight, beam],
            speedup=together["espnet", weight, beam] / together[search, weight, beam],
            steps=mean(r.steps for r in rs),
        )
        for (search, weight, beam), rs in results.items()
    ]
