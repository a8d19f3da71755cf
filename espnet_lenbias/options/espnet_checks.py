"""ESPnet's own inference options, and whether they go together with a search."""

import importlib.util
from collections.abc import Mapping
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.espnet_options import (
    read_numbers,
    verify_weights_and_lengths,
)
from espnet_lenbias.options.espnet_tools import OTHER_DECODING
from espnet_lenbias.options.registry import ESPNET, OPTIONS


def check_espnet_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Verify that ESPnet's own inference options go together with this search.

    Returns:
        What was given, with the numbers read that are text.

    Raises:
        ValueError: names the option and says what to do instead.
        OptionError: a package is missing that an option needs.
    """
    options = read_numbers(options)
    for key in ("ngram_file", "asr_ngram_file"):
        if options.get(key) is not None and not importlib.util.find_spec("kenlm"):
            raise OptionError(
                f"{key}: n-gram language models need the package kenlm, which is not "
                f"installed: pip install kenlm, or leave {key} out"
            )
    if name == ESPNET:
        return options
    verify_weights_and_lengths(options)
    for option, what in OTHER_DECODING.items():
        if options.get(option):
            raise ValueError(
                f"{option}: {what} is not label-synchronous beam search, so it does "
                f"not go with search: {name}. Leave {option} out, or say search: espnet"
            )
    if name in OPTIONS and options.get("normalize_length"):
        remedy = {
            "explicit_length": "it has no length bias to correct; leave it out",
            "simple": "say length_norm: true in search_conf, which also prunes by it",
        }[name]
        raise ValueError(f"normalize_length does not go with search: {name}: {remedy}")
    return options


def check_lm_files(options: Mapping[str, Any]) -> None:
    """Verify that a language model has its config and its checkpoint.

    With one of them ESPnet's tools decode with random weights, or without it.

    Raises:
        ValueError: Names the option that is missing.
    """
    for prefix in ("", "src_"):
        keys = [f"{prefix}lm_train_config", f"{prefix}lm_file"]
        given = [key for key in keys if options.get(key) is not None]
        if len(given) == 1:
            (missing,) = set(keys) - set(given)
            raise ValueError(
                f"{given[0]}: a language model takes two files: name its {missing}, too"
            )


def check_nbest(conf: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Verify that as many hypotheses are returned as ``search_conf`` asks for.

    Raises:
        ValueError: ESPnet's `nbest` would crop them.
    """
    asked, returned = conf.get("nbest") or 1, options.get("nbest", 1)
    if asked > returned:
        raise ValueError(
            f"search_conf asks for nbest {asked}, of which nbest {returned} outside of "
            f"search_conf would leave {returned}: set nbest to {asked} there"
        )
