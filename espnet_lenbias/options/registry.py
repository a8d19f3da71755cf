"""The searches that can be chosen by name, in this package and in others.

A package adds one with an entry point in the group ``espnet.beam_search``: a class (or
a factory) that takes the arguments of ESPnet's ``BeamSearch``; its keyword-only
parameters are what ``search_conf`` may hold. No torch in here.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from espnet_lenbias.errors import OptionError, in_a_line
from espnet_lenbias.options.posteriors import POSTERIOR_OPTIONS
from espnet_lenbias.options.search_conf import (
    ExplicitLengthOptions,
    SimpleOptions,
)
from espnet_lenbias.options.values import count, nearest, plain

GROUP = "espnet.beam_search"

# The search that ESPnet itself builds: an inference object keeps it untouched.
ESPNET = "espnet"

# This package's searches, whose options are known without loading them.
OPTIONS = {"explicit_length": ExplicitLengthOptions, "simple": SimpleOptions}

# Options that are no search's: in a decode config they stand beside `search_conf`, and
# in Python they are those of the inference object.
_BESIDE = (
    *("beam_size", "batch_size", "decoder_dtype", "maxlenratio", "minlenratio"),
    *("ctc_weight", "lm_weight", "ngram_weight", "penalty", "normalize_length"),
    *POSTERIOR_OPTIONS,
)


def available_searches() -> list[str]:
    """Return the names that ``search`` can have, sorted; imports none of them."""
    return sorted(_entry_points())


def load_search(name: str) -> Callable[..., Any]:
    """Return the search class (or factory) of that name.

    Raises:
        ValueError: no installed package has a search of that name.
        OptionError: the package that has it is broken.
    """
    point = _entry_point(name)
    try:
        search: Callable[..., Any] = point.load()
    except Exception as e:  # of whatever its code does
        raise OptionError(
            f"search: {name} is {point.value} of {_owner(point)}, which cannot be loaded "
            f"({in_a_line(e)}): mend or remove that package"
        ) from e
    if not callable(search):
        raise OptionError(
            f"search: {name} is {point.value} of {_owner(point)}, which is no class: name "
            "one behind the module, as in `module:Class`, in the entry point of that "
            "package"
        )
    return search


def _owner(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else "another package"


def build_search(
    name: str, like: Any, beam_size: int | None = None, **conf: Any
) -> Any:
    """Return a search with the scorers and settings of another one.

    Args:
        name: Of the search to build.
        like: A search, of ESPnet's or of this package.
        beam_size: K; None: as that search has it.
        **conf: The search's own options.

    Raises:
        OptionError: Another package's search cannot be built.
    """
    search = load_search(name)
    try:
        return search(**settings_of(like, beam_size), **conf)
    except Exception as e:
        if name in OPTIONS or name == ESPNET or isinstance(e, ValueError):
            raise
        raise OptionError(f"search: {name} cannot be built ({in_a_line(e)})") from e


def settings_of(like: Any, beam_size: int | None = None) -> dict[str, Any]:
    """Return what a search with the scorers and settings of another one is made of.

    Args:
        like: A search, of ESPnet's or of this package.
        beam_size: K; None: as that search has it.

    Returns:
        Arguments of ESPnet's ``BeamSearch``.
    """
    own_size = count("beam_size", like.beam_size)  # which may have been set since
    return {
        "scorers": like.scorers,
        "weights": like.weights,
        "beam_size": own_size if beam_size is None else beam_size,
        "vocab_size": like.n_vocab,
        "sos": like.sos,
        "eos": like.eos,
        "token_list": like.token_list,
        "pre_beam_ratio": _pre_beam_ratio(like),
        "pre_beam_score_key": like.pre_beam_score_key,
        "return_hs": like.return_hs,
        "hyp_primer": like.hyp_primer,
        "normalize_length": like.normalize_length,
    }


def search_options(name: str) -> dict[str, Any]:
    """Return what ``search_conf`` may hold for this search: option -> default."""
    if name in OPTIONS:
        return {field.name: field.default for field in fields(OPTIONS[name])}
    parameters = inspect.signature(load_search(name)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def check_search_conf(name: str, conf: Mapping[str, Any]) -> dict[str, Any]:
    """Verify the name of a search, the keys of its ``search_conf`` and their values.

    Returns:
        What was given, with the numbers read that are text, and without what has its
        default.

    Raises:
        ValueError: names what is wrong and the nearest valid name.
    """
    _entry_point(name)
    if not isinstance(conf, Mapping):
        raise ValueError(f"search_conf must be a mapping of options, not {conf!r}")
    options = search_options(name)
    for key in conf:
        if key not in options:
            raise ValueError(f"search_conf: {_unknown_option(name, key, options)}")
    if name not in OPTIONS:
        if not conf.get("nbest"):
            return dict(conf)
        return {**conf, "nbest": count("search_conf: nbest", conf["nbest"])}
    conf = {
        key: value
        for key, value in conf.items()
        if value is not None or options[key] is not None
    }
    try:
        # A decoder always knows its n-best size: it is an option of ESPnet's.
        read = asdict(OPTIONS[name](**{"nbest": 1, **conf}))
    except ValueError as e:
        raise ValueError(f"search_conf of {name}: {e}") from e
    return {
        key: _as_given(read[key], value)
        for key, value in conf.items()
        if read[key] != options[key]
    }


def what_is_said(name: Any, conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``search_conf`` as it can be compared: without what has its default.

    Args:
        name: Of the search; of one that is not of this package no default is known.
        conf: Verified or not.
    """
    defaults = search_options(name) if name in OPTIONS else {}
    said: dict[str, Any] = plain(conf)
    return {k: v for k, v in said.items() if v != plain(defaults.get(k))}


