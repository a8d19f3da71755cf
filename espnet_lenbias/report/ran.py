"""What a decoding was made with: the options in its journal, as a decode config.

A decode config beside the results says what was meant; options on the command line may
have changed it.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from espnet_lenbias.options.espnet_tools import TOOLS
from espnet_lenbias.options.packed_model import packed_options
from espnet_lenbias.options.posteriors import POSTERIOR_OPTIONS
from espnet_lenbias.options.registry import what_is_said
from espnet_lenbias.options.run_journal import read_run_options
from espnet_lenbias.options.run_options import value_of
from espnet_lenbias.options.values import plain

# ESPnet's own options that are heuristics against the length bias.
HEURISTICS = ("penalty", "maxlenratio", "minlenratio", "normalize_length")

_WEIGHTS = ("lm_weight", "ctc_weight")

# What a report tells of a run.
TOLD = (
    "search",
    "search_conf",
    "decoder_dtype",
    *POSTERIOR_OPTIONS,
    "beam_size",
    *_WEIGHTS,
    *HEURISTICS,
)

# What a run is made with beside the search: its models, and what they compute in.
_OF_MODEL = {
    *(key for tool in TOOLS for key in tool.model_options),
    *("model_tag", "lm_train_config", "lm_file", "ngram_file", "dtype"),
}

# What an option that is a file has behind its name.
_STATE = re.compile(r" \(\d+ bytes, [^)]*\)$")


def config_that_ran(journal: Path) -> dict[str, Any]:
    """Return the decode config of the run that a journal is of, as far as it is told.

    Raises:
        ValueError: The journal does not say what ran.
    """
    options = read_run_options(journal)
    if options is None or "beam_size" not in options:
        raise ValueError(f"{journal}, line 1 holds no options of a run")
    config = {key: value_of(options[key]) for key in TOLD if key in options}
    if not _can_have_lm(options):
        config["lm_weight"] = 0.0  # ESPnet's default counts with a model alone
    return config


def translated(journal: Path) -> bool:
    """Tell whether the run that a journal is of was one of a translation tool."""
    options = read_run_options(journal) or {}
    own = {key for tool in TOOLS if tool.translates for key in tool.model_options}
    # OWSM translates if it is told to, with or without the brackets of its symbols.
    task = options.get("task_sym", "").lstrip("<")
    return bool(own & options.keys()) or task.startswith("st_")


def model_that_ran(journal: Path) -> dict[str, str]:
    """Return what the run that a journal is of was made with, as far as it is no search.

    Returns:
        Option -> value; of a file its size and checksum, so that it may have moved.
    """
    options = read_run_options(journal) or {}
    return {
        key: (_STATE.search(value) or [value])[0]
        for key, value in options.items()
        if key in _OF_MODEL or key.startswith("quantize_")
    }


def contradictions(config: Mapping[str, Any], ran: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a decode config says otherwise than the run that was made.

    Args:
        config: From the yaml file.
        ran: See :func:`config_that_ran`.
    """
    search = config.get("search", ran.get("search"))
    for key in TOLD:
        if key not in config or key not in ran:
            continue
        if _said(search, key, config[key]) != _said(search, key, ran[key]):
            yield f"{key} {config[key]} (it was {ran[key]})"


def _said(search: Any, key: str, value: Any) -> Any:
    """Return a value of a decode config as it can be compared."""
    if key != "search_conf" or not isinstance(value, Mapping | None):
        return plain(value)
    return what_is_said(search, value or {})


def _can_have_lm(options: Mapping[str, str]) -> bool:
    """Tell whether a language model can have taken part."""
    if options.get("lm_train_config", "None") != "None":
        return True
    tag = _STATE.sub("", options.get("model_tag", "None"))
    if tag == "None":
        return False
    held = packed_options(Path(tag))
    # of one of the model zoo, or gone, the weight is all that is known
    return not held or "lm_train_config" in held
