"""Which searches share a panel of a figure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from espnet_lenbias.report.figures.looks import Kind
from espnet_lenbias.report.systems import PROPOSED, SIMPLE

MOST = 8  # curves of a panel

# Whether an LM and CTC took part -> what a title says.
_MODELS = {
    (False, False): "without LM",
    (True, False): "with LM",
    (False, True): "with CTC",
    (True, True): "with CTC and LM",
}


@dataclass(frozen=True)
class Panel:
    """The searches of a panel, by their labels."""

    title: str
    labels: Sequence[str]
    references: Sequence[str]  # those that the others are compared with


def panels(kinds: Mapping[str, Kind]) -> list[Panel]:
    """Share out searches over panels: the same models, at most eight to a panel.

    Simple search without heuristics and the proposed search without pruning by score
    are in every panel of their models.

    Args:
        kinds: Label of a search -> its kind, in order.
    """
    shared_out = []
    for models, title in _MODELS.items():
        group = {label: kind for label, kind in kinds.items() if kind.models == models}
        compared = _references(group)
        others = [label for label in group if label not in compared]
        parts = cut(others, MOST - len(compared)) if group else []
        for n, part in enumerate(parts, 1):
            count = f" ({n} of {len(parts)})" if len(parts) > 1 else ""
            labels = [label for label in group if label in (*compared, *part)]
            shared_out.append(Panel(title + count, labels, compared))
    return shared_out


def references(shown: Sequence[Panel]) -> list[str]:
    """Return the references of all panels, each once."""
    return list(dict.fromkeys(x for panel in shown for x in panel.references))


def cut(items: Sequence[str], most: int) -> list[Sequence[str]]:
    """Cut items into the fewest parts of at most so many, of level size; at least one."""
    count = max(1, math.ceil(len(items) / most))
    edges = [len(items) * n // count for n in range(count + 1)]
    return [items[a:b] for a, b in pairwise(edges)]


def _references(group: Mapping[str, Kind]) -> list[str]:
    """Return the first plain search of each of the two kinds, where there is one."""
    found: dict[str, str] = {}
    for label, kind in group.items():
        if kind.search in (SIMPLE, PROPOSED) and not kind.options:
            found.setdefault(kind.search, label)
    return list(found.values())
