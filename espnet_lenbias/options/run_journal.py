"""What a journal of decoding says of the run: its first line, the options."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.train_config import why_no_file

# Where the journal lies in the output folder. Its first line holds the run's options as
# texts, each further line the result of one utterance.
JOURNAL = "decoding.jsonl"


def read_run_options(path: Path) -> Mapping[str, str] | None:
    """Return the options of the run that a journal is of; None where it has none.

    Raises:
        OptionError: It is no file.
    """
    check_regular(path)
    with path.open(encoding="utf-8", errors="replace") as lines:
        try:
            options = json.loads(lines.readline())
        except (ValueError, RecursionError):
            return None
    is_options = isinstance(options, dict) and all(
        isinstance(value, str) for value in options.values()
    )
    return options if is_options else None


def check_regular(path: Path) -> None:
    """Verify that what is to be read is a file, if it is there: a pipe is waited for.

    Raises:
        OptionError: It is none.
    """
    if path.exists() and not path.is_file():
        raise OptionError(why_no_file(path))


def read_rows(path: Path) -> dict[str, dict[str, str]]:
    """Return what the run of a journal has put into the files, by utterance.

    A line that is damaged says nothing.

    Raises:
        OptionError: It is no file.
    """
    check_regular(path)
    rows: dict[str, dict[str, str]] = {}
    with path.open(encoding="utf-8", errors="replace") as lines:
        next(lines, None)
        for line in lines:
            with suppress(ValueError, RecursionError):
                match json.loads(line):
                    case [str(key), {**row}, *_]:
                        rows[key] = {str(name): str(row[name]) for name in row}
    return rows
