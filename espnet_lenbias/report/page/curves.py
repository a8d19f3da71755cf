"""The curves over beam sizes as Vega-Lite charts.

Their data are those of all sets; the page says which set and which searches they show,
by the parameters `dataset` and `hidden`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from espnet_lenbias.report.figures.looks import Kind, Look, looks
from espnet_lenbias.report.table1 import ScoreLine
from espnet_lenbias.report.translation import TranslationLine

# Matplotlib's markers and lines as Vega has them; others are circles.
_SHAPES = {
    "s": "square",
    "D": "diamond",
    "d": "diamond",
    "v": "triangle-down",
    "^": "triangle-up",
    "<": "triangle-left",
    ">": "triangle-right",
    "P": "cross",
    "X": "cross",
}
_DASHES = {"--": [6, 4], ":": [2, 3], "-.": [8, 3, 2, 3]}

# How much white is in the colours of curves on a dark ground.
_WHITE = 0.4


def searches(labels: Sequence[str], kinds: Mapping[str, Kind]) -> list[dict[str, Any]]:
    """Return how the curves of searches look: those of the plots in report.md.

    Args:
        labels: Of the searches that have curves.
        kinds: Of all searches of the report.
    """
    chosen = looks(kinds)
    return [{"name": x, **_look(chosen[x])} for x in kinds if x in labels]


def curves(
    scores: Sequence[ScoreLine],
    translations: Sequence[TranslationLine],
    kinds: Mapping[str, Kind],
) -> dict[str, Any]:
    """Return the charts of a report.

    Args:
        scores: Lines of finished decodings.
        translations: Likewise.
        kinds: Of all searches of the report.

    Returns:
        `sets`, `searches` (see :func:`searches`), and `charts`, each with a `title` and
        its `spec`.
    """
    measures: list[tuple[str, str, Sequence[Any], bool]] = [
        ("BLEU", "bleu", translations, True),
        ("Word error rate (%)", "wer", scores, True),
        ("Length ratio (dashed: the right length)", "length_ratio", scores, False),
        ("Search steps", "steps", scores, True),
    ]
    shown = searches([line.label for line in scores], kinds)
    charts = []
    for title, field, lines, zero in measures:
        values = [value for x in lines for value in _points(x, field)]
        if values:
            spec = _spec(title, values, shown, zero, rule=field == "length_ratio")
            charts.append({"title": title, "spec": spec})
    return {
        "sets": sorted({line.dataset for line in scores}),
        "searches": shown,
        "charts": charts,
    }


def lighter(colour: str, white: float = _WHITE) -> str:
    """Mix a colour, ``#rrggbb``, with white."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(x + (255 - x) * white):02x}" for x in parts)


def _look(look: Look) -> dict[str, Any]:
    return {
        "colour": look.colour,
        "light": lighter(look.colour),  # on a dark ground
        "dash": _DASHES.get(look.line, []),
        "shape": _SHAPES.get(look.marker, "circle"),
        "width": look.width,
    }


def _points(line: Any, field: str) -> list[dict[str, Any]]:
    """Return the point of a line in a chart; none where its value is not known."""
    value = getattr(line, field)
    if math.isnan(value):
        return []
    point = {
        "dataset": line.dataset,
        "search": line.label,
        "beam": line.beam_size,
        "value": value,
    }
    for end in ("low", "high"):
        point[end] = getattr(line, f"{field}_{end}", value)
    return [point]


def _spec(
    title: str,
    values: Sequence[Mapping[str, Any]],
    shown: Sequence[Mapping[str, Any]],
    zero: bool,
    rule: bool,
) -> dict[str, Any]:
    """Return a chart of a measure against the beam size.

    Args:
        title: The name of the measure.
        values: The points.
        shown: Of :func:`searches`.
        zero: Whether the axis of the measure begins at 0.
        rule: Whether 1 is marked, as the right value.
    """
    beams = sorted({point["beam"] for point in values})

    # Vega warns of widths of what has no order, and of shapes of what has one.
    def by_search(key: str, kind: str = "nominal") -> dict[str, Any]:
        scale = {"domain": [x["name"] for x in shown], "range": [x[key] for x in shown]}
        return {"field": "search", "type": kind, "legend": None, "scale": scale}

    dash = by_search("dash")
    dash["scale"]["range"] = [x["dash"] or [1, 0] for x in shown]
    y = {
        "field": "value",
        "type": "quantitative",
        "title": None,
        "scale": {"zero": zero, "nice": True},
    }
    x = {
        "field": "beam",
        "type": "quantitative",
        "title": "beam size",
        "scale": {"type": "log", "base": 2, "nice": False, "padding": 12},
        "axis": {"values": beams, "format": "d", "grid": False},
    }
    tooltip = [
        {"field": "search", "type": "nominal"},
        {"field": "beam", "type": "quantitative"},
        {"field": "value", "type": "quantitative", "title": title, "format": ".4~f"},
        {"field": "low", "type": "quantitative", "title": "from", "format": ".4~f"},
        {"field": "high", "type": "quantitative", "title": "to", "format": ".4~f"},
    ]
    colour = by_search("colour")
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "line"},
            "encoding": {
                "color": colour,
                "strokeDash": dash,
                "strokeWidth": by_search("width", "ordinal"),
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "color": colour,
                "shape": by_search("shape"),
                "tooltip": tooltip,
            },
        },
    ]
    for layer in layers:
        layer["encoding"] = {"x": x, "y": y, **layer["encoding"]}
    if rule:
        right = {"type": "rule", "strokeDash": [4, 4], "color": "#888888"}
        one = {"data": {"values": [{}]}, "encoding": {"y": {"datum": 1}}}
        layers.insert(0, {"mark": right, **one})
    return {
        "description": f"{title} against beam size",
        "width": "container",
        "height": 260,
        "autosize": {"type": "fit", "contains": "padding"},
        "params": [
            {"name": "dataset", "value": values[0]["dataset"]},
            {"name": "hidden", "value": []},
        ],
        "data": {"values": list(values)},
        "transform": [
            {"filter": "datum.dataset == dataset"},
            {"filter": "indexof(hidden, datum.search) < 0"},
        ],
        "layer": layers,
    }
