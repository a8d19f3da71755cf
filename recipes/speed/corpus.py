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
from espnet_lenbias.compare.utterances import Utterance, batches, read_set
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
_BATCH = 8  # what the drop-in decodes at once of so many utterances


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

    They are sorted by length, as the drop-in does it for batches.
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
    by_length = sorted(utterances, key=lambda u: soundfile.info(u.audio).frames)
    for batch in tqdm(list(batches(by_length, _BATCH)), desc="mini_librispeech"):
        start = now(device)
        encoded = [encode(model, utterance.audio) for utterance in batch]
        encoder += now(device) - start
        for results, (_, together, contestant) in zip(searched, rows):
            if together:
                results += contestant.decode(batch, encoded)
                continue
            for utterance, x in zip(batch, encoded):
                results += contestant.decode([utterance], [x])
    keys = [
        (label, *setting) for (_, label, _), setting in product(_SEARCHES, settings)
    ]
    audio = sum(soundfile.info(u.audio).duration for u in utterances)
    return summed(dict(zip(keys, searched, strict=True)), audio, encoder)


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
