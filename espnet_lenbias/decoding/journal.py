"""The journal of a decoding run: each utterance's result, as soon as it is there.

Its first line holds the run's options, each further line one utterance: ``[key, {file:
value}, data, checksum]``, where `data` tells the utterance's data from any other. A run
that was killed may have left half a line at the end, and a file may have been damaged
or edited since: a line that does not say what it should counts for nothing, and its
utterance is decoded again. Lines of earlier versions have no checksum.
"""

import json
import logging
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from espnet_lenbias.decoding.plain_files import open_plain
from espnet_lenbias.errors import OtherRunError
from espnet_lenbias.options.run_options import is_same

# File below the output folder -> an utterance's value in it, e.g. 1best_recog/text.
ResultRow = Mapping[str, str]

# What a result file can be called: nothing else is written, whatever a journal says.
_RESULT_FILE = re.compile(
    r"(?P<before>[1-9]\d*(best_recog/|asr_best_recog/asr_))"
    r"(token|token_int|score|text|text_nospecial|original_score|steps|stopped"
    r"|word_confidence|label_confidence|posterior|word_times|label_times)"
    r"(?P<speaker>(_spk[1-9]\d*)?)",
    re.ASCII,
)
_LAYER_FILE = re.compile(r"1best_recog/encoder_interctc_layer\d+\.txt", re.ASCII)

# What every hypothesis has.
_ALWAYS = ("token", "token_int", "score")


class Entry(NamedTuple):
    """What the journal says of an utterance."""

    row: ResultRow
    data: str  # tells its data from any other


def is_result_file(name: str) -> bool:
    """Tell whether a result file can be called so, below the output folder."""
    return bool(_RESULT_FILE.fullmatch(name) or _LAYER_FILE.fullmatch(name))


def options_line(options: Mapping[str, str]) -> str:
    """Return the first line of a journal."""
    return json.dumps(dict(options)) + "\n"


def entry_line(key: str, entry: Entry) -> str:
    """Return the line of an utterance."""
    fields = [key, dict(entry.row), entry.data]
    return json.dumps([*fields, _checksum(fields)]) + "\n"


def _checksum(fields: Sequence[Any]) -> str:
    return f"{zlib.crc32(json.dumps(fields).encode()):08x}"


def read_journal(path: Path, options: Mapping[str, str]) -> dict[str, Entry]:
    """Return the entries of the utterances that earlier runs have finished.

    Args:
        path: Of the journal; it need not be there.
        options: Of this run.

    Raises:
        OSError: It cannot be read.
        OtherRunError: The results found there are those of other options.
    """
    return dict(_entries(path, _lines_of_run(path, options)))


def check_journal(path: Path, options: Mapping[str, str]) -> None:
    """Verify that a run may go on in the folder of a journal; see :func:`read_journal`."""
    _lines_of_run(path, options)


def _lines_of_run(path: Path, options: Mapping[str, str]) -> list[Any]:
    """Return the lines of a journal, if it is one of these options; none of no run."""
    try:
        with open_plain(path, "r") as f:
            lines = f.read().split("\n")
    except FileNotFoundError:
        return []
    del lines[-1]  # empty, or what was being written when the run was killed
    if len(lines) < 2:
        return []  # no result that could be another run's
    parsed = [_parse(line) for line in lines]
    if any(_is_old(line) for line in parsed):
        raise OtherRunError(
            f"{path} is of an earlier version, which did not note what data its "
            f"results are of: remove the folder ({_removal(path.parent)}) or name another"
        )
    if not isinstance(parsed[0], dict):
        raise OtherRunError(
            f"{path}, line 1 holds no options, so nobody can tell which run the "
            f"results there are of: remove the folder ({_removal(path.parent)}) or name "
            "another"
        )
    _check_options(path.parent, parsed[0], options)
    return parsed


def _removal(folder: Path) -> str:
    """Return the command that removes a folder, whatever its name."""
    return f"rm -r {shlex.quote(str(folder))}"


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_old(line: Any) -> bool:
    """Tell whether this is how a result was noted before its data was."""
    return isinstance(line, list) and len(line) == 2 and is_row(line[1])


def _entries(path: Path, lines: Sequence[Any]) -> Iterator[tuple[str, Entry]]:
    for number, line in enumerate(lines[1:], 2):
        match line:
            case [str(key), row, str(data), *checksum] if (
                is_row(row) and len(checksum) <= 1
            ):
                if checksum in ([], [_checksum([key, row, data])]):
                    yield key, Entry(row, data)
                else:
                    logging.warning(
                        f"{path}, line {number} is not as it was written: utterance "
                        f"{key} is decoded again"
                    )
            case _:
                logging.warning(
                    f"{path}, line {number} is not the result of an utterance: if it was "
                    "one, that utterance is decoded again"
                )


def is_row(row: Any) -> bool:
    """Tell whether this is what an utterance's result puts into result files."""
    if not isinstance(row, dict) or not row:
        return False
    if not all(map(_is_value, row.values())):
        return False
    parts = [
        _RESULT_FILE.fullmatch(name) for name in row if not _LAYER_FILE.fullmatch(name)
    ]
    return bool(parts) and all(
        part is not None
        and all(part["before"] + name + part["speaker"] in row for name in _ALWAYS)
        for part in parts
    )


def _is_value(value: Any) -> bool:
    """Tell whether this can stand behind a key, in a file of lines."""
    if not isinstance(value, str) or "\n" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a character
        return False
    return True


def _check_options(
    folder: Path, old: Mapping[str, Any], new: Mapping[str, str]
) -> None:
    changes = [
        f"{key} was {old.get(key)}, is {new.get(key)}"
        for key in sorted(old.keys() | new.keys())
        if not is_same(old.get(key), new.get(key))
    ]
    if changes:
        raise OtherRunError(
            f"output_dir {folder} holds results of a run with other options "
            f"({'; '.join(changes)}). Give the same options to go on with that run; to "
            f"decode anew, remove the folder ({_removal(folder)}) or name another"
        )
