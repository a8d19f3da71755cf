"""What models compute in; no torch in here."""

from collections.abc import Mapping
from typing import Any

from espnet_lenbias.options.registry import ESPNET

# The values of `decoder_dtype`, beside ESPnet's `dtype`.
DECODER_DTYPES = ("float32", "bfloat16")

# Those of `dtype`.
_DTYPES = ("float16", "bfloat16", "float32", "float64")

# ESPnet's options that make integers of the weights.
_QUANTIZE = (
    "quantize_asr_model",
    "quantize_lm",
    "quantize_mt_model",
    "quantize_s2t_model",
)


def check_dtype(options: Mapping[str, Any]) -> None:
    """Verify what a model is to compute in, and where.

    Args:
        options: ESPnet's own inference options: of a command line, or of a class.

    Raises:
        ValueError: There is no such dtype, or quantized weights do not go with it.
    """
    dtype = options.get("dtype", "float32")
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}, not {dtype!r}")
    on_gpu = str(options.get("device", "cpu")) != "cpu" or options.get("ngpu", 0)
    for key in _QUANTIZE:
        if options.get(key) and dtype != "float32":
            raise ValueError(
                f"{key}: torch multiplies quantized weights with float32 only, and "
                f"dtype is {dtype}: leave one of them out"
            )
        if options.get(key) and on_gpu:
            raise ValueError(
                f"{key}: torch multiplies quantized weights on the CPU only: leave "
                f"{key} out, or decode on the CPU (ngpu: 0, in Python device: cpu)"
            )


def multiplies_integers(options: Mapping[str, Any]) -> bool:
    """Tell whether weights are made integers of 8 bits.

    What they are multiplied with is made so, too, with one scale for all that is computed
    together: the result of an utterance then depends on what else is in its batch.

    Args:
        options: ESPnet's own inference options: of a command line, or of a class.
    """
    return is_quantised(options) and options.get("quantize_dtype", "qint8") == "qint8"


def is_quantised(options: Mapping[str, Any]) -> bool:
    """Tell whether a part of a model is to be quantised.

    Args:
        options: ESPnet's own inference options.
    """
    return any(options.get(key) for key in _QUANTIZE)


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
