"""Utterances decoded together, in halves of them where the memory is too small."""

import logging
from collections.abc import Iterator, Sequence

import torch

from espnet_lenbias.errors import ScorerError
from espnet_lenbias.scorers import EncoderOutput
from espnet_lenbias.search.hypotheses import Hypothesis
from espnet_lenbias.search.length_limits import LengthLimits
from espnet_lenbias.search.loop import BatchDecoding
from espnet_lenbias.search.setup import SearchSetup
from espnet_lenbias.search.trace import Trace

logger = logging.getLogger(__name__)


def decode_together(
    setup: SearchSetup,
    encoder_output: EncoderOutput,
    utts: Sequence[int],
    limits: Sequence[LengthLimits],
    primers: Sequence[list[int]],
) -> Iterator[tuple[int, list[Hypothesis], Trace]]:
    """Decode utterances together.

    Args:
        setup: The scorers and the rule of the search.
        encoder_output: Of all utterances.
        utts: Which of them.
        limits: Of all utterances.
        primers: Of all utterances, those of `utts` of one length.

    Yields:
        Each utterance with its hypotheses and its trace.

    Raises:
        MemoryError: The memory does not hold the search of a single utterance.
        ScorerError: A scorer returned NaN or plus infinity, or the frames hold it.
    """
    try:
        # bound to no name: where its memory did not do, the halves need it
        found = BatchDecoding(
            setup,
            encoder_output.take(list(utts)),
            [limits[b] for b in utts],
            torch.tensor([primers[b] for b in utts], device=encoder_output.x.device),
        ).run()
    except RuntimeError as error:
        if not _is_out_of_memory(error):
            _check_frames(encoder_output, utts)
            raise
    else:
        yield from zip(utts, *found)
        return
    # out of the handler, the frames that held the memory are gone
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(utts) == 1:
        raise MemoryError(
            f"out of memory with beam_size {setup.beam_size} and "
            f"{encoder_output.lengths[utts[0]]} encoder frames in utterance {utts[0]} of "
            "the batch: lower beam_size, or cut the audio into shorter pieces"
        )
    logger.warning(
        f"out of memory with {len(utts)} utterances at once: going on in halves"
    )
    half = len(utts) // 2
    for part in (utts[:half], utts[half:]):
        yield from decode_together(setup, encoder_output, part, limits, primers)


def _is_out_of_memory(error: RuntimeError) -> bool:
    """Tell whether it is an allocation that failed, on a GPU or on the CPU."""
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


def _check_frames(encoder_output: EncoderOutput, utts: Sequence[int]) -> None:
    """Say so where it is no scorer that NaN comes from."""
    for b in utts:
        if not encoder_output.frames(b).isfinite().all():
            raise ScorerError(
                f"the encoder output of utterance {b} of the batch holds NaN or "
                "infinity: look at the audio, and at the model's dtype"
            )
