"""The time of a step against the beam size."""

from collections.abc import Sequence

from beams import MEASURED, BeamLine
from matplotlib.figure import Figure

from espnet_lenbias.report.figures.drawing import Curve, beam_axis, grid, head
from espnet_lenbias.report.figures.labels import draw, room
from espnet_lenbias.report.figures.looks import GREY, Kind, Look, looks

LOOKS = looks({name: Kind(name) for name in ("espnet", "explicit_length")})
_EXTRAPOLATED = "espnet, extrapolated"
_FLOOR = "floor: matrix products alone"
_LOOKS = {
    **LOOKS,
    _EXTRAPOLATED: Look(LOOKS["espnet"].colour, "", ":", LOOKS["espnet"].width),
    _FLOOR: Look(GREY, "", ":"),
}


def step_figure(lines: Sequence[BeamLine], machine: str) -> Figure:
    """Plot the searches and the floor, a panel for each decoder.

    Args:
        lines: Of all decoders.
        machine: On which it was measured.
    """
    models = list(dict.fromkeys(line.model for line in lines))
    shown = {
        model: _curves(
            sorted(
                (line for line in lines if line.model == model),
                key=lambda line: line.beam_size,
            )
        )
        for model in models
    }
    labels = [[curve.label for curve in curves] for curves in shown.values()]
    figure, rows = grid(1, len(models), room(labels), "Time of a step", machine)
    times = [y for curves in shown.values() for curve in curves for y in curve.y]
    beams = sorted({line.beam_size for line in lines})
    for (model, curves), axes in zip(shown.items(), rows[0], strict=True):
        head(axes, f"seconds a step, {model}")
        axes.set_yscale("log")
        axes.set_ylim(min(times) / 1.5, max(times) * 1.5)
        beam_axis(axes, beams)
        draw(axes, curves)
    return figure


def _curves(lines: Sequence[BeamLine]) -> list[Curve]:
    """Return the curves of one decoder.

    Args:
        lines: By beam size, ascending.
    """
    measured = [line for line in lines if line.espnet_from == MEASURED]
    further = lines[max(len(measured) - 1, 0) :] if len(measured) < len(lines) else []
    points = {
        "espnet": [(line.beam_size, line.espnet) for line in measured],
        _EXTRAPOLATED: [(line.beam_size, line.espnet) for line in further],
        "explicit_length": [(line.beam_size, line.explicit_length) for line in lines],
        _FLOOR: [(line.beam_size, line.floor) for line in lines],
    }
    return [
        Curve(label, _LOOKS[label], [beam for beam, _ in own], [s for _, s in own])
        for label, own in points.items()
        if own
    ]
