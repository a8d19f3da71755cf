"""Plots of a set: against beam size, by length of the reference, and reliability."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from espnet_lenbias.report.cells import CellLine
from espnet_lenbias.report.confidence import ReliabilityLine
from espnet_lenbias.report.lengths import LengthLine
from espnet_lenbias.report.plots import GREY, beam_axis, style
from espnet_lenbias.report.table1 import ScoreLine

_COLUMNS = 4

_AGAINST_BEAM = {
    "wer": "word error rate (%)",
    "length_ratio": "output words / reference words",
    "steps": "search steps",
}


def beam_figure(lines: Sequence[ScoreLine], labels: Sequence[str]) -> Figure:
    """Plot error rate, length ratio and steps against beam size, a line per search.

    Args:
        lines: Those of one set.
        labels: All searches in order, which decides how each one looks.
    """
    figure = Figure(figsize=(13.0, 4.2), dpi=120, layout="constrained")
    panels = figure.subplots(1, len(_AGAINST_BEAM))
    beams = sorted({line.beam_size for line in lines})
    for axes, (measure, title) in zip(panels, _AGAINST_BEAM.items(), strict=True):
        for label, own in _by_label(lines, labels):
            own = sorted(own, key=lambda line: line.beam_size)
            values = [getattr(line, measure) for line in own]
            look = style(labels.index(label))
            axes.plot([line.beam_size for line in own], values, label=label, **look)
        beam_axis(axes, beams)
        axes.set_ylabel(title)
        axes.grid(alpha=0.3)
    panels[0].set_ylim(bottom=0)
    panels[1].axhline(1.0, color=GREY, linestyle="--", linewidth=1.0)
    _legend(figure, panels[:1])
    return figure


def length_figure(lines: Sequence[LengthLine], labels: Sequence[str]) -> Figure:
    """Plot error rate by the length of the reference, a panel per beam size.

    Args:
        lines: Those of one set.
        labels: See :func:`beam_figure`.
    """
    figure, panels = _panels(lines)
    for axes, (beam, at_beam) in zip(panels, _by_beam(lines), strict=True):
        for label, own in _by_label(at_beam, labels):
            look = style(labels.index(label))
            wers = [line.wer for line in own]
            axes.plot(range(len(own)), wers, label=label, **look)
        ranges = dict.fromkeys((line.shortest, line.longest) for line in at_beam)
        ticks = [f"{a}-{b}" if a < b else str(a) for a, b in ranges]
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_title(f"beam {beam}", fontsize="medium")
        axes.set_xlabel("words of the reference")
        axes.grid(alpha=0.3)
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel(_AGAINST_BEAM["wer"])
    _legend(figure, panels)
    return figure


def reliability_figure(
    lines: Sequence[ReliabilityLine], labels: Sequence[str]
) -> Figure:
    """Plot how many utterances are right against confidence, a panel per beam size.

    Args:
        lines: Those of one set.
        labels: See :func:`beam_figure`.
    """
    figure, panels = _panels(lines)
    for axes, (beam, at_beam) in zip(panels, _by_beam(lines), strict=True):
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.0)
        for label, own in _by_label(at_beam, labels):
            look = style(labels.index(label))
            confidence = [line.mean_confidence for line in own]
            right = [line.right for line in own]
            axes.plot(confidence, right, label=f"{label}: {own[0].measure}", **look)
        axes.set_title(f"beam {beam}", fontsize="medium")
        axes.set_xlabel("confidence")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.03)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("share of utterances that are right")
    _legend(figure, panels)
    return figure


def _panels(lines: Sequence[CellLine]) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with a panel for each beam size, and the panels."""
    count = len({line.beam_size for line in lines})
    n_columns = min(count, _COLUMNS)
    n_rows = math.ceil(count / n_columns)
    size = (max(6.0, 4.0 * n_columns), 4.4 * n_rows)
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True).ravel()
    for axes in panels[count:]:
        axes.remove()
    return figure, panels[:count]


def _by_beam(lines: Sequence[CellLine]) -> list[tuple[int, list]]:
    beams = sorted({line.beam_size for line in lines})
    return [(beam, [x for x in lines if x.beam_size == beam]) for beam in beams]


def _by_label(lines: Sequence[CellLine], labels: Sequence[str]) -> list[tuple]:
    """Return the lines of each search, in the order of the labels."""
    groups = [(label, [x for x in lines if x.label == label]) for label in labels]
    return [(label, own) for label, own in groups if own]


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Put one legend above all panels, each label once."""
    handles = {
        handle.get_label(): handle
        for axes in panels
        for handle in axes.get_legend_handles_labels()[0]
    }
    figure.legend(
        handles=list(handles.values()),
        loc="outside upper center",
        ncols=2,
        frameon=False,
    )