def check_keywords(given: Mapping[str, Any], valid: Iterable[str]) -> None:
    """Verify the names of keyword arguments.

    Raises:
        TypeError: says where an option belongs, or names the nearest valid one.
    """
    for key, value in given.items():
        if key in valid:
            continue
        owners = _owners(key)
        if owners:
            raise TypeError(
                f"{key} is an option of search: {owners}: say search_conf="
                f"{ {key: value} }"
            )
        raise TypeError(f"there is no option {key}{nearest(key, valid)}")


def where_it_belongs(key: str, valid: Iterable[str]) -> str:
    """Return what to do about an unknown option, or "" if nothing is like it."""
    owners = _owners(key)
    if owners:
        return f"; it is an option of search: {owners}, and goes into search_conf"
    return nearest(key, valid)


def _as_given(read: Any, given: Any) -> Any:
    """Return an option as it was read, in the form in which it was given.

    Of a mapping these are the keys that were given, and of a number that stands for one
    the number, which is its first value.
    """
    if not isinstance(read, dict) or is_dataclass(given):
        return read
    if isinstance(given, Mapping):
        return {key: read[key] for key in given}
    return None if given is None else next(iter(read.values()))


def _pre_beam_ratio(like: Any) -> float:
    """Return the ratio that a search was built with, of which it keeps the outcome."""
    usual = 1.5  # ESPnet's default
    beam_size: int = like.beam_size
    pre_beam_size: int = like.pre_beam_size
    if int(usual * beam_size) == pre_beam_size:
        return usual
    # half a hypothesis more, so that truncation gives the same size
    return (pre_beam_size + 0.5) / beam_size


@functools.cache  # finding them reads the metadata of every installed package
def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _entry_point(name: str) -> EntryPoint:
    points = _entry_points()
    if not isinstance(name, str) or name not in points:
        raise ValueError(
            f"there is no search {name!r}{nearest(name, points)} "
            f"(available: {', '.join(sorted(points))})"
        )
    return points[name]


def _owners(key: str) -> str:
    """Return which of this package's searches have the option; "" if none."""
    owners = [
        name
        for name, known in OPTIONS.items()
        if key in {field.name for field in fields(known)}
    ]
    return " and ".join(owners)


def _unknown_option(name: str, key: str, options: Iterable[str]) -> str:
    owners = _owners(key)
    if owners:
        return f"{key} is an option of search: {owners}, not of {name}"
    if key in _BESIDE:
        return (
            f"{key} is no option of {name} or of another search: it stands beside search "
            "and search_conf in a decode config, and is one of Speech2Text in Python"
        )
    known = ", ".join(options) or "none"
    return f"{name} has no option {key}{nearest(key, options)} (its options: {known})"
