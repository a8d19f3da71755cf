"""Options that go with a search block by block; no torch here."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.registry import ESPNET

# The searches that can.
ONLINE = (ESPNET, "explicit_length")

# The options that name what a model was trained by.
_TRAIN_CONFIGS = ("asr_train_config", "st_train_config")

# Encoders of a translator that read what another one has made of the audio.
_SECOND_ENCODERS = ("hier_encoder", "md_encoder")

# Options of ESPnet's online search that leave a part of the audio or of the text out,
# or search in another way.
_REFUSED = (
    "encoded_feat_length_limit",
    "decoder_text_length_limit",
    "incremental_decode",
    "hold_n",
    "time_sync",
)


def check_online(name: str, options: Mapping[str, Any]) -> None:
    """Verify that a search can be online, and that ESPnet's options go with it.

    Args:
        name: One of :func:`espnet_lenbias.available_searches`.
        options: Those of ESPnet's online search, by name.

    Raises:
        OptionError: Says which cannot, and what to do.
    """
    if name not in ONLINE:
        raise OptionError(
            f"search: {name} needs the whole audio: in streaming say search: "
            f"{' or '.join(ONLINE)}"
        )
    chunk = options.get("sim_chunk_length", 0)
    if chunk < 0:
        raise OptionError(
            f"sim_chunk_length must be a number of samples, or 0 for all, not {chunk}"
        )
    for key in _TRAIN_CONFIGS:
        # ESPnet's own translator also takes encoders that need the whole audio.
        if options.get(key) is not None and (key, name) != ("st_train_config", ESPNET):
            _check_model(key, Path(options[key]))
    if name == ESPNET:
        return
    for key in _REFUSED:
        if options.get(key):
            raise OptionError(
                f"{key} does not go with search: {name}, whose result is that of the "
                f"whole audio: leave {key} out, or say search: {ESPNET}"
            )
    if options.get("block_size") == 0:
        raise OptionError(
            f"block_size: with 0 the encoder gives all frames anew each time, and "
            f"search: {name} takes new ones only: set it, or say search: {ESPNET}"
        )


def _check_model(key: str, train_config: Path) -> None:
    """Verify that a model takes its audio block by block, and translates from it."""
    text = train_config.read_text(encoding="utf-8")
    encoders = dict(re.findall(r"^(\w*encoder): *(\w+)", text, re.MULTILINE))
    encoder = encoders.get("encoder", "contextual_block")
    whole = key.replace("train_config", "inference")
    if not encoder.startswith("contextual_block"):
        raise OptionError(
            f"{key}: {train_config}: its encoder, {encoder}, needs the whole audio, and "
            f"streaming one of the kind contextual_block_*: decode with {whole}"
        )
    for second in _SECOND_ENCODERS:
        if encoders.get(second, "null") != "null":
            raise OptionError(
                f"{key}: {train_config}: it has a second encoder, {second}, which "
                f"ESPnet's streaming leaves out: decode with {whole}"
            )
