"""What a decode config leaves to tune: the grid of its values, and the best of them."""

import copy
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espnet_lenbias.report.scoring import Errors

# What is tuned -> where a decode config holds it.
PLACES = {
    "lm_weight": ("lm_weight",),
    "eos_threshold": ("search_conf", "eos_threshold"),
    "length_reward": ("search_conf", "length_reward"),
    "coverage_weight": ("search_conf", "coverage", "weight"),
    "coverage_threshold": ("search_conf", "coverage", "threshold"),
    "patience": ("search_conf", "patience"),
    "length_penalty": ("search_conf", "length_penalty"),
    "label_smoothing": ("search_conf", "label_smoothing"),
}

# A row with so many of them, the LM scale aside, tries fewer values of each.
_MANY = 3

# What has a largest value: nothing is sought beyond it, nor below 0.
_LARGEST = {"label_smoothing": 1.0}

# What a row can have for itself; all else is the model's, and so the same for all rows.
# Minimum Bayes risk has what is best for the hypothesis of the best score.
_OF_A_ROW = {"search", "search_conf", "beam_size", "lm_weight", "decide"}


@dataclass(frozen=True)
class Setting:
    """A row of the paper with values for what is tuned."""

    row: str
    values: Mapping[str, float]  # of those in PLACES that the row has
    config: Mapping[str, Any]  # its decode config with these values


def grid(
    row: str,
    config: Mapping[str, Any],
    tried: Mapping[str, Sequence[float]],
    thinned: Collection[str] = (),
) -> Iterator[Setting]:
    """Yield a row's settings: all combinations of values for what its config has.

    Args:
        row: Its name.
        config: Its decode config.
        tried: The values for each of PLACES.
        thinned: Of these a row of many has every second value, so that its grid does
            not explode.
    """
    names = [name for name, place in PLACES.items() if _has(config, place)]
    values_of = {name: tried[name] for name in names}
    if len(values_of.keys() - {"lm_weight"}) >= _MANY:
        for name in values_of.keys() & set(thinned) - {"lm_weight"}:
            values_of[name] = every_second(tried[name])
    for point in itertools.product(*values_of.values()):
        values = dict(zip(names, point, strict=True))
        changed = copy.deepcopy(dict(config))
        for name, value in values.items():
            _put(changed, PLACES[name], value)
        yield Setting(row, values, changed)


def every_second(values: Sequence[float]) -> list[float]:
    """Return every second value; the first and the last stay."""
    return [x for i, x in enumerate(values) if i % 2 == 0 or i == len(values) - 1]


def shared_options(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the decode options that are the model's, e.g. ctc_weight.

    Args:
        configs: Row -> decode config.

    Raises:
        ValueError: Two rows do not agree on them.
    """
    first, *others = configs
    options = _rest(configs[first])
    for row in others:
        if _rest(configs[row]) != options:
            raise ValueError(
                f"{first} and {row} differ in more than the search ({options} and "
                f"{_rest(configs[row])}): tune them in two runs"
            )
    return options


def choose(
    row: str,
    settings: Sequence[Setting],
    errors: Sequence[Errors],
    tried: Mapping[str, Sequence[float]],
) -> Setting:
    """Return the setting of a row with the lowest WER.

    Of equal ones it is the first that lies farthest inside the grid.
    """
    own = [i for i, setting in enumerate(settings) if setting.row == row]
    best = min(own, key=lambda i: (errors[i].wer, len(at_the_edge(settings[i], tried))))
    return settings[best]


def at_the_edge(setting: Setting, tried: Mapping[str, Sequence[float]]) -> list[str]:
    """Return what has the lowest or highest value tried, with values beyond it."""
    return [
        name
        for name, value in setting.values.items()
        if value and value != _LARGEST.get(name) and len(set(tried[name])) > 1
        if value in (min(tried[name]), max(tried[name]))
    ]


def _rest(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _OF_A_ROW}


def _has(config: Any, place: Sequence[str]) -> bool:
    for key in place:
        if not isinstance(config, Mapping) or key not in config:
            return False
        config = config[key]
    return True


def _put(config: Any, place: Sequence[str], value: float) -> None:
    for key in place[:-1]:
        config = config[key]
    config[place[-1]] = value
