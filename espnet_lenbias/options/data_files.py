"""Data files with a line for each utterance; no torch here."""

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path

from espnet_lenbias.errors import OptionError

# ESPnet's types of data whose files have a line for each utterance, which its key
# begins, and nothing else.
KEYED = (
    "sound",
    "multi_columns_sound",
    "variable_columns_sound",
    "kaldi_ark",
    "npy",
    "text",
    "text_int",
    "text_float",
    "csv_int",
    "csv_float",
)


def utterances(args: argparse.Namespace) -> dict[str, str]:
    """Return the utterances to decode, in order; verify the files that list them.

    Args:
        args: The options of a tool, with ``data_path_and_name_and_type`` and
            ``key_file``.

    Returns:
        Key -> what tells the utterance's data from any other: a digest of its lines.

    Raises:
        OSError: A file cannot be read.
        OptionError: Names the file and what is wrong with it.
    """
    data = args.data_path_and_name_and_type
    lines = {path: read_lines(Path(path)) for path, _, kind in data if kind in KEYED}
    source = args.key_file or data[0][0]
    keys = lines[source] if source in lines else read_lines(Path(source))
    return {key: _digest(key, lines) for key in keys}


def _digest(key: str, lines: Mapping[str, Mapping[str, str]]) -> str:
    """Return a digest of what each file has for a key; without one it cannot be read."""
    values = "\n".join(of_file.get(key, "") for of_file in lines.values())
    return hashlib.sha256(values.encode()).hexdigest()[:16]


def read_lines(path: Path) -> dict[str, str]:
    """Return the first column of a Kaldi-style file with what stands behind it.

    Raises:
        OptionError: There is none, or one twice.
    """
    try:
        with path.open(encoding="utf-8") as f:
            lines = list(f)
    except UnicodeDecodeError as e:
        raise OptionError(f"{path} is no text file of lines `key value`") from e
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
