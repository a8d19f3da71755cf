"""What ESPnet's LibriSpeech recipe decodes with: CTC, a large LM, beam 60.

Networks of that size with random weights. The end label is next to impossible in the
decoder, so every search takes the same steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from beams import Settings
from decoders import Searcher, TransformerSize, search_on
from espnet2.asr.ctc import CTC

from espnet_lenbias.espnet_compat import CTCPrefixScorer, TransformerLM
from espnet_lenbias.report.tables import column

CTC_WEIGHT, LM_WEIGHT = 0.3, 0.6

_SEARCHES = (
    ("espnet", "float32"),
    ("explicit_length", "float32"),
    ("explicit_length", "bfloat16"),
)


@dataclass(frozen=True)
class ZooSize:
    """What is decoded with; see ESPnet's ``egs2/librispeech/asr1``."""

    decoder: TransformerSize = field(default_factory=TransformerSize)
    lm_layers: int = 16
    lm_units: int = 512
    lm_heads: int = 8
    lm_linear_units: int = 2048
    frames: int = 170  # T
    beam: int = 60

    def scorers(self) -> dict[str, Any]:
        """Return decoder, CTC and LM with random weights."""
        vocab = self.decoder.vocab
        ctc = CTC(odim=vocab, encoder_output_size=self.decoder.units)
        lm = TransformerLM(
            vocab,
            embed_unit=128,
            att_unit=self.lm_units,
            head=self.lm_heads,
            unit=self.lm_linear_units,
            layer=self.lm_layers,
        )
        return {
            "decoder": self.decoder.build(),
            "ctc": CTCPrefixScorer(ctc.eval(), vocab - 1),
            "lm": lm.eval(),
        }


@dataclass(frozen=True)
class ZooLine:
    """A search of one utterance."""

    lm_weight: float = column("LM weight", ".1f")
    search: str = column("search")
    dtype: str = column("decoder and LM in")
    steps: int = column("steps")
    seconds: float = column("s", ".2f")
    speedup: float = column("espnet / this", ".1f")


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
        calls = {}
        for name, dtype in _SEARCHES:
            made = search_on(name, used, weights, size.decoder.vocab, size.beam)
            if dtype == "bfloat16":
                made.compute_in(torch.bfloat16)
            calls[name, dtype] = partial(Searcher(made, settings.steps), x)
        measured = settings.measure(calls)
        for (name, dtype), measurement in measured.items():
            yield ZooLine(
                lm_weight=lm_weight,
                search=name,
                dtype=dtype,
                steps=settings.steps,
                seconds=measurement.seconds,
                speedup=measured["espnet", "float32"].seconds / measurement.seconds,
            )
