"""Tables as Markdown and CSV.

The rows of most are dataclasses, where a field made by :func:`column` says how its
values are shown.
"""

import csv
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import Field, asdict, field, fields
from numbers import Number
from pathlib import Path
from typing import Any

from espnet_lenbias.report.whole_files import replacing

NOTHING = "-"  # shown for what is not known

# Names of files are bytes, and need not be text in the locale that read them.
_NAMES = "surrogateescape"

# What Markdown, and GitHub's, takes for more than itself; an underscore within a word is
# none of it.
_MARKUP = re.compile(r"[\\`*<>\[\]|~&$]|(?<![^\W_])_|_(?![^\W_])")


def column(title: str, format: str = "") -> Any:
    """Make a dataclass field that is a column.

    Args:
        title: Its heading in Markdown; CSV has the name of the field.
        format: How Markdown shows a value, e.g. ``.1f``.
    """
    return field(metadata={"title": title, "format": format})


def escape(text: str) -> str:
    """Return Markdown that shows a text, of one line, as it is."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def markdown_table(
    rows: Sequence[Any], leave_out: Collection[str] = (), *, on_terminal: bool = False
) -> str:
    """Return a Markdown table that also lines up as plain text, numbers to the right.

    Args:
        rows: Instances of one dataclass, at least one.
        leave_out: Names of fields that are not shown.
        on_terminal: Whether it is only read as it stands, so that texts need not be
            escaped.
    """
    shown = [f for f in fields(rows[0]) if f.name not in leave_out]
    columns = [_shown_column(f, rows) for f in shown]
    if not on_terminal:
        columns = [(list(map(escape, cells)), right) for cells, right in columns]
    return _lay_out([_pad(cells, right) for cells, right in columns])


def markdown_grid(
    titles: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1
) -> str:
    """Return a Markdown table of texts and numbers.

    Args:
        titles: Of the columns.
        rows: The cells of each row.
        left: So many columns are texts, which line up at the left. The others are
            numbers, at the right, which may be Markdown already: bold.
    """
    columns = []
    for i, (title, *cells) in enumerate(zip(titles, *rows, strict=True)):
        shown = list(map(escape, cells)) if i < left else cells
        columns.append(_pad([escape(title), *shown], i >= left))
    return _lay_out(columns)


def write_text(path: Path, text: str) -> None:
    """Write a text, in which names of files may stand."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", errors=_NAMES)


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    """Write the rows, values unrounded, under the names of their fields."""
    with (
        replacing(path) as draft,
        draft.open("w", newline="", encoding="utf-8", errors=_NAMES) as f,
    ):
        writer = csv.DictWriter(f, [column.name for column in fields(rows[0])])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def show(value: Any, format_spec: str) -> str:
    """Return a value as tables show it."""
    unknown = isinstance(value, float) and math.isnan(value)
    return NOTHING if unknown else format(value, format_spec)


def _shown_column(column: Field[Any], rows: Sequence[Any]) -> tuple[list[str], bool]:
    """Return heading and values of a column, and whether they are numbers."""
    values = [getattr(row, column.name) for row in rows]
    shown = [show(value, column.metadata["format"]) for value in values]
    is_number = all(isinstance(value, Number) for value in values)
    return [column.metadata["title"], *shown], is_number


def _pad(cells: Sequence[str], to_the_right: bool) -> list[str]:
    """Return a column's heading and cells, with the rule between, all of one width."""
    title, *cells = cells
    width = max(3, *map(len, [title, *cells]))
    if to_the_right:
        rule = "-" * (width - 1) + ":"
        return [title.rjust(width), rule, *(cell.rjust(width) for cell in cells)]
    return [title.ljust(width), "-" * width, *(cell.ljust(width) for cell in cells)]


def _lay_out(columns: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in zip(*columns, strict=True)]
    return "".join(lines)
