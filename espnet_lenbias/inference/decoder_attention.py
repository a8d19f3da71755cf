"""What a decoder attends to along a given text, by teacher forcing.

ESPnet's decoder itself is run, and asked for the weights of its attention.
"""

import base64
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch

from espnet_lenbias.alignment.attention import AttentionWeights
from espnet_lenbias.espnet_compat import (
    BaseTransformerDecoder,
    MultiHeadedAttention,
    NoAtt,
    OpenAIWhisperDecoder,
    RNNDecoder,
    calculate_all_attentions,
)

# ESPnet's name for the attention of a transformer's labels to the frames.
_TO_FRAMES = "src_attn"


def has_known_attention(decoder: Any) -> bool:
    """Tell whether a decoder has an attention to the frames that can be asked for."""
    if isinstance(decoder, RNNDecoder):
        one_encoder = bool(decoder.num_encs == 1)
        return one_encoder and not isinstance(decoder.att_list[0], NoAtt)
    return isinstance(decoder, BaseTransformerDecoder | OpenAIWhisperDecoder)


@torch.no_grad()
def attention_along(
    decoder: Any, x: torch.Tensor, labels: Sequence[int], whisper_model: str = ""
) -> AttentionWeights:
    """Return the attention to the frames at each position of a text.

    Args:
        decoder: One that :func:`has_known_attention`.
        x: (T, D) encoder output of an utterance.
        labels: (N,) what the decoder is given: start label or primer, then the text.
        whisper_model: The name of the checkpoint of Whisper's that it is made of, if
            that is known.

    Returns:
        (H, N, T) of all heads, or of those that OpenAI says follow the audio. Row i
        belongs to the label behind `labels[i]`.
    """
    ys = torch.tensor([list(labels)], device=x.device)
    n_labels = torch.tensor([len(labels)], device=x.device)
    n_frames = torch.tensor([len(x)], device=x.device)
    if isinstance(decoder, OpenAIWhisperDecoder):
        with _cross_attention(decoder, whisper_model) as found:
            decoder(x.unsqueeze(0), n_frames, ys, n_labels)
        return np.concatenate(found)
    batch = {"x": x.unsqueeze(0), "x_lengths": n_frames}
    batch |= {"labels": ys, "labels_lengths": n_labels}
    with _weights_shown(decoder):
        found = calculate_all_attentions(_Decoding(decoder), batch)
    heads = [
        weights.reshape(-1, *weights.shape[-2:]).float()
        for name, [weights] in found.items()
        if isinstance(decoder, RNNDecoder) or name.endswith(_TO_FRAMES)
    ]
    attention: AttentionWeights = torch.cat(heads).numpy()
    return attention


class _Decoding(torch.nn.Module):
    """A decoder, called as ESPnet calls its models when it asks them for attention."""

    def __init__(self, decoder: Any):
        super().__init__()
        self.decoder = decoder

    def forward(
        self,
        x: torch.Tensor,
        x_lengths: torch.Tensor,
        labels: torch.Tensor,
        labels_lengths: torch.Tensor,
    ) -> Any:
        return self.decoder(x, x_lengths, labels, labels_lengths)


@contextmanager
def _weights_shown(decoder: Any) -> Iterator[None]:
    """Have a decoder compute its attention with weights, and follow the given labels.

    Fused kernels keep the weights to themselves. An RNN decoder that was trained with
    sampled labels samples them whenever it is given a whole text.
    """
    changed = [
        (module, key, getattr(module, key))
        for module in decoder.modules()
        if isinstance(module, MultiHeadedAttention)
        for key in ("use_sdpa", "use_flash_attn")
        if getattr(module, key, False)
    ]
    if getattr(decoder, "sampling_probability", 0.0):
        changed.append((decoder, "sampling_probability", decoder.sampling_probability))
    for module, key, _ in changed:
        setattr(module, key, False)
    try:
        yield
    finally:
        for module, key, value in changed:
            setattr(module, key, value)


@contextmanager
def _cross_attention(
    decoder: Any, whisper_model: str
) -> Iterator[list[AttentionWeights]]:
    """Collect the attention of Whisper's layers, (H, N, T) each, in the context."""
    found: list[AttentionWeights] = []

    def collect(
        heads: torch.Tensor, layer: Any, given: tuple[Any, ...], _: Any
    ) -> None:
        x, frames = given[:2]
        q, k = (
            y.unflatten(-1, (layer.n_head, -1)).transpose(1, 2)[0, heads].float()
            for y in (layer.query(x), layer.key(frames))
        )
        weights = (q @ k.mT * q.size(-1) ** -0.5).softmax(dim=-1)
        found.append(weights.cpu().numpy())

    layers = [block.cross_attn for block in decoder.decoders.blocks]
    chosen = _aligned_heads(len(layers), layers[0].n_head, whisper_model)
    hooks = [
        layer.register_forward_hook(partial(collect, heads))
        for layer, heads in zip(layers, chosen)
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _aligned_heads(n_layers: int, n_heads: int, whisper_model: str) -> torch.Tensor:
    """Return which heads of Whisper follow the audio, (layers, heads), bool.

    OpenAI says it of its own checkpoints; of another one those of the upper half of the
    layers may.
    """
    import whisper

    known = getattr(whisper, "_ALIGNMENT_HEADS", {}).get(whisper_model)
    if known is not None:  # as openai-whisper packs them: a byte for each head
        packed = bytearray(gzip.decompress(base64.b85decode(known)))
        heads = torch.frombuffer(packed, dtype=torch.bool)
        if len(heads) == n_layers * n_heads:
            return heads.view(n_layers, n_heads)
    upper = torch.arange(n_layers) >= n_layers // 2
    return upper.unsqueeze(1).expand(n_layers, n_heads)
