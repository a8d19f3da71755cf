"""The time of a step against the beam size."""

from collections.abc import Sequence

from beams import MEASURED, BeamLine
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

# Colours that the colour-blind can tell apart (Okabe and Ito).
_BLUE, _VERMILION, _GREY = "#0072B2", "#D55E00", "#666666"


def step_figure(lines: Sequence[BeamLine], title: str) -> Figure:
    """Plot the searches and the floor, a panel for each decoder.

    Args:
        lines: Of all decoders.
        title: Says on which machine.
    """
    models = list(dict.fromkeys(line.model for line in lines))
    figure = Figure(figsize=(4.7 * len(models), 4.4), dpi=150, layout="constrained")
    panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    for axes, model in zip(panels, models):
        own = [line for line in lines if line.model == model]
        _plot(axes, sorted(own, key=lambda line: line.beam_size))
        axes.set_title(model, fontsize="medium")
    panels[0].set_ylabel("seconds a step")
    figure.suptitle(title, fontsize="small")
    handles = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    figure.legend(
        handles=handles.values(), loc="outside lower center", ncols=4, frameon=False
    )
    return figure


def _plot(axes: Axes, lines: Sequence[BeamLine]) -> None:
    """Plot one decoder, beam sizes ascending."""
    beams = [line.beam_size for line in lines]
    measured = [line for line in lines if line.espnet_from == MEASURED]
    if len(measured) < len(lines):
        axes.plot(
            beams,
            [line.espnet for line in lines],
            color=_VERMILION,
            linestyle="--",
            label="espnet, extrapolated",
        )
    axes.plot(
        [line.beam_size for line in measured],
        [line.espnet for line in measured],
        color=_VERMILION,
        marker="s",
        label="espnet",
    )
    axes.plot(
        beams,
        [line.explicit_length for line in lines],
        color=_BLUE,
        marker="D",
        label="explicit_length",
    )
    axes.plot(
        beams,
        [line.floor for line in lines],
        color=_GREY,
        linestyle=":",
        label="floor: matrix products alone",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(beams, [str(beam) for beam in beams])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("beam size")
    axes.grid(alpha=0.3)
