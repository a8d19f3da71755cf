"""What ESPnet's LibriSpeech recipe decodes with: CTC, a large LM, beam 60.

Networks of that size with random weights. The end label is next to impossible in the
decoder, so every search takes the same steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from beams import Settings
from decoders import LMSize, Searcher, TransformerSize, search_on
from espnet2.asr.ctc import CTC
from floor import Floor, products

from espnet_lenbias.espnet_compat import CTCPrefixScorer
from espnet_lenbias.report.tables import column

CTC_WEIGHT, LM_WEIGHT = 0.3, 0.6

_FLOOR = "floor"
_SEARCHES = (
    ("espnet", "float32"),
    ("explicit_length", "float32"),
    ("explicit_length", "bfloat16"),
)


@dataclass(frozen=True)
class ZooSize:
    """What is decoded with; see ESPnet's ``egs2/librispeech/asr1``."""

    decoder: TransformerSize = field(default_factory=TransformerSize)
    lm: LMSize = field(default_factory=LMSize)
    frames: int = 170  # T
    beam: int = 60

    def scorers(self) -> dict[str, Any]:
        """Return decoder, CTC and LM with random weights."""
        vocab = self.decoder.vocab
        ctc = CTC(odim=vocab, encoder_output_size=self.decoder.units)
        return {
            "decoder": self.decoder.build(),
            "ctc": CTCPrefixScorer(ctc.eval(), vocab - 1),
            "lm": self.lm.build(),
        }

    def floor(self, with_lm: bool, settings: Settings, dtype: torch.dtype) -> Floor:
        """Return the matrix products of decoder and LM in a search; CTC hardly has any."""
        networks = (self.decoder, self.lm) if with_lm else (self.decoder,)
        listed = [
            product
            for size in networks
            for product in products(size, self.beam, 1, self.frames, settings.steps)
        ]
        return Floor(listed, settings.device, dtype)


@dataclass(frozen=True)
class ZooLine:
    """A search of one utterance."""

    lm_weight: float = column("LM weight", ".1f")
    search: str = column("search")
    dtype: str = column("decoder and LM in")
    steps: int = column("steps")
    seconds: float = column("s", ".2f")
    speedup: float = column("espnet / this", ".1f")
    floor: float = column("floor s", ".2f")  # of decoder and LM, in the same dtype
    of_floor: float = column("this / floor", ".2f")
    limit: float = column("espnet / floor", ".1f")  # what no search exceeds


def zoo_lines(size: ZooSize, settings: Settings) -> Iterator[ZooLine]:
    """Measure the searches with the LM and without.

    Args:
        size: Of the networks, and the beam.
        settings: Of the measurements; their dtype plays no part.
    """
    torch.manual_seed(0)
    scorers = size.scorers()
    for module in (scorers["decoder"], scorers["lm"], scorers["ctc"].ctc):
        module.to(settings.device)
    x = torch.randn(size.frames, size.decoder.units, device=settings.device)
    for lm_weight in (LM_WEIGHT, 0.0):
        weights = {"decoder": 1 - CTC_WEIGHT, "ctc": CTC_WEIGHT, "lm": lm_weight}
        used = {name: s for name, s in scorers.items() if weights[name]}
        calls: dict[tuple[str, str], Callable[[], object]] = {}
        for name, dtype in _SEARCHES:
            made = search_on(name, used, weights, size.decoder.vocab, size.beam)
            if dtype == "bfloat16":
                made.compute_in(torch.bfloat16)
            calls[name, dtype] = partial(Searcher(made, settings.steps), x)
        for dtype in ("float32", "bfloat16"):
            floor = size.floor("lm" in used, settings, getattr(torch, dtype))
            calls[_FLOOR, dtype] = floor
        measured = settings.measure(calls)
        espnet = measured["espnet", "float32"].seconds
        for name, dtype in _SEARCHES:
            seconds = measured[name, dtype].seconds
            floor_seconds = measured[_FLOOR, dtype].seconds
            yield ZooLine(
                lm_weight=lm_weight,
                search=name,
                dtype=dtype,
                steps=settings.steps,
                seconds=seconds,
                speedup=espnet / seconds,
                floor=floor_seconds,
                of_floor=seconds / floor_seconds,
                limit=espnet / floor_seconds,
            )
