"""Data files with a line for each utterance; no torch here."""

import argparse
import hashlib
import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.values import nearest

# ESPnet's option that names the data: (file, name, type) each.
DATA = "data_path_and_name_and_type"

# ESPnet's types of data whose lines name files that soundfile opens.
SOUND = ("sound", "multi_columns_sound", "variable_columns_sound")

# Its types of data whose lines name a file, or a command.
_FILES = (*SOUND, "kaldi_ark", "npy")

# ESPnet's types of data whose files have a line for each utterance, which its key
# begins, and nothing else.
KEYED = (
    *_FILES,
    "text",
    "text_int",
    "text_float",
    "csv_int",
    "csv_float",
)

# Its other types; ESPnet takes any type that begins like one of all these.
_OTHERS = (
    *("score", "duration", "random_text", "hdf5", "rand_float", "rand_int_<n>_<m>"),
    *("rttm", "json", "metric"),
)

# Behind the name of an archive: where in it the utterance begins, and which rows.
_PLACE = re.compile(r":\d+(\[[^\]]*\])?$")

# Types that hold audio, or features of it.
_AUDIO = (*_FILES, "hdf5", "rand_float")

# Types that give a text as it stands, and those that give numbers in its place, which do
# for a model without preprocessing.
_TEXT = ("text", "random_text")
_IDS = ("text_int", "csv_int", "npy", "kaldi_ark", "hdf5")


def check_types(data: Sequence[tuple[str, str, str]]) -> None:
    """Verify the types of data, before ESPnet reads something else than there is.

    Args:
        data: (file, name of the data, type) each.

    Raises:
        OptionError: Names the type that is wrong, and what to say.
    """
    known = (*KEYED, *_OTHERS)
    names = [name for _, name, _ in data]
    for path, name, kind in data:
        given = f"{DATA}: {path},{name},{kind}: "
        if names.count(name) > 1:
            raise OptionError(f"{given}{name} is given twice: leave one of them out")
        if kind not in known and not re.fullmatch(r"rand_int_\d+_\d+", kind):
            hint = nearest(kind, known) or f" (types: {', '.join(known)})"
            raise OptionError(f"{given}there is no type {kind}{hint}")
        if name == "speech" and kind not in _AUDIO:
            raise OptionError(
                f"{given}speech is audio, and {kind} is no type of such data: say "
                f"{path},{name},sound, or kaldi_ark for commands and archives"
            )
        if _is_text(name) and kind not in (*_TEXT, *_IDS):
            raise OptionError(
                f"{given}{name} is a text, and {kind} is no type of such data: say "
                f"{path},{name},text"
            )


def check_texts(data: Sequence[tuple[str, str, str]]) -> None:
    """Verify that texts are read as such, for a model that makes token ids of them.

    Args:
        data: (file, name of the data, type) each.

    Raises:
        OptionError: Names what is read as something else, and what to say.
    """
    for path, name, kind in data:
        if _is_text(name) and kind not in _TEXT:
            raise OptionError(
                f"{DATA}: {path},{name},{kind}: the model makes token ids of {name} "
                f"itself, and {kind} gives no text: say {path},{name},text"
            )


def _is_text(name: str) -> bool:
    """Tell whether data of this name are texts."""
    return name.endswith("text") or name in ("transcript", "text_prev")


def data_taken(
    data: Sequence[tuple[str, str, str]], tool: Tool, leave_others: bool
) -> list[tuple[str, str, str]]:
    """Return the data that a tool decodes.

    Args:
        data: (file, name of the data, type) each.
        tool: Whose model decodes.
        leave_others: Whether there may be others, which are left out: ESPnet would hand
            them to a model that does not take them.

    Raises:
        OptionError: There are others; what is to be decoded is not there.
    """
    taken = dict.fromkeys(filter(None, (tool.source, tool.text)))
    takes = f"{tool.name} takes {' and '.join(taken)}"
    others = [entry for entry in data if entry[1] not in taken]
    for entry in others:
        what = f"{DATA}: {','.join(entry)}: {takes}, and no {entry[1]}"
        if not leave_others:
            raise OptionError(f"{what}: leave it out, or give it its right name")
        logging.warning(f"{what}: it is left out")
    if tool.source not in [name for _, name, _ in data]:
        raise OptionError(
            f"{DATA}: there is no {tool.source}, which {tool.name} decodes"
        )
    return [entry for entry in data if entry[1] in taken]


def lines_of(args: argparse.Namespace) -> dict[str, Mapping[str, str]]:
    """Return the lines of the data files that have one for each key; verify them.

    Args:
        args: The options of a tool, with ``data_path_and_name_and_type``.

    Returns:
        File -> key -> what stands behind it.

    Raises:
        OSError: A file cannot be read.
        OptionError: Names the file and what is wrong with it.
    """
    data = args.data_path_and_name_and_type
    lines: dict[str, Mapping[str, str]] = {
        path: read_lines(Path(path)) for path, _, kind in data if kind in KEYED
    }
    for path, _, kind in data:
        if kind in _FILES:
            _check_values(path, lines[path])
    return lines


