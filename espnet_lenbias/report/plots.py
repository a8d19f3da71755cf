"""Plots of a comparison, as matplotlib figures that share no state."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

if TYPE_CHECKING:  # these load torch, which drawing does without
    from espnet_lenbias.compare.summary import ErrorLine
    from espnet_lenbias.search.trace import Trace

# Colours that the colour-blind can tell apart (Okabe and Ito).
_BLUE, _VERMILION, _ORANGE, _GREEN = "#0072B2", "#D55E00", "#E69F00", "#009E73"
_PURPLE, _SKY, GREY = "#CC79A7", "#56B4E9", "#666666"

# One after the other for the searches of a plot. Lines may coincide, as those of two
# baselines often do: the first is wide and the second dashed, so that both show.
_STYLES = (
    {"color": _ORANGE, "marker": "o", "linewidth": 4.0, "markersize": 10},
    {"color": _VERMILION, "marker": "s", "linestyle": "--"},
    {"color": _PURPLE, "marker": "v"},
    {"color": _BLUE, "marker": "D"},
    {"color": _GREEN, "marker": "^"},
    {"color": _SKY, "marker": "P"},
)


def style(i: int) -> dict[str, Any]:
    """Return how the line of the i-th search looks."""
    own = _STYLES[i % len(_STYLES)]
    return own if i < len(_STYLES) else {**own, "linestyle": ":"}


def beam_axis(axes: Axes, beams: Sequence[int]) -> None:
    """Have an x-axis show beam sizes, those that there are."""
    axes.set_xscale("log")
    axes.set_xticks(beams, [str(beam) for beam in beams])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("beam size")


def beam_figure(lines: Sequence["ErrorLine"]) -> Figure:
    """Plot word error rate and length ratio against beam size, a line per search."""
    figure = Figure(figsize=(9.0, 4.2), dpi=150, layout="constrained")
    wer, ratio = figure.subplots(1, 2)
    for i, search in enumerate(dict.fromkeys(line.search for line in lines)):
        own = [line for line in lines if line.search == search]
        own.sort(key=lambda line: line.beam_size)
        beams = [line.beam_size for line in own]
        wer.plot(beams, [line.wer for line in own], label=search, **style(i))
        ratio.plot(beams, [line.length_ratio for line in own], **style(i))

    beams = sorted({line.beam_size for line in lines})
    for axes in (wer, ratio):
        beam_axis(axes, beams)
        axes.grid(alpha=0.3)
    wer.set_ylabel("word error rate (%)")
    wer.set_ylim(0, 1.1 * max(line.wer for line in lines) or 1.0)
    ratio.set_ylabel("output words / reference words")
    ratio.axhline(1.0, color=GREY, linestyle="--", linewidth=1.0)
    figure.legend(
        handles=wer.get_lines(), loc="outside upper center", ncols=4, frameon=False
    )
    return figure


def ending_figure(trace: "Trace", title: str) -> Figure:
    """Plot how a search with explicit length model came to its end, over positions N.

    Args:
        trace: Of an utterance with frames, from ``explicit_length``.
        title: Says of what.
    """
    positions = list(range(1, trace.steps + 1))
    left = [
        math.exp(log_before) * (1 - p_end)
        for log_before, p_end in zip(trace.log_not_ended, trace.p_end, strict=True)
    ]
    best = [math.exp(score) for score in trace.best_final]

    figure = Figure(figsize=(7.5, 4.2), dpi=150, layout="constrained")
    axes = figure.subplots()
    axes.bar(
        positions,
        trace.p_end,
        color=_SKY,
        alpha=0.5,
        label="ending probability $p_N(\\$|x)$",
    )
    axes.plot(
        positions,
        left,
        color=_BLUE,
        marker="o",
        label="not ended yet, $\\prod_{n \\leq N} (1-p_n(\\$|x))$",
    )
    axes.plot(
        positions,
        best,
        color=_VERMILION,
        marker="s",
        label="best final score so far, exponentiated",
    )
    axes.axvline(
        trace.steps,
        color=GREY,
        linestyle="--",
        label=f"search stops, N = {trace.steps}",
    )
    axes.set_xlabel("position N")
    axes.set_ylabel("probability")
    axes.set_ylim(0.0, 1.05)
    axes.set_xlim(0.4, trace.steps + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(title, fontsize="medium")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def places_figure(trace: "Trace", title: str) -> Figure:
    """Plot who has the places of simple search's beam, and the best score that ended.

    Args:
        trace: Of an utterance with frames, from ``simple``.
        title: Says of what.
    """
    positions = list(range(1, trace.steps + 1))
    ended = [kept - n for kept, n in zip(trace.kept, trace.running, strict=True)]

    figure = Figure(figsize=(7.5, 5.4), dpi=150, layout="constrained")
    places, best = figure.subplots(2, sharex=True)
    places.bar(positions, ended, color=_VERMILION, alpha=0.6, label="ended")
    places.bar(
        positions, trace.running, bottom=ended, color=_SKY, alpha=0.5, label="running"
    )
    places.set_ylabel("hypotheses in the beam")
    places.legend(loc="lower left")
    best.plot(positions, trace.best_final, color=_VERMILION, marker="s")
    best.axvline(
        trace.steps,
        color=GREY,
        linestyle="--",
        label=f"search stops, N = {trace.steps}",
    )
    best.legend(loc="lower left")
    best.set_ylabel("best score of the ended ones")
    best.set_xlabel("position N")
    best.set_xlim(0.4, trace.steps + 0.6)
    best.xaxis.set_major_locator(MaxNLocator(integer=True))
    places.set_title(title, fontsize="medium")
    return figure
