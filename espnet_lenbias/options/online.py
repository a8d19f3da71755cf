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
    if name != ESPNET:
        _check_options(name, options)
    check_train_configs(options)
    for tool in ("asr", "st"):
        # ESPnet's own translator also takes encoders that need the whole audio.
        config = train_config_file(options, tool)
        if config is not None and (tool, name) != ("st", ESPNET):
            _check_model(tool, config)


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


def _check_model(tool: str, train_config: Any) -> None:
    """Verify that a model takes its audio block by block, and translates from it."""
    key, whole = f"{tool}_train_config", f"{tool}_inference"
    config = read_train_config(key, train_config)
    encoder = config.get("encoder")
    if isinstance(encoder, str) and not encoder.startswith("contextual_block"):
        raise OptionError(
            f"{key}: {train_config}: its encoder, {encoder}, needs the whole audio, and "
            f"streaming one of the kind contextual_block_*: decode with {whole}"
        )
    for second in _SECOND_ENCODERS:
        if config.get(second) is not None:
            raise OptionError(
                f"{key}: {train_config}: it has a second encoder, {second}, which "
                f"ESPnet's streaming leaves out: decode with {whole}"
            )
