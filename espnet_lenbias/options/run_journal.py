"""What a journal of decoding says of the run: its first line, the options."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# Where the journal lies in the output folder. Its first line holds the run's options as
# texts, each further line the result of one utterance.
JOURNAL = "decoding.jsonl"


def read_run_options(path: Path) -> Mapping[str, str] | None:
    """Return the options of the run that a journal is of; None where it has none."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        try:
            options = json.loads(lines.readline())
        except (ValueError, RecursionError):
            return None
    is_options = isinstance(options, dict) and all(
        isinstance(value, str) for value in options.values()
    )
    return options if is_options else None


def read_rows(path: Path) -> dict[str, dict[str, str]]:
    """Return what the run of a journal has put into the files, by utterance.

    A line that is damaged says nothing.
    """
    rows: dict[str, dict[str, str]] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        next(lines, None)
        for line in lines:
            with suppress(ValueError, RecursionError):
                match json.loads(line):
                    case [str(key), {**row}, *_]:
                        rows[key] = {str(name): str(row[name]) for name in row}
    return rows
