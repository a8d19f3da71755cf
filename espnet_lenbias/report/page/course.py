"""The course of a search as plain data, and its charts over the positions N."""

import math
from collections.abc import Sequence
from typing import Any

from espnet_lenbias.report.page.tables import known
from espnet_lenbias.search.trace import Trace

# Colours that the colour-blind can tell apart, after Okabe and Ito; the blue is lighter
# than theirs, to be seen on a dark ground.
_BLUE, _VERMILION, _SKY = "#2A7FC0", "#D55E00", "#56B4E9"

_P_END, _LEFT, _BEST = "ending probability", "not ended yet", "best final score"
_ENDED, _RUNNING = "ended", "running"
_BEST_ENDED = "best score of the ended ones"


def positions(trace: Trace) -> list[dict[str, Any]]:
    """Return what a search has at each position.

    Returns:
        `n`; of a search with explicit length model `p_end`, and `not_ended`, the
        probability that the output is longer than N; `kept`, `running` and `ended`, which
        are counts; `best_final`, a log-prob, None where nothing has ended.
    """
    rows = []
    for i, (kept, running) in enumerate(zip(trace.kept, trace.running, strict=True)):
        row: dict[str, Any] = {"n": i + 1}
        if trace.p_end:
            row["p_end"] = trace.p_end[i]
            row["not_ended"] = math.exp(trace.log_not_ended[i]) * (1 - trace.p_end[i])
        row |= {"kept": kept, "running": running, "ended": kept - running}
        row["best_final"] = known(trace.best_final[i])
        rows.append(row)
    return rows


def course_charts(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the charts of a search, as Vega-Lite, each with a `title` and its `spec`.

    Args:
        rows: Of :func:`positions`; at least one.
    """
    if "p_end" in rows[0]:
        return [{"title": "Probabilities over positions N", "spec": _ending(rows)}]
    return [
        {"title": "Hypotheses in the beam", "spec": _places(rows)},
        {"title": "Best score of the ended ones", "spec": _best(rows)},
    ]


def _ending(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return ending probability, what has not ended, and the best final score."""
    values = []
    for row in rows:
        best = row["best_final"]
        best = 0.0 if best is None else math.exp(best)
        series = zip((_P_END, _LEFT, _BEST), (row["p_end"], row["not_ended"], best))
        values += [{"n": row["n"], "series": s, "value": v} for s, v in series]
    colour = _colour({_P_END: _SKY, _LEFT: _BLUE, _BEST: _VERMILION})
    y = {
        "field": "value",
        "type": "quantitative",
        "title": "probability",
        "scale": {"domain": [0, 1]},
    }
    bars = {
        "transform": [{"filter": {"field": "series", "equal": _P_END}}],
        "mark": _bar(rows, 0.6),
    }
    lines = {
        "transform": [{"filter": {"field": "series", "oneOf": [_LEFT, _BEST]}}],
        "mark": {"type": "line", "point": {"filled": True, "size": 50}, "clip": False},
    }
    layers = [_over_n(rows, layer, y, colour, ".4f") for layer in (bars, lines)]
    return _spec("ending probability, not ended yet, best score", rows, values, layers)


def _places(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return who has the places of the beam."""
    values = [
        {"n": row["n"], "series": series, "value": row[series]}
        for row in rows
        for series in (_ENDED, _RUNNING)
    ]
    y = {"field": "value", "type": "quantitative", "title": "hypotheses"}
    layer = {"mark": _bar(rows, 0.75)}
    colour = _colour({_ENDED: _VERMILION, _RUNNING: _SKY})
    layers = [_over_n(rows, layer, y, colour, "d")]
    return _spec("hypotheses in the beam", rows, values, layers)


def _best(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the best score that has ended."""
    values = [
        {"n": row["n"], "series": _BEST_ENDED, "value": row["best_final"]}
        for row in rows
        if row["best_final"] is not None
    ]
    y = {
        "field": "value",
        "type": "quantitative",
        "title": "score",
        "scale": {"zero": False},
    }
    layer = {"mark": {"type": "line", "point": {"filled": True, "size": 50}}}
    colour = _colour({_BEST_ENDED: _VERMILION})
    layers = [_over_n(rows, layer, y, colour, ".3f")]
    return _spec(_BEST_ENDED, rows, values, layers)


def _colour(colours: dict[str, str]) -> dict[str, Any]:
    return {
        "field": "series",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(colours), "range": list(colours.values())},
        "legend": {"orient": "bottom", "symbolType": "square", "symbolOpacity": 1},
    }


def _over_n(
    rows: Sequence[dict[str, Any]],
    layer: dict[str, Any],
    y: dict[str, Any],
    colour: dict[str, Any],
    number_format: str,
) -> dict[str, Any]:
    """Return a layer with what all have: N below, colours, and what a point says."""
    tooltip = [
        {"field": "n", "type": "quantitative", "title": "N"},
        {"field": "series", "type": "nominal", "title": "what"},
        {"field": "value", "type": "quantitative", "format": number_format},
    ]
    encoding = {"x": _x(rows), "y": y, "color": colour, "tooltip": tooltip}
    return {**layer, "encoding": encoding}


def _bar(rows: Sequence[dict[str, Any]], opacity: float) -> dict[str, Any]:
    """Return the mark of a bar that takes most of the room of its position."""
    width = {"expr": f"0.8 * width / {len(rows)}"}
    return {"type": "bar", "opacity": opacity, "size": width}


def _x(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "field": "n",
        "type": "quantitative",
        "title": "position N",
        "scale": {"domain": [0.4, len(rows) + 0.6], "nice": False},
        "axis": {"tickMinStep": 1, "format": "d", "grid": False},
    }


def _spec(
    what: str,
    rows: Sequence[dict[str, Any]],
    values: Sequence[dict[str, Any]],
    layers: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return a chart, in which the parameter `N` says which position is marked."""
    marked = {
        "transform": [{"filter": "datum.n == N"}],
        "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [5, 4]},
        "encoding": {"x": _x(rows), "color": {"value": "#888888"}},
    }
    return {
        "description": f"{what}, over the positions N",
        "width": "container",
        "height": 260,
        "autosize": {"type": "fit", "contains": "padding"},
        "params": [{"name": "N", "value": rows[-1]["n"]}],
        "data": {"values": list(values)},
        "layer": [
            *layers,
            {**marked, "data": {"values": [{"n": r["n"]} for r in rows]}},
        ],
    }
