"""Whole searches at a large beam and vocabulary: that they finish, and in what memory."""

from dataclasses import dataclass, replace

import torch
from beams import FRAMES, Settings
from decoders import LSTMSize, TransformerSize, make_searcher
from measure import expanded, now, peak_megabytes

from espnet_lenbias.report.tables import column


@dataclass(frozen=True)
class LargeLine:
    """One search by explicit length, run once; no search is left out of its steps."""

    model: str = column("decoder")
    vocab: int = column("V")
    beam_size: int = column("beam")
    steps: int = column("steps")
    seconds: float = column("s", ".1f")
    a_step: float = column("s a step", ".2f")  # with the full beam
    megabytes: float = column("MB", ".0f")


def large_line(
    model: str,
    size: TransformerSize | LSTMSize,
    vocab: int,
    beam: int,
    settings: Settings,
) -> LargeLine:
    """Run a search of all steps once.

    Args:
        model: What tables call the decoder.
        size: Of the decoder, but for its vocabulary.
        vocab: V.
        beam: K.
        settings: Of the measurements.
    """
    torch.manual_seed(0)
    kind = {"device": settings.device, "dtype": settings.dtype}
    decoder = replace(size, vocab=vocab).build().to(**kind)
    x = torch.randn(FRAMES, size.units, **kind)
    steps = settings.steps
    searcher = make_searcher("explicit_length", decoder, vocab, beam, steps)
    start = now(settings.device)
    megabytes = peak_megabytes(lambda: searcher(x), settings.device)
    seconds = now(settings.device) - start
    return LargeLine(
        model=model,
        vocab=vocab,
        beam_size=beam,
        steps=steps,
        seconds=seconds,
        a_step=seconds * beam / expanded(beam, steps),
        megabytes=megabytes,
    )
