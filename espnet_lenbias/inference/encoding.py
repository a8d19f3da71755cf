"""Encoder outputs of several utterances, each as it is when the utterance is alone.

Encoders do not all leave the frames of an utterance alone when others are beside it in
a padded batch: convolutions reach into the padding, and some report the lengths of the
audio where they return more frames. What a search sees must not depend on that, so each
utterance is encoded alone, and only the search is done in a batch.
"""

from collections.abc import Sequence
from typing import Any

import torch


def encode_alone(model: Any, speech: torch.Tensor) -> torch.Tensor:
    """Return all frames that the encoder gives of one utterance, (T, D).

    These are what ESPnet's ``Speech2Text`` searches when it is called with one
    utterance.

    Args:
        model: ESPnet's ``Speech2Text`` or ours.
        speech: (samples,).
    """
    dtype = getattr(torch, model.dtype)
    batch = speech.unsqueeze(0).to(device=model.device, dtype=dtype)
    n_samples = torch.tensor([batch.size(1)], device=model.device)
    with torch.no_grad():
        x, _ = model.asr_model.encode(speech=batch, speech_lengths=n_samples)
    # a tuple: with the encoder's intermediate outputs
    frames: torch.Tensor = (x[0] if isinstance(x, tuple) else x)[0]
    return frames


def padded(frames: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Put encoder outputs, (T_b, D) each, into a batch: (B, T, D) and (B,) lengths."""
    lengths = torch.tensor([len(x) for x in frames], device=frames[0].device)
    return torch.nn.utils.rnn.pad_sequence(list(frames), batch_first=True), lengths
