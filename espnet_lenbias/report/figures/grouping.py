"""The lines of a set's table, grouped for its figures: by search, beam size and panel."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from espnet_lenbias.report.figures.drawing import THIN, THIN_NOTE, grid, head
from espnet_lenbias.report.figures.labels import room
from espnet_lenbias.report.figures.looks import Kind
from espnet_lenbias.report.figures.panels import Panel, panels


class Row(Protocol):
    """What the lines of all tables have."""

    @property
    def dataset(self) -> str:
        """The name of the set."""

    @property
    def label(self) -> str:
        """What the figure calls the row."""

    @property
    def beam_size(self) -> int:
        """K."""


class Line(Row, Protocol):
    """A line that is of so many utterances."""

    @property
    def utterances(self) -> int:
        """How many were decoded."""


R = TypeVar("R", bound=Row)
L = TypeVar("L", bound=Line)


@dataclass(frozen=True)
class Place(Generic[L]):
    """A panel for a beam size."""

    axes: Axes
    lines: Mapping[str, Sequence[L]]  # by label


def at_outermost_beams(
    lines: Sequence[L], kinds: Mapping[str, Kind], what: str, note: str = ""
) -> tuple[Figure, list[Place[L]]]:
    """Return a figure with a column for each end of the beam sizes, and its panels."""
    sizes = beams(lines)
    ends = list(dict.fromkeys((sizes[0], sizes[-1])))
    groups = by_label(lines, kinds)
    shown = panels_of(groups, kinds)
    if any(line.utterances < THIN for line in lines):
        note = f"{note} {THIN_NOTE}".strip()
    figure, rows = grid(
        len(shown), len(ends), room(panel.labels for panel in shown), title(lines), note
    )
    places = []
    for panel, row in zip(shown, rows, strict=True):
        for beam, axes in zip(ends, row, strict=True):
            at_beam = [line for line in lines if line.beam_size == beam]
            own = by_label(at_beam, {label: kinds[label] for label in panel.labels})
            if not own:
                axes.remove()
                continue
            head(axes, f"{what}, beam {beam}, {panel.title}")
            places.append(Place(axes, own))
    return figure, places


def panels_of(labels: Iterable[str], kinds: Mapping[str, Kind]) -> list[Panel]:
    """Share out some of the searches over panels."""
    return panels({label: kinds[label] for label in labels})


def by_label(lines: Iterable[R], labels: Iterable[str]) -> dict[str, list[R]]:
    """Return the lines of each search that has some, in the order of the labels."""
    groups: dict[str, list[R]] = {label: [] for label in labels}
    for line in lines:
        if line.label in groups:
            groups[line.label].append(line)
    return {label: own for label, own in groups.items() if own}


def beams(lines: Iterable[Row]) -> list[int]:
    """Return the beam sizes of lines, ascending."""
    return sorted({line.beam_size for line in lines})


def title(lines: Sequence[Line]) -> str:
    """Say which set it is, and how many utterances it has."""
    first = lines[0]
    of_it = [
        line.utterances
        for line in lines
        if (line.label, line.beam_size) == (first.label, first.beam_size)
    ]
    return f"{first.dataset}, {sum(of_it)} utterances"
