"""What a search is made of and called with: do weights, frames and primers fit?"""

from collections.abc import Mapping
from typing import Any

import torch

from espnet_lenbias.options.values import number
from espnet_lenbias.scorers import EncoderOutput, n_positions


def checked_weights(weights: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights of scorers, which scores can be multiplied by and added up.

    Args:
        weights: Scorer name -> its weight.

    Raises:
        ValueError: Names the scorer whose weight is none.
    """
    read = {name: number(f"weights: {name}", w) for name, w in weights.items()}
    sums = torch.finfo(torch.float32)  # what scores are added up in
    for name, weight in read.items():
        if abs(weight) > sums.max:
            raise ValueError(f"weights: {name} has {weight:g}, which is too large")
        if 0 < abs(weight) < sums.tiny:
            raise ValueError(f"weights: {name} has {weight:g}: set it to 0")
    return read


def checked_frames(
    x: torch.Tensor,
    pre_x: torch.Tensor | None,
    x_lengths: torch.Tensor | None,
    pre_x_lengths: torch.Tensor | None,
) -> EncoderOutput:
    """Return the frames of a batch; an utterance without a batch is a batch of one.

    Args:
        x: Encoder output, (T, D) of one utterance or (B, T, D) of a batch.
        pre_x: First source of sequential attention, (T', D) or (B, T', D); None: none.
        x_lengths: (B,) frames of each utterance; None: all T.
        pre_x_lengths: (B,) frames of `pre_x`; None: all T'.

    Raises:
        ValueError: Shapes or lengths that do not fit together.
    """
    _check_shapes(x, pre_x)
    if x.dim() == 2:
        x, pre_x = x.unsqueeze(0), None if pre_x is None else pre_x.unsqueeze(0)
    lengths = _lengths("x_lengths", x, x_lengths)
    pre_lengths = None
    if pre_x is not None:
        pre_lengths = _lengths("pre_x_lengths", pre_x, pre_x_lengths)
    return EncoderOutput(x, lengths, pre_x, pre_lengths)


def room_behind(primer: list[int], scorers: Mapping[str, Any]) -> int | None:
    """Return how many labels scorers have positions for; None: any number.

    Args:
        primer: What hypotheses start from, which takes positions, too.
        scorers: By their names.

    Raises:
        ValueError: The primer takes all of them.
    """
    positions = [n for n in map(n_positions, scorers.values()) if n is not None]
    if not positions:
        return None
    room = min(positions) - len(primer)
    if room < 1:
        raise ValueError(
            f"a primer of {len(primer)} labels leaves no room for a text: the decoder "
            f"has {min(positions)} positions"
        )
    return room


def _check_shapes(x: torch.Tensor, pre_x: torch.Tensor | None) -> None:
    """Verify that frames are those of an utterance, or of the utterances of a batch."""
    if x.dim() not in (2, 3):
        raise ValueError(f"x must be (T, D) or (B, T, D), not {tuple(x.shape)}")
    if pre_x is None:
        return
    if pre_x.dim() != x.dim() or pre_x.shape[:-2] != x.shape[:-2]:
        raise ValueError(
            f"pre_x must be frames of the same utterances as x, {tuple(x.shape)}, not "
            f"{tuple(pre_x.shape)}"
        )


def _lengths(name: str, x: torch.Tensor, lengths: torch.Tensor | None) -> list[int]:
    """Return the frames of each utterance of (B, T, D), checked."""
    n_utts, longest = x.shape[:2]
    if lengths is None:
        return [longest] * n_utts
    n_frames = torch.as_tensor(lengths).tolist()
    if len(n_frames) != n_utts or any(not 0 <= n <= longest for n in n_frames):
        raise ValueError(
            f"{name} must be {n_utts} numbers from 0 to {longest}, not {n_frames}"
        )
    return n_frames
