"""A step of the search by explicit length with a decoder in other numbers than float32."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from beams import FRAMES, Settings
from decoders import LSTMSize, Searcher, TransformerSize, make_searcher
from measure import expanded

from espnet_lenbias.report.tables import column


@dataclass(frozen=True)
class PrecisionLine:
    """Seconds are those of a step with the full beam."""

    model: str = column("decoder")
    beam_size: int = column("beam")
    steps: int = column("steps")
    float32: float = column("float32 s", ".4f")
    bfloat16: float = column("bfloat16 s", ".4f")
    float16_weights: float = column("float16 weights s", ".4f")
    int8: float = column("int8 s", ".4f")
    bfloat16_gain: float = column("float32 / bfloat16", ".2f")
    float16_weights_gain: float = column("float32 / float16 weights", ".2f")
    int8_gain: float = column("float32 / int8", ".2f")


def precision_lines(
    model: str,
    size: TransformerSize | LSTMSize,
    beams: list[int],
    settings: Settings,
) -> Iterator[PrecisionLine]:
    """Measure a decoder at each beam size.

    Args:
        model: What tables call the decoder.
        size: Of the decoder.
        beams: Beam sizes.
        settings: Of the measurements; their dtype plays no part.
    """
    torch.manual_seed(0)
    decoder = size.build().to(settings.device)
    x = torch.randn(FRAMES, size.units, device=settings.device)
    for beam in beams:
        steps = settings.steps_of(beam)
        searchers = searchers_by_dtype(decoder, size.vocab, beam, steps)
        calls = {name: partial(searcher, x) for name, searcher in searchers.items()}
        a_step = beam / expanded(beam, steps)
        seconds = {
            name: measured.seconds * a_step
            for name, measured in settings.measure(calls).items()
        }
        yield PrecisionLine(
            model=model,
            beam_size=beam,
            steps=steps,
            **seconds,
            bfloat16_gain=seconds["float32"] / seconds["bfloat16"],
            float16_weights_gain=seconds["float32"] / seconds["float16_weights"],
            int8_gain=seconds["float32"] / seconds["int8"],
        )


def searchers_by_dtype(
    decoder: torch.nn.Module, vocab: int, beam: int, steps: int
) -> dict[str, Searcher]:
    """Return the search with the decoder in each kind of numbers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.ao")  # it will move
        # as ESPnet's quantize_asr_model, with quantize_dtype: float16 or qint8
        float16_weights, int8 = (
            torch.ao.quantization.quantize_dynamic(decoder, {torch.nn.Linear}, dtype)
            for dtype in (torch.float16, torch.qint8)
        )
    made = {
        name: make_searcher("explicit_length", network, vocab, beam, steps)
        for name, network in [
            ("float32", decoder),
            ("bfloat16", decoder),
            ("float16_weights", float16_weights),
            ("int8", int8),
        ]
    }
    made["bfloat16"].search.compute_in(torch.bfloat16)
    return made
