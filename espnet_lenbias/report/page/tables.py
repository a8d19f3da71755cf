"""The tables of a report as plain data, from which the page makes HTML tables."""

import math
from collections.abc import Collection, Sequence
from dataclasses import Field, fields
from typing import Any

from espnet_lenbias.report.tables import show

# Characters from which on a text takes more than a line.
_LONG = 40


def page_table(
    name: str,
    title: str,
    about: str,
    lines: Sequence[Any],
    leave_out: Collection[str] = (),
) -> dict[str, Any]:
    """Return a table.

    The ends of an interval, the fields ``<name>_low`` and ``<name>_high``, or `low` and
    `high` behind `difference`, stand in the cell of what they are the interval of.

    Args:
        name: That no other table of the page has.
        title: Its heading.
        about: What one has to know to read it.
        lines: Instances of one dataclass with fields of
            :func:`espnet_lenbias.report.tables.column`; at least one.
        leave_out: Names of fields that are not shown.

    Returns:
        `columns`, each with a `title` and a `kind`: number, long (text) or "". `rows` of
        cells, each with `text`, `interval`, and the `value` that the column is sorted by.
    """
    all_fields = {f.name: f for f in fields(lines[0])}
    ends = {f: _ends(f, all_fields) for f in all_fields}
    taken = {end for pair in ends.values() if pair for end in pair}
    shown = [f for f in all_fields.values() if f.name not in {*taken, *leave_out}]
    rows = [[_cell(line, f, ends[f.name]) for f in shown] for line in lines]
    return {
        "name": name,
        "title": title,
        "about": about,
        "columns": [
            {"title": f.metadata["title"], "kind": _kind(cells)}
            for f, cells in zip(shown, zip(*rows, strict=True))
        ],
        "rows": rows,
    }


def known(value: float) -> float | None:
    """Return a number, or None of one that JSON does not have: NaN and infinity."""
    return value if math.isfinite(value) else None


def _ends(name: str, all_fields: dict[str, Field[Any]]) -> tuple[str, str] | None:
    """Return the names of the fields that hold the ends of a field's interval."""
    low, high = f"{name}_low", f"{name}_high"
    if name == "difference":
        low, high = "low", "high"
    return (low, high) if low in all_fields else None


def _cell(line: Any, f: Field[Any], ends: tuple[str, str] | None) -> dict[str, Any]:
    """Return what a cell shows, and what its column is sorted by."""
    value = getattr(line, f.name)
    interval = ""
    if ends:
        # With as many decimals as their own columns have elsewhere.
        formats = {x.name: x.metadata["format"] for x in fields(line)}
        both = [getattr(line, end) for end in ends]
        if not math.isnan(both[0]):
            interval = " to ".join(show(x, formats[end]) for x, end in zip(both, ends))
    return {
        "text": show(value, f.metadata["format"]),
        "interval": interval,
        "value": known(value) if isinstance(value, int | float) else value,
    }


def _kind(cells: Sequence[dict[str, Any]]) -> str:
    """Return the kind of a column."""
    if not any(isinstance(cell["value"], str) for cell in cells):
        return "number"
    return "long" if any(len(cell["text"]) > _LONG for cell in cells) else ""
