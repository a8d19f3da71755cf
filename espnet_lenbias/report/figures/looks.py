"""How searches look in figures: one colour, marker and line each, the same everywhere.

The paper's searches, and the rivals of the recipes, have fixed looks. Any other has the
colour of its family, with a marker and a line of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from espnet_lenbias.options.posteriors import MBR
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.report.systems import PROPOSED, SIMPLE, System

GREY = "#666666"
_WIDTH = 1.4  # of a line, in points


class Kind(NamedTuple):
    """What decides how a search looks."""

    search: str  # as in the decode config
    options: frozenset[str] = frozenset()  # see systems.option_names
    models: tuple[bool, bool] = (False, False)  # whether an LM and CTC took part


@dataclass(frozen=True)
class Look:
    """How a search's curve is drawn."""

    colour: str
    marker: str
    line: str
    width: float = _WIDTH

    @property
    def is_highlighted(self) -> bool:
        """Whether the curve is what a figure is about."""
        return self == _LOOKS[PROPOSED, ()]


# Where ESPnet's search and simple search find the same, as they often do, a dashed line
# on a wide one shows both. Most colours are Okabe and Ito's, for the colour-blind.
_LOOKS: dict[tuple[str, tuple[str, ...]], Look] = {
    (PROPOSED, ()): Look("#0072B2", "D", "-", 2.6),
    (PROPOSED, ("score_threshold",)): Look("#56B4E9", "d", "--"),
    (ESPNET, ()): Look("#F2B84B", "o", "-", 3.2),
    (SIMPLE, ()): Look("#D55E00", "s", "--"),
    (SIMPLE, ("length_norm",)): Look("#CC79A7", "v", "-"),
    (SIMPLE, ("eos_threshold",)): Look("#009E73", "^", "-"),
    (SIMPLE, ("eos_threshold", "length_norm")): Look("#882255", "X", "-"),
    (SIMPLE, ("coverage",)): Look("#44AA99", "P", "-"),
    (SIMPLE, ("coverage.threshold",)): Look("#8C510A", "p", "-"),
    (SIMPLE, ("length_reward",)): Look("#999933", "<", "-"),
    (SIMPLE, ("coverage", "length_reward")): Look("#6A51A3", ">", "-"),
    (SIMPLE, ("coverage.threshold", "length_reward")): Look("#A6761D", ">", "--"),
    (SIMPLE, ("keep_ended",)): Look("#000000", "*", ":"),
    (SIMPLE, ("eos_threshold", "keep_ended", "length_norm")): Look("#555555", "h", ":"),
    (SIMPLE, ("keep_ended", "patience")): Look("#1B7837", "o", "-."),
    (SIMPLE, ("length_penalty",)): Look("#E78AC3", "s", "-."),
    (SIMPLE, ("keep_ended", "length_penalty", "patience")): Look("#7FBF7B", "v", "-."),
    (SIMPLE, ("label_smoothing",)): Look("#B2182B", "P", "-."),
    (PROPOSED, ("label_smoothing",)): Look("#2166AC", "D", "--"),
    (SIMPLE, (MBR,)): Look("#FB9A99", "^", "-."),
    (PROPOSED, (MBR,)): Look("#08306B", "d", ":"),
    (PROPOSED, ("exact_nbest", MBR)): Look("#08306B", "d", ":"),
}
_OTHER = "#999999"

# What further searches of a colour take: 24 pairs.
_MARKERS = ("o", "s", "v", "^", "<", ">", "P", "X")
_LINES = ("-.", ":", "--")
_PAIRS = [(_MARKERS[n % 8], _LINES[n % 3]) for n in range(24)]


def kinds_of(systems: Iterable[System]) -> dict[str, Kind]:
    """Return the kind of each search, by its label."""
    return {s.label: Kind(s.search, s.options, s.models) for s in systems}


def looks(kinds: Mapping[str, Kind]) -> dict[str, Look]:
    """Return how searches look.

    Args:
        kinds: Label of a search -> its kind, in order.

    Returns:
        Label -> look. No two of at most 23 searches of the same models look alike.
    """
    chosen: dict[str, Look] = {}
    taken: dict[tuple[bool, bool], list[Look]] = {}
    for label, kind in kinds.items():
        used = taken.setdefault(kind.models, [])
        choice = _choices(kind)
        free = [look for look in choice if look not in used]
        chosen[label] = free[0] if free else choice[len(used) % len(choice)]
        used.append(chosen[label])
    return chosen


def _choices(kind: Kind) -> list[Look]:
    """Return the looks that a search may have, its fixed one first."""
    fixed = _LOOKS.get((kind.search, tuple(sorted(kind.options))))
    family = Look(_LOOKS[PROPOSED, ()].colour, "D", "-")
    if kind.search != PROPOSED:
        family = Look(_OTHER, "o", "-")
    own = fixed or family
    spare = [
        replace(own, marker=marker, line=line, width=_WIDTH)
        for marker, line in _PAIRS
        if (marker, line) != (own.marker, own.line)
    ]
    return [fixed, *spare] if fixed else spare
