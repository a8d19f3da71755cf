"""What goes together with a search that takes its audio block by block; no torch here."""

from collections.abc import Mapping
from typing import Any

from espnet_lenbias.registry import ESPNET, OptionError

# The searches that can.
ONLINE = (ESPNET, "explicit_length")

# Options of ESPnet's online search that leave a part of the audio or of the text out, or
# search in another way.
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
    piece = options.get("sim_chunk_length", 0)
    if piece < 0:
        raise OptionError(
            f"sim_chunk_length must be a number of samples, or 0 for all, not {piece}"
        )
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
