"""An empty Whisper of the sizes that a checkpoint of ESPnet's has.

ESPnet builds its Whisper modules of OpenAI's checkpoint, and then replaces all parameters
by those of its own. Without this every decoding, of a packed model too, would wait for a
download whose numbers are thrown away.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from espnet_lenbias.inference.loaded_parameters import is_partly_saved, unwrapped

HEAD = 64  # the size of a head in all models of OpenAI's

# Parts of ESPnet's model -> where its parameters are those of Whisper's encoder, decoder.
_ENCODERS = {"encoder": "encoder.encoders.", "frontend": "frontend.whisper.encoder."}
_DECODERS = {"decoder": "decoder.decoders.", "frontend": "frontend.whisper.decoder."}

Shapes = Mapping[str, Sequence[int]]


def empty_whisper(
    parts: Sequence[str], config: Mapping[str, Any], model_file: str | Path
) -> Any:
    """Return a Whisper of random parameters, of the sizes that a model file has.

    Args:
        parts: Which of frontend, encoder and decoder are Whisper's.
        config: Of the training.
        model_file: ESPnet's checkpoint.

    Returns:
        A `whisper.model.Whisper`, with an encoder or a decoder of no use where the model
        has none of Whisper's. None: not all of its parameters are in the file.
    """
    if is_partly_saved(config):
        return None
    try:
        shapes = _shapes(model_file)
        sizes = {
            "n_mels": 80,
            "n_audio_ctx": 2,
            "n_audio_state": HEAD,
            "n_audio_layer": 0,
            "n_vocab": 1,
            "n_text_ctx": 1,
            "n_text_state": HEAD,
            "n_text_layer": 0,
        }
        for part in parts:
            if part in _ENCODERS:
                sizes |= _encoder_sizes(shapes, _ENCODERS[part])
            if part in _DECODERS:
                sizes |= _decoder_sizes(shapes, _DECODERS[part])
    except (KeyError, OSError, RuntimeError, AttributeError):
        return None
    from whisper.model import ModelDimensions, Whisper

    heads = {
        f"n_{half}_head": sizes[f"n_{half}_state"] // HEAD for half in ("audio", "text")
    }
    if not all(heads.values()):  # of no model of OpenAI's
        return None
    return Whisper(ModelDimensions(**sizes, **heads))


def _shapes(model_file: str | Path) -> Shapes:
    """Return the shape of each tensor in a checkpoint, without reading them."""
    saved = torch.load(model_file, map_location="cpu", weights_only=True, mmap=True)
    parameters = unwrapped(saved).items()
    return {name: value.shape for name, value in parameters if hasattr(value, "shape")}


def _encoder_sizes(shapes: Shapes, prefix: str) -> dict[str, int]:
    state, n_mels, _ = shapes[f"{prefix}conv1.weight"]
    return {
        "n_mels": n_mels,
        "n_audio_ctx": shapes[f"{prefix}positional_embedding"][0],
        "n_audio_state": state,
        "n_audio_layer": _n_blocks(shapes, prefix),
    }


def _decoder_sizes(shapes: Shapes, prefix: str) -> dict[str, int]:
    embedding = f"{prefix}token_embedding."
    expanded = f"{embedding}ori_emb.weight"  # with labels of ESPnet's own behind them
    own = expanded if expanded in shapes else f"{embedding}weight"
    return {
        "n_vocab": shapes[own][0],
        "n_text_ctx": shapes[f"{prefix}positional_embedding"][0],
        "n_text_state": shapes[own][1],
        "n_text_layer": _n_blocks(shapes, prefix),
    }


def _n_blocks(shapes: Shapes, prefix: str) -> int:
    pattern = re.compile(re.escape(prefix) + r"blocks\.(\d+)\.")
    found = {m.group(1) for m in map(pattern.match, shapes) if m}
    return len(found)
