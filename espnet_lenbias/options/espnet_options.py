"""ESPnet's own inference options, as far as they are numbers and switches.

ESPnet's parser reads those of a command line, and takes those of a decode config as they
stand: what is text there is read here, for all tools alike. No torch in here.
"""

from collections.abc import Mapping
from typing import Any

from espnet_lenbias.options.values import count, number, switch, whole

# What the options of a tool's searches begin with: its own, and that for the source
# text of a translation.
_PREFIXES = ("", "asr_")

COUNTS = (
    "beam_size",
    "nbest",
    "batch_size",
    "batch_bins",
    "asr_beam_size",
    "asr_nbest",
)
_WEIGHTS = ("ctc_weight", "lm_weight", "ngram_weight", "penalty")
_LENGTHS = ("maxlenratio", "minlenratio")

# Lengths beyond these no text has: labels of a frame, and labels.
_LONGEST = (1000, 100_000)

# Weights, and what is added to scores, larger than this leave nothing of a log-prob in
# float32.
LARGE = 1e6

# Those of ESPnet's that are other whole numbers, or switches: as text each would pass for
# set, "0" and "false" too.
_WHOLE = (
    *("block_size", "hop_size", "look_ahead", "sim_chunk_length", "start_chunk"),
    *("decoder_text_length_limit", "encoded_feat_length_limit", "hold_n"),
    *("ctc_window_margin", "max_seq_len", "max_mask_parallel"),
)
_SWITCHES = (
    *("normalize_length", "streaming", "time_sync", "partial_ar", "run_chunk"),
    *(
        "hugging_face_decoder",
        "ctc_greedy",
        "enh_s2t_task",
        "multi_asr",
        "predict_time",
    ),
    *("disable_repetition_detection", "incremental_decode"),
    *("quantize_asr_model", "quantize_s2t_model", "quantize_lm"),
)


def read_numbers(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ESPnet's inference options with their numbers, and switches, read.

    Raises:
        ValueError: Names the option that must be one and is none.
    """
    read = dict(options)
    for key in COUNTS:
        if key in options:
            read[key] = count(key, options[key])
    for key in (*_WEIGHTS, *_LENGTHS):
        for prefixed in (f"{prefix}{key}" for prefix in _PREFIXES):
            if prefixed in options:
                value = number(prefixed, options[prefixed])
                if key in _WEIGHTS and abs(value) > LARGE:
                    raise ValueError(
                        f"{prefixed} must be from {-LARGE:g} to {LARGE:g}, not {value}"
                    )
                if key in _LENGTHS and not -_LONGEST[1] <= value <= _LONGEST[0]:
                    raise ValueError(
                        f"{prefixed} must be from {-_LONGEST[1]} (so many labels) to "
                        f"{_LONGEST[0]} (labels of a frame), not {value}"
                    )
                read[prefixed] = value
    for keys, reader in ((_WHOLE, whole), (_SWITCHES, switch)):
        for key in keys:
            if isinstance(options.get(key), str):
                read[key] = reader(key, options[key])
    return read


def verify_weights_and_lengths(options: Mapping[str, Any]) -> None:
    """Verify those of ESPnet's inference options that no value of its own restricts.

    Args:
        options: As :func:`read_numbers` returns them.

    Raises:
        ValueError: Names the option.
    """
    for prefix in _PREFIXES:
        key = f"{prefix}ctc_weight"
        wanted = f"from 0 to 1 (the decoder weighs 1 - {key})"
        number(key, options.get(key, 0.5), wanted, lambda weight: 0 <= weight <= 1)
        _verify_lengths(f"{prefix}minlenratio", f"{prefix}maxlenratio", options)


def _verify_lengths(minimum: str, maximum: str, options: Mapping[str, Any]) -> None:
    shortest, longest = options.get(minimum, 0.0), options.get(maximum, 0.0)
    if _exceeds(shortest, longest):
        raise ValueError(
            f"{minimum} {shortest} asks for a longer output than {maximum} {longest} "
            "allows (positive: labels per encoder frame, 0 standing for 1; negative: "
            "labels)"
        )


def _exceeds(shortest: float, longest: float) -> bool:
    """Tell whether a length ratio is above another one of its kind."""
    longest = longest or 1.0
    if shortest < 0 and longest < 0:
        return -shortest > -longest
    return shortest > longest > 0
