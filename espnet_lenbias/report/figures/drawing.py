"""Curves on axes, and figures of panels laid out in inches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from espnet_lenbias.report.figures.looks import GREY, Look

THIN = 10  # utterances: a point of fewer is hollow, and not joined to others
THIN_NOTE = f"Hollow: fewer than {THIN} utterances."

_WIDTH = 9.0  # of a figure, inches, like the following
_LEFT, _TOP, _BOTTOM, _BETWEEN = 0.5, 0.78, 0.5, 0.75
_HEIGHT = 2.1  # of a panel, at least


class Room(NamedTuple):
    """What the labels of curves need at the right of a panel, in inches."""

    width: float
    height: float


@dataclass(frozen=True)
class Curve:
    """A search in a panel: n points, and the ends of their intervals if they have any."""

    label: str
    look: Look
    x: Sequence[float]
    y: Sequence[float]  # NaN: not known
    utterances: Sequence[int] = ()  # that the points are of; empty: not of utterances
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    @property
    def thin(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which points are of too few utterances to be relied on, (n,) bool."""
        if not self.utterances:
            return np.zeros(len(self.x), dtype=bool)
        return np.array(self.utterances) < THIN

    @property
    def end(self) -> tuple[float, float] | None:
        """The last point that is known."""
        known = [xy for xy in zip(self.x, self.y, strict=True) if not math.isnan(xy[1])]
        return known[-1] if known else None


def draw_curve(axes: Axes, curve: Curve) -> None:
    """Draw a curve; markers are whole at the edge of the axes too."""
    look = curve.look
    thin = curve.thin
    y = np.array(curve.y, dtype=float)
    order = 4.0 if look.is_highlighted else 3.0
    if curve.low:
        axes.fill_between(
            curve.x,
            curve.low,
            curve.high,
            where=list(~thin),
            color=look.colour,
            alpha=0.15,
            linewidth=0,
        )
    axes.plot(
        curve.x,
        np.where(thin, np.nan, y),
        label=curve.label,
        color=look.colour,
        marker=look.marker,
        linestyle=look.line,
        linewidth=look.width,
        markersize=4 + look.width,
        zorder=order,
        clip_on=False,
    )
    if thin.any():
        axes.plot(
            np.array(curve.x)[thin],
            y[thin],
            label=f"_{curve.label}",  # matplotlib's legends leave it out
            color=look.colour,
            marker=look.marker,
            markerfacecolor="none",
            linestyle="none",
            markersize=4 + look.width,
            zorder=order,
            clip_on=False,
        )


def grid(
    n_rows: int, n_columns: int, room: Room, title: str, note: str = ""
) -> tuple[Figure, list[list[Axes]]]:
    """Return a figure and its axes, row by row.

    Args:
        n_rows: Of panels.
        n_columns: Of panels.
        room: For the labels of curves.
        title: What is shown.
        note: How to read it.
    """
    width = _WIDTH if n_columns > 1 else 0.6 * _WIDTH
    panel = max(_HEIGHT, room.height)
    height = _TOP + n_rows * panel + (n_rows - 1) * _BETWEEN + _BOTTOM
    figure = Figure(figsize=(width, height), dpi=150)
    axes = figure.subplots(
        n_rows,
        n_columns,
        squeeze=False,
        gridspec_kw={
            "left": _LEFT / width,
            "right": 1 - room.width / width,
            "top": 1 - _TOP / height,
            "bottom": _BOTTOM / height,
            "wspace": (_LEFT + room.width) / (width / n_columns - _LEFT - room.width),
            "hspace": _BETWEEN / panel,
        },
    )
    left = 0.12 / width
    # Names in them are no mathematics, whatever signs they hold.
    figure.text(
        left,
        1 - 0.1 / height,
        title,
        va="top",
        fontsize=10,
        weight="bold",
        parse_math=False,
    )
    figure.text(
        left,
        1 - 0.32 / height,
        note,
        va="top",
        fontsize=8,
        color=GREY,
        parse_math=False,
    )
    rows: list[list[Axes]] = axes.tolist()
    for own in [a for row in rows for a in row]:
        own.grid(alpha=0.25)
        own.tick_params(labelsize=8)
        own.spines[["top", "right"]].set_visible(False)
    return figure, rows


def head(axes: Axes, title: str) -> None:
    """Say above a panel what it shows."""
    axes.set_title(  # clear of markers
        title, fontsize=9, loc="left", pad=9, parse_math=False
    )


def beam_axis(axes: Axes, beams: Sequence[int]) -> None:
    """Have an x-axis show beam sizes, those that there are."""
    axes.set_xscale("log")
    margin = (beams[-1] / beams[0]) ** 0.04 if len(beams) > 1 else 2.0
    axes.set_xlim(beams[0] / margin, beams[-1] * margin)
    axes.set_xticks(beams, ticks(beams))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("beam size", fontsize=8)


def ticks(beams: Sequence[int]) -> list[str]:
    """Return what stands below each beam size: nothing where two would collide.

    Args:
        beams: Ascending; the last one is always shown.
    """
    whole = math.log(beams[-1] / beams[0])
    texts = [str(beams[-1])]
    shown = beams[-1]
    for beam in reversed(beams[:-1]):
        if math.log(shown / beam) < 0.1 * whole:
            texts.append("")
        else:
            texts.append(str(beam))
            shown = beam
    return texts[::-1]


def from_zero(axes: Axes, curves: Sequence[Curve]) -> None:
    """Have a y-axis begin at 0 and hold all points and intervals."""
    axes.set_ylim(0, 1.06 * max(*_values(curves), 0) or 1.0)


def around_one(axes: Axes, curves: Sequence[Curve]) -> None:
    """Have a y-axis hold all points, intervals and 1, which a dashed line marks."""
    values = [1.0, *_values(curves)]
    low, high = min(values), max(values)
    margin = max(0.08 * (high - low), 0.03)
    axes.set_ylim(low - margin, high + margin)
    axes.axhline(1.0, color=GREY, linestyle="--", linewidth=1.0, zorder=1)


def _values(curves: Sequence[Curve]) -> list[float]:
    """Return all numbers of some curves."""
    values = [v for c in curves for v in (*c.y, *c.low, *c.high)]
    return [float(v) for v in values if not math.isnan(v)] or [0.0]