def utterances(
    args: argparse.Namespace, lines: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """Return the utterances to decode, in order.

    Args:
        args: The options of a tool, with ``data_path_and_name_and_type`` and
            ``key_file``.
        lines: Of the data files, see :func:`as_they_are`.

    Returns:
        Key -> what tells the utterance's data from any other: a digest of its lines.

    Raises:
        OSError: A file cannot be read.
        OptionError: Names the file and what is wrong with it.
    """
    source = args.key_file or args.data_path_and_name_and_type[0][0]
    keys = lines[source] if source in lines else read_lines(Path(source))
    return {key: _digest(key, lines) for key in keys}


def as_they_are(args: argparse.Namespace) -> dict[str, Mapping[str, str]]:
    """Return the lines of the data files, see :func:`lines_of`, for a later run to compare.

    Files count as what they are now: their whole paths, sizes and dates.
    """
    lines = lines_of(args)
    for path, _, kind in args.data_path_and_name_and_type:
        if kind in _FILES:
            lines[path] = {
                key: " ".join(
                    map(as_it_is, value.split() if "columns" in kind else [value])
                )
                for key, value in lines[path].items()
            }
    return lines


def as_it_is(value: str) -> str:
    """Return what tells a file from another one, and from what it was before.

    Args:
        value: Its path, of an archive with the place in it. A command tells nothing more.
    """
    if value.endswith("|"):
        return value
    for path in (value, _PLACE.sub("", value)):
        with suppress(OSError, ValueError):
            found = os.stat(path)
            return f"{os.path.abspath(value)} {found.st_size} {found.st_mtime_ns}"
    return os.path.abspath(value)  # its utterance fails, and says why


def _check_values(path: str, lines: Mapping[str, str]) -> None:
    """Verify that something stands behind each key."""
    for number, (key, value) in enumerate(lines.items(), 1):
        if not value:
            raise OptionError(
                f"{path}, line {number} has the key {key} and no file behind it: name the "
                "utterance's, or remove the line"
            )


def _digest(key: str, lines: Mapping[str, Mapping[str, str]]) -> str:
    """Return a digest of what each file has for a key; without one it cannot be read."""
    values = "\n".join(of_file.get(key, "") for of_file in lines.values())
    return hashlib.sha256(values.encode()).hexdigest()[:16]


def line_of_lone_return(content: bytes) -> int | None:
    """Return the first line that holds a carriage return alone, from 1; None: none does.

    Python takes it for the end of a line.
    """
    alone = re.search(rb"\r(?!\n)", content)
    return None if alone is None else content.count(b"\n", 0, alone.start()) + 1


def read_lines(path: Path) -> dict[str, str]:
    """Return the first column of a Kaldi-style file with what stands behind it.

    Raises:
        OptionError: There is none, or one twice.
    """
    content = path.read_bytes()
    try:
        lines = list(StringIO(content.decode(), newline=""))
    except UnicodeDecodeError as e:
        number = content.count(b"\n", 0, e.start) + 1
        raise OptionError(
            f"{path}, line {number} is no text in UTF-8: name a text file of lines `key "
            "value`, saved as UTF-8"
        ) from e
    alone = line_of_lone_return(content)
    if alone is not None:
        raise OptionError(
            f"{path}, line {alone} ends in a carriage return alone, where ESPnet "
            "begins a new line: end lines with a line feed, and write a space within one"
        )
    if b"\0" in content:
        number = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise OptionError(
            f"{path}, line {number} holds a NUL, which is no text, as of a file that was "
            "damaged or saved as UTF-16: save it as UTF-8"
        )
    if lines and lines[0].startswith("\ufeff"):
        raise OptionError(
            f"{path} begins with a byte order mark, which would be a part of the first "
            "key: save it as UTF-8 without one"
        )
    values: dict[str, str] = {}
    first_lines: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise OptionError(f"{path}, line {number} is empty: remove it")
        key, *value = line.split(maxsplit=1)
        _check_separator(path, number, line, key)
        first = first_lines.setdefault(key, number)
        if first != number:
            raise OptionError(
                f"{path}, lines {first} and {number} have the same key {key}: give "
                "each utterance a key of its own"
            )
        values[key] = value[0].strip() if value else ""
    if not values:
        raise OptionError(f"{path} holds no utterance keys")
    return values


def _check_separator(path: Path, number: int, line: str, key: str) -> None:
    """Verify that a key ends as it looks: ESPnet ends it at any white space."""
    for sign in line.partition(key)[2]:
        if not sign.isspace():
            return
        if sign not in " \t\r\n":
            raise OptionError(
                f"{path}, line {number}: the key {key} ends at a white space that is no "
                f"space, U+{ord(sign):04X}: write a space or a tab there"
            )
