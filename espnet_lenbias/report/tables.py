"""Tables as Markdown and CSV.

The rows of most are dataclasses, where a field made by :func:`column` says how its
values are shown.
"""

import csv
import math
from collections.abc import Collection, Sequence
from dataclasses import Field, asdict, field, fields
from numbers import Number
from pathlib import Path
from typing import Any

NOTHING = "-"  # shown for what is not known


def column(title: str, format: str = "") -> Any:
    """Make a dataclass field that is a column.

    Args:
        title: Its heading in Markdown; CSV has the name of the field.
        format: How Markdown shows a value, e.g. ``.1f``.
    """
    return field(metadata={"title": title, "format": format})


def markdown_table(rows: Sequence[Any], leave_out: Collection[str] = ()) -> str:
    """Return a Markdown table that also lines up as plain text, numbers to the right.

    Args:
        rows: Instances of one dataclass, at least one.
        leave_out: Names of fields that are not shown.
    """
    shown = [f for f in fields(rows[0]) if f.name not in leave_out]
    return _lay_out([_markdown_column(f, rows) for f in shown])


def markdown_grid(
    titles: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1
) -> str:
    """Return a Markdown table of texts.

    Args:
        titles: Of the columns.
        rows: The cells of each row.
        left: So many columns line up at the left, the others at the right.
    """
    columns = zip(titles, *rows, strict=True)
    return _lay_out([_pad(cells, i >= left) for i, cells in enumerate(columns)])


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    """Write the rows, values unrounded, under the names of their fields."""
    with path.open("w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, [column.name for column in fields(rows[0])])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def _markdown_column(column: Field[Any], rows: Sequence[Any]) -> list[str]:
    """Return heading, rule and values of a column, all of one width."""
    values = [getattr(row, column.name) for row in rows]
    shown = [_show(value, column.metadata["format"]) for value in values]
    is_number = all(isinstance(value, Number) for value in values)
    return _pad([column.metadata["title"], *shown], is_number)


def _show(value: Any, format_spec: str) -> str:
    unknown = isinstance(value, float) and math.isnan(value)
    return NOTHING if unknown else format(value, format_spec)


def _pad(cells: Sequence[str], to_the_right: bool) -> list[str]:
    """Return a column's heading and cells, with the rule between, all of one width."""
    title, *cells = [cell.replace("|", r"\|") for cell in cells]
    width = max(3, *map(len, [title, *cells]))
    if to_the_right:
        rule = "-" * (width - 1) + ":"
        return [title.rjust(width), rule, *(cell.rjust(width) for cell in cells)]
    return [title.ljust(width), "-" * width, *(cell.ljust(width) for cell in cells)]


def _lay_out(columns: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in zip(*columns, strict=True)]
    return "".join(lines)
