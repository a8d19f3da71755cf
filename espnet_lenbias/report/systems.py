"""The rows of the tables: systems, each described by a decode config."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

from espnet_lenbias.errors import shown
from espnet_lenbias.options.fast_yaml import read_config
from espnet_lenbias.options.posteriors import (
    MBR,
    POSTERIOR_OPTIONS,
    PosteriorOptions,
)
from espnet_lenbias.options.registry import ESPNET, what_is_said
from espnet_lenbias.options.values import count, nearest, number, switch
from espnet_lenbias.report.ran import HEURISTICS, TOLD

PROPOSED = "explicit_length"
SIMPLE = "simple"

# What ESPnet's recogniser takes where a decode config does not say it.
ESPNETS_DEFAULTS = {"beam_size": 20, "ctc_weight": 0.5, "lm_weight": 1.0}

# So similar to an option here, 1 being the same, is one that is misspelt; ngram_weight
# and lm_weight are at 0.76.
_MISSPELT = 0.85


@dataclass(frozen=True)
class System:
    """How a model was decoded."""

    tag: str  # the name of its folder
    name: str  # of the search with its options, as tables show it
    search: str  # as in the decode config
    beam_size: int
    lm_weight: float = 0.0
    ctc_weight: float = 0.0
    options: frozenset[str] = frozenset()  # names of those that are set
    # Of its words: the measure, if there is one. A set alone may have it, to calibrate.
    confidence: str = field(default="", compare=False)

    @property
    def lm(self) -> str:
        """The LM scale as tables show it."""
        return f"{self.lm_weight:g}"

    @property
    def row(self) -> tuple[str, float]:
        """What systems share that differ in their beam size alone."""
        return self.name, self.lm_weight

    @property
    def label(self) -> str:
        """Name and LM, for a line of a plot."""
        return label(self.name, self.lm_weight)

    @property
    def models(self) -> tuple[bool, bool]:
        """Whether an LM and CTC took part."""
        return self.lm_weight != 0, self.ctc_weight != 0

    @property
    def order(self) -> tuple[int, int, str, float, int]:
        """The baselines come first, the proposed search last; for sorting."""
        place = {ESPNET: 0, SIMPLE: 1, PROPOSED: 3}.get(self.search, 2)
        return place, len(self.options), *self.row, self.beam_size


def label(name: str, lm_weight: float) -> str:
    """Return what a plot calls a system of this name."""
    return f"{name}, LM {lm_weight:g}" if lm_weight else name


def option_names(conf: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the options that are set, e.g. ``length_norm``.

    Coverage with a threshold is another option than without: ``coverage.threshold``.
    """
    names = {k for k, value in conf.items() if value is not None and value is not False}
    coverage = conf.get("coverage")
    if isinstance(coverage, Mapping) and coverage.get("threshold") is not None:
        names = names - {"coverage"} | {"coverage.threshold"}
    return frozenset(names)


def read_system(path: Path) -> dict[str, Any]:
    """Read ``<tag>/decode.yaml``: ESPnet's decode config, optionally with ``row: name``.

    Raises:
        OSError: It cannot be read.
        ValueError: It is none.
    """
    config = read_config(path)
    if not isinstance(config, dict):
        raise ValueError(f"{path}: a decode config holds `option: value` lines")
    for key in config:
        meant = "" if key in TOLD else nearest(key, TOLD, _MISSPELT)
        if meant:
            raise ValueError(f"{path}: unknown option {key}{meant}")
    return config


def with_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a decode config with what ESPnet's recogniser adds to it."""
    said = {key: value for key, value in config.items() if value is not None}
    return {**ESPNETS_DEFAULTS, **said}


def system_of(tag: str, config: Mapping[str, Any]) -> System:
    """Return the system that a decode config describes.

    Args:
        tag: The name of its folder.
        config: ESPnet's decode config, optionally with ``row: name``. A weight that it
            does not name is 0.

    Raises:
        ValueError: Names what is missing or wrong in it.
    """
    if config.get("beam_size") is None:
        raise ValueError("beam_size must say the beam that was decoded with")
    beam_size = count("beam_size", config["beam_size"])
    conf = config.get("search_conf") or {}
    if not isinstance(conf, Mapping):
        raise ValueError(f"search_conf must be a mapping, not {conf!r}")
    espnets = {key: config[key] for key in HEURISTICS if config.get(key) is not None}
    options = {key: _read(key, value) for key, value in espnets.items()}
    search = str(config.get("search", ESPNET))
    options = {key: value for key, value in options.items() if value}
    options |= what_is_said(search, conf)
    dtype = str(config.get("decoder_dtype") or "float32")
    named = [key for key in POSTERIOR_OPTIONS if config.get(key) is not None]
    of_nbest = PosteriorOptions(**{key: config[key] for key in named})
    if of_nbest.decide == MBR:
        options = {**options, **_decision(of_nbest)}
    ctc_weight = number("ctc_weight", config.get("ctc_weight", 0.0))
    name = config.get("row") or _name(search, options, ctc_weight, dtype)
    return System(
        tag=tag,
        name=shown(name, " "),
        search=search,
        beam_size=beam_size,
        lm_weight=float(number("lm_weight", config.get("lm_weight", 0.0))),
        ctc_weight=float(ctc_weight),
        options=option_names(options),
        confidence=of_nbest.measure(search) or "",
    )


def _decision(options: PosteriorOptions) -> dict[str, Any]:
    """Return what a name tells of minimum Bayes risk."""
    told: dict[str, Any] = {MBR: True}
    for key in ("posterior_nbest", "posterior_temperature"):
        if getattr(options, key) != getattr(PosteriorOptions, key):
            told[key] = getattr(options, key)
    return told


def _read(key: str, value: Any) -> float | bool:
    """Return the value of one of ESPnet's heuristics."""
    return switch(key, value) if key == "normalize_length" else number(key, value)


def _name(
    search: str, options: Mapping[str, Any], ctc_weight: float, dtype: str
) -> str:
    """Return e.g. ``simple + length_norm + eos_threshold 1.5 + CTC 0.3``."""
    parts = [search, *(_option(key, value) for key, value in options.items())]
    if ctc_weight:
        parts.append(f"CTC {ctc_weight:g}")
    if dtype != "float32":
        parts.append(dtype)
    return " + ".join(parts)


def _option(key: str, value: Any) -> str:
    """Return an option as a part of a name."""
    if value is True:
        return key
    if isinstance(value, Mapping):
        return f"{key} ({', '.join(_option(k, v) for k, v in value.items())})"
    return f"{key} {value:g}" if isinstance(value, Real) else f"{key} {value}"
