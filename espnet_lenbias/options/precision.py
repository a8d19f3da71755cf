"""What decoder and language model compute in; no torch in here."""

from collections.abc import Mapping
from typing import Any

from espnet_lenbias.options.registry import ESPNET

# The values of `decoder_dtype`, beside ESPnet's `dtype`.
DECODER_DTYPES = ("float32", "bfloat16")

# ESPnet's options that make integers of the weights.
_QUANTIZE = (
    "quantize_asr_model",
    "quantize_lm",
    "quantize_mt_model",
    "quantize_s2t_model",
)


def check_decoder_dtype(
    name: str, decoder_dtype: str | None, options: Mapping[str, Any]
) -> None:
    """Verify what decoder and language model are to compute in.

    Args:
        name: Of the search.
        decoder_dtype: One of `DECODER_DTYPES`; None: as the rest of the model.
        options: ESPnet's own inference options.

    Raises:
        ValueError: There is no such dtype, or it does not go with the other options.
    """
    if decoder_dtype is None:
        return
    if decoder_dtype not in DECODER_DTYPES:
        raise ValueError(
            f"decoder_dtype must be {' or '.join(DECODER_DTYPES)}, not {decoder_dtype!r}"
        )
    if name == ESPNET:
        raise ValueError(
            "decoder_dtype: ESPnet's own search computes all in one dtype: leave "
            "decoder_dtype out, or say search: explicit_length"
        )
    for key in _QUANTIZE:
        if options.get(key) and decoder_dtype != "float32":
            raise ValueError(
                f"decoder_dtype does not go with {key}: choose one of them"
            )
