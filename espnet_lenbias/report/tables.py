"""Tables whose rows are dataclasses, as Markdown and CSV.

A field made by :func:`column` says how its values are shown.
"""

import csv
from collections.abc import Sequence
from dataclasses import Field, asdict, field, fields
from numbers import Number
from pathlib import Path
from typing import Any


def column(title: str, format: str = "") -> Any:
    """Make a dataclass field that is a column.

    Args:
        title: Its heading in Markdown; CSV has the name of the field.
        format: How Markdown shows a value, e.g. ``.1f``.
    """
    return field(metadata={"title": title, "format": format})


def markdown_table(rows: Sequence[Any]) -> str:
    """Return a Markdown table that also lines up as plain text, numbers to the right.

    Args:
        rows: Instances of one dataclass, at least one.
    """
    columns = [_markdown_column(f, rows) for f in fields(rows[0])]
    lines = [f"| {' | '.join(cells)} |\n" for cells in zip(*columns, strict=True)]
    return "".join(lines)


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    """Write the rows, values unrounded, under the names of their fields."""
    with path.open("w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, [column.name for column in fields(rows[0])])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def _markdown_column(column: Field, rows: Sequence[Any]) -> list[str]:
    """Return heading, rule and values of a column, all of one width."""
    values = [getattr(row, column.name) for row in rows]
    title = column.metadata["title"]
    cells = [format(value, column.metadata["format"]) for value in values]
    cells = [cell.replace("|", r"\|") for cell in cells]
    width = max(3, *map(len, [title, *cells]))
    if all(isinstance(value, Number) for value in values):
        return [title.rjust(width), "-" * (width - 1) + ":"] + [
            cell.rjust(width) for cell in cells
        ]
    return [title.ljust(width), "-" * width] + [cell.ljust(width) for cell in cells]
