"""Which files of formats a run has written: these, and no others, go in the next one.

A person's own files, such as edited subtitles, may lie beside them, or in their place.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from espnet_lenbias.decoding.join_pieces import RECORDINGS
from espnet_lenbias.decoding.plain_files import (
    is_own,
    is_own_folder,
    open_plain,
    remove,
    replace_file,
)

LIST = "decoding.formats"  # below the output folder: a line for each file

# What the files can be called: nothing else is removed, whatever the list says.
_FORMAT_FILE = re.compile(
    rf"({RECORDINGS}/)?[1-9]\d*best_recog/"
    r"(text(_spk[1-9])?\.(ctm|trn|jsonl)|srt(_spk[1-9])?/[^/]+\.srt"
    r"|vtt(_spk[1-9])?/[^/]+\.vtt)",
    re.ASCII,
)


def note_files(folder: Path, names: Iterable[str]) -> None:
    """Write which files of formats there are, by their names below the output folder.

    Raises:
        OSError: Names the list.
    """
    replace_file(folder, LIST, (f"{name}\n" for name in sorted(names)))


def noted_files(folder: Path) -> set[str]:
    """Return the files of formats that runs into a folder have written; they may be gone.

    Raises:
        OSError: The list cannot be read.
    """
    try:
        with open_plain(folder / LIST, "r") as f:
            names = f.read().split("\n")
    except FileNotFoundError:
        return set()
    return {name for name in names if _FORMAT_FILE.fullmatch(name)}


def set_aside(folder: Path, names: Iterable[str]) -> None:
    """Give a person's own files other names, which stand where files will be written.

    Args:
        folder: The output folder.
        names: Of the files that will be, below the folder; no run has written them yet.

    Raises:
        OSError: Names a file that cannot be renamed.
    """
    for path in _own_files(folder, names):
        others = (path.with_name(f"{path.name}.{n}") for n in count(1))
        other = next(o for o in others if not os.path.lexists(o))
        path.rename(other)
        logging.warning(f"{path} was there, of no run: it is {other} now")


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files of formats; no link is followed, and none is removed.

    Args:
        folder: The output folder.
        names: Of the files, below the folder.

    Raises:
        OSError: Names a file that cannot be removed.
    """
    remove(_own_files(folder, names))


def _own_files(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        path = folder / name
        between = [folder / part for part in Path(name).parents][:-1]
        if is_own(path) and all(map(is_own_folder, between)):
            yield path
