"""Which files a run has made of its results: these, and no others, go in the next one.

A person's own files, such as edited subtitles, may lie beside them, or in their place:
those are never lost.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from espnet_lenbias.decoding.join_pieces import RECORDINGS
from espnet_lenbias.decoding.plain_files import (
    free_name,
    is_own,
    is_own_folder,
    open_plain,
    remove,
    replace_file,
)

# Below the output folder: a line for each file, `name`, a tab, and its checksum.
LIST = "decoding.formats"

# What the files can be called: nothing else is removed, whatever the list says.
_FORMAT_FILE = re.compile(
    rf"({RECORDINGS}/)?[1-9]\d*best_recog/"
    r"(text(_spk[1-9])?\.(ctm|trn|jsonl)|srt(_spk[1-9])?/[^/]+\.srt"
    r"|vtt(_spk[1-9])?/[^/]+\.vtt)",
    re.ASCII,
)


def renew_files(
    folder: Path,
    files: Mapping[str, Iterable[str]],
    can_be: re.Pattern[str] = _FORMAT_FILE,
) -> None:
    """Write files; what else earlier runs have written here goes.

    Args:
        folder: The output folder.
        files: Name below the folder -> lines, which are made when they are written.
        can_be: What the names are: nothing else is removed, whatever the list says.

    Raises:
        OSError: Names a file that cannot be read or written.
    """
    before = noted_files(folder, can_be)
    if not (before or files):
        return
    set_aside(folder, files.keys() | before.keys(), before)
    # before the files: a run that is killed among them has written some
    note_files(folder, before.keys() | files.keys(), written=False)
    for name, lines in files.items():
        replace_file(folder, name, lines)
    remove_files(folder, before.keys() - files.keys())
    note_files(folder, files.keys(), written=True)


def note_files(folder: Path, names: Iterable[str], written: bool) -> None:
    """Write which files of formats there are, by their names below the output folder.

    Args:
        folder: The output folder.
        names: Of the files.
        written: Whether they are as this run leaves them; else they have no checksum.

    Raises:
        OSError: Names the list, or a file that cannot be read.
    """
    sums = dict.fromkeys(sorted(names), "")
    if written:
        sums |= {name: _checksum(path) for name, path in _own_files(folder, sums)}
    replace_file(folder, LIST, (f"{name}\t{of}\n" for name, of in sums.items()))


def noted_files(folder: Path, can_be: re.Pattern[str] = _FORMAT_FILE) -> dict[str, str]:
    """Return the files that runs into a folder have written; they may be gone.

    Args:
        folder: The output folder.
        can_be: See :func:`renew_files`.

    Returns:
        Name below the folder -> checksum; "" where it is not known.

    Raises:
        OSError: The list cannot be read.
    """
    try:
        with open_plain(folder / LIST, "r") as f:
            lines = [line.partition("\t") for line in f.read().split("\n")]
    except FileNotFoundError:
        return {}
    return {name: of for name, _, of in lines if can_be.fullmatch(name)}


def set_aside(folder: Path, names: Iterable[str], noted: Mapping[str, str]) -> None:
    """Give a person's own files, and those that a person has changed, other names.

    Args:
        folder: The output folder.
        names: Of files that will be written or removed, below the folder.
        noted: See :func:`noted_files`.

    Raises:
        OSError: Names a file that cannot be read or renamed.
    """
    for name, path in _own_files(folder, names):
        if name in noted and noted[name] in ("", _checksum(path)):
            continue
        other = free_name(path)
        path.rename(other)
        logging.warning(f"{path} is not as a run has written it: it is {other} now")


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files of formats; no link is followed, and none is removed.

    Args:
        folder: The output folder.
        names: Of the files, below the folder.

    Raises:
        OSError: Names a file that cannot be removed.
    """
    remove(path for _, path in _own_files(folder, names))


def _checksum(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()[:16]


def _own_files(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files that are there, of these names, with them; no links."""
    for name in names:
        path = folder / name
        between = [folder / part for part in Path(name).parents][:-1]
        if is_own(path) and all(map(is_own_folder, between)):
            yield name, path
