"""The rows of the tables: systems, each described by a decode config."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import yaml

from espnet_lenbias.options.registry import ESPNET

PROPOSED = "explicit_length"
SIMPLE = "simple"

# ESPnet's own options that are heuristics against the length bias.
_HEURISTICS = ("penalty", "maxlenratio", "minlenratio", "normalize_length")


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


def read_system(path: Path) -> System:
    """Read ``<tag>/decode.yaml``: ESPnet's decode config, optionally with ``row: name``.

    Raises:
        ValueError: Names what is missing or wrong in it.
    """
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise ValueError(f"{path}: not a yaml file: {e}") from e
    is_config = isinstance(config, dict)
    _require(is_config, path, "a decode config holds `option: value` lines")
    beam_size = config.get("beam_size")
    _require(
        type(beam_size) is int and beam_size >= 1,
        path,
        "beam_size must say the beam that was decoded with, a whole number of 1 or "
        f"more, not {beam_size!r}",
    )
    conf = config.get("search_conf") or {}
    is_mapping = isinstance(conf, dict)
    _require(is_mapping, path, f"search_conf must be a mapping, not {conf!r}")
    options = {key: config[key] for key in _HEURISTICS if config.get(key)} | conf
    options = {k: v for k, v in options.items() if v is not None and v is not False}
    search = str(config.get("search", ESPNET))
    ctc_weight = _weight(path, config, "ctc_weight")
    return System(
        tag=path.parent.name,
        name=str(config.get("row") or _name(search, options, ctc_weight)),
        search=search,
        beam_size=beam_size,
        lm_weight=_weight(path, config, "lm_weight"),
        ctc_weight=ctc_weight,
        options=option_names(options),
    )


def _require(ok: bool, path: Path, message: str) -> None:
    if not ok:
        raise ValueError(f"{path}: {message}")


def _weight(path: Path, config: Mapping[str, Any], key: str) -> float:
    """Return the weight of a model; one that the config does not name has none."""
    weight = config.get(key, 0.0)
    is_number = isinstance(weight, Real)
    _require(is_number, path, f"{key} must be a number, not {weight!r}")
    return float(weight)


def _name(search: str, options: Mapping[str, Any], ctc_weight: float) -> str:
    """Return e.g. ``simple + length_norm + eos_threshold 1.5 + CTC 0.3``."""
    parts = [search, *(_option(key, value) for key, value in options.items())]
    if ctc_weight:
        parts.append(f"CTC {ctc_weight:g}")
    return " + ".join(parts)


def _option(key: str, value: Any) -> str:
    """Return an option as a part of a name."""
    if value is True:
        return key
    if isinstance(value, Mapping):
        return f"{key} ({', '.join(_option(k, v) for k, v in value.items())})"
    return f"{key} {value:g}" if isinstance(value, Real) else f"{key} {value}"
