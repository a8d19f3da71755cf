"""The journal of a decoding run: each utterance's result, as soon as it is there.

Its first line holds the run's options, each further line one utterance: ``[key, {file:
value}, data]``, where `data` tells the utterance's data from any other. A run that was
killed may have left half a line at the end, and a file may have been damaged since: a
line that does not say what it should counts for nothing, and its utterance is decoded
again.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from espnet_lenbias.errors import OtherRunError
from espnet_lenbias.options.run_journal import JOURNAL as JOURNAL

# File below the output folder -> an utterance's value in it, e.g. 1best_recog/text.
ResultRow = Mapping[str, str]

# What a result file can be called: nothing else is written, whatever a journal says.
_RESULT_FILE = re.compile(
    r"[1-9]\d*(asr_)?best_recog/"
    r"((asr_)?(token|token_int|score|text|text_nospecial|original_score|steps)"
    r"(_spk[1-9]\d*)?|encoder_interctc_layer\d+\.txt)"
)


class Entry(NamedTuple):
    """What the journal says of an utterance."""

    row: ResultRow
    data: str  # tells its data from any other


def options_line(options: Mapping[str, str]) -> str:
    """Return the first line of a journal."""
    return json.dumps(dict(options)) + "\n"


def entry_line(key: str, entry: Entry) -> str:
    """Return the line of an utterance."""
    return json.dumps([key, dict(entry.row), entry.data]) + "\n"


def read_journal(path: Path, options: Mapping[str, str]) -> dict[str, Entry]:
    """Return the entries of the utterances that an earlier run has finished.

    Args:
        path: Of the journal; it need not be there.
        options: Of this run.

    Raises:
        OtherRunError: The results found there are those of other options.
    """
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    del lines[-1]  # empty, or what was being written when the run was killed
    if len(lines) < 2:
        return {}  # no result that could be another run's
    _check_options(path.parent, _read_options(path, lines[0]), options)
    return dict(_read_entries(path, lines[1:]))


def _read_options(path: Path, line: str) -> Mapping[str, Any]:
    try:
        options = json.loads(line)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise OtherRunError(
            f"{path}, line 1 holds no options, so nobody can tell which run the "
            f"results there are of: remove the folder (rm -r {path.parent}) or name another"
        )
    return options


def _read_entries(path: Path, lines: Iterable[str]) -> Iterator[tuple[str, Entry]]:
    for number, line in enumerate(lines, 2):
        try:
            key, row, data = json.loads(line)
            valid = isinstance(key, str) and isinstance(data, str) and is_row(row)
        except (ValueError, TypeError):
            valid = False
        if valid:
            yield key, Entry(row, data)
        else:
            logging.warning(
                f"{path}, line {number} is not the result of an utterance; what it was "
                "of is decoded again"
            )


def is_row(row: Any) -> bool:
    """Tell whether this is what an utterance's result puts into result files."""
    return (
        isinstance(row, dict)
        and bool(row)
        and all(
            isinstance(name, str)
            and isinstance(value, str)
            and _RESULT_FILE.fullmatch(name)
            for name, value in row.items()
        )
    )


def _check_options(
    folder: Path, old: Mapping[str, Any], new: Mapping[str, str]
) -> None:
    changes = [
        f"{key} was {old.get(key)}, is {new.get(key)}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    if changes:
        raise OtherRunError(
            f"output_dir {folder} holds results of a run with other options "
            f"({'; '.join(changes)}). Give the same options to go on with that run; to "
            f"decode anew, remove the folder (rm -r {folder}) or name another"
        )
