"""Options that go with a search block by block; no torch here."""

from collections.abc import Mapping
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.options.train_config import (
    check_train_configs,
    read_train_config,
    train_config_file,
)

# The searches that can.
ONLINE = (ESPNET, "explicit_length")

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
    if name != ESPNET:
        _check_options(name, options)
    check_train_configs(options)
    config = train_config_file(options, "asr")
    if config is not None:
        _check_encoder(config)


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """Verify that ESPnet's options go with a search of this package."""
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


def _check_encoder(train_config: Any) -> None:
    """Verify that a model's encoder is one that takes its audio block by block."""
    encoder = read_train_config("asr_train_config", train_config).get("encoder")
    if isinstance(encoder, str) and not encoder.startswith("contextual_block"):
        raise OptionError(
            f"asr_train_config: {train_config}: its encoder, {encoder}, needs the "
            "whole audio, and streaming one of the kind contextual_block_*: decode "
            "with asr_inference"
        )
