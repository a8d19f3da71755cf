"""Figures of how the search of one utterance went, from its trace."""

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from espnet_lenbias.report.figures.looks import GREY

if TYPE_CHECKING:  # loads torch, which drawing does without
    from espnet_lenbias.search.trace import Trace

# Colours that the colour-blind can tell apart (Okabe and Ito).
_BLUE, _VERMILION, _SKY = "#0072B2", "#D55E00", "#56B4E9"


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
        clip_on=False,
        label="not ended yet, $\\prod_{n \\leq N} (1-p_n(\\$|x))$",
    )
    axes.plot(
        positions,
        best,
        color=_VERMILION,
        marker="s",
        clip_on=False,
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
    axes.set_title(title, fontsize="medium", parse_math=False)
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
    best.plot(positions, trace.best_final, color=_VERMILION, marker="s", clip_on=False)
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
    places.set_title(title, fontsize="medium", parse_math=False)
    return figure
