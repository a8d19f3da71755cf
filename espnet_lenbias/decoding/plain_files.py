"""Files in a folder that others may write into too.

No link is followed below the folder: who can write there could have one of them lead to
any file of the person that runs the tool. The folder itself may be a link.
"""

import hashlib
import os
import secrets
import stat
import string
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Literal, TextIO
from urllib.parse import quote

# Names of drafts: what they begin with, and how many random bytes follow in hex.
_DRAFT, _RANDOM = ".draft-", 8

LONGEST_NAME = 255  # bytes of the name of a file

# A pipe in place of a file would keep the tool waiting for its other end.
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK

_FLAGS = {
    "r": os.O_RDONLY,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}


def open_plain(path: Path, mode: Literal["r", "a", "x"]) -> TextIO:
    """Open a text file, which must be a file: no link, no pipe.

    Args:
        path: The file.
        mode: As ``open`` has it; what is read need not be UTF-8.

    Raises:
        OSError: Names the file.
    """
    number = open_number(path, _FLAGS[mode])
    errors = "replace" if mode == "r" else "strict"
    return os.fdopen(number, mode, encoding="utf-8", errors=errors)


def open_number(path: Path, flags: int) -> int:
    """Open a file as ``os.open`` does, which must be one; see :func:`open_plain`."""
    try:
        number = os.open(path, flags | _PLAIN, 0o666)
    except OSError:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise _not_plain(path) from None
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise _not_plain(path)
    return number


def free_name(path: Path) -> Path:
    """Return a name beside a file that nothing has yet: with .1 behind it, or .2, ..."""
    others = (path.with_name(f"{path.name}.{n}") for n in count(1))
    return next(other for other in others if not os.path.lexists(other))


def replace_file(folder: Path, name: str, lines: Iterable[str]) -> None:
    """Write a text file, whole or not at all.

    Args:
        folder: Holds what is written until it is whole.
        name: Of the file, below the folder.
        lines: Its content.

    Raises:
        OSError: Names the file.
    """
    with whole_file(folder, name) as draft, open_plain(draft, "x") as f:
        f.writelines(lines)


@contextmanager
def whole_file(folder: Path, name: str) -> Iterator[Path]:
    """Give a file to write, which gets its name once it is whole.

    Args:
        folder: Holds the file until then.
        name: Of the file, below the folder.

    Yields:
        The draft, which is not there yet.

    Raises:
        OSError: Names the file.
    """
    path = folder / name
    folders = list(takewhile(lambda part: part != folder, path.parents))
    for part in (path, *folders):
        if part.is_symlink():
            raise _not_plain(part)
    if path.is_dir():
        raise _not_plain(path)
    for part in folders:
        if part.is_file():
            raise OSError(f"{part} is a file, where a folder belongs: remove it")
    draft = folder / f"{_DRAFT}{secrets.token_hex(_RANDOM)}"
    try:
        with naming(path, instead_of=draft):
            yield draft
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def file_name(key: str, ending: str = "") -> str:
    """Return a key as the name of a file: `/` and a first `.` as in addresses.

    So are letters that no file name can have where the locale is that of another
    language. Of a key that is longer than names of files may be, the beginning, and a
    number that tells it from others.

    Args:
        key: Of an utterance, or a recording.
        ending: What will follow, which leaves so much less room.
    """
    name = key.replace("%", "%25").replace("/", "%2F")
    name = f"%2E{name[1:]}" if name.startswith(".") else name
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        name = quote(name, safe=string.printable)
    encoded = name.encode(errors="surrogateescape")
    longest = LONGEST_NAME - len(ending)
    if len(encoded) <= longest:
        return name
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    beginning = encoded[: longest - len(digest) - 1]
    return f"{beginning.decode(errors='ignore')}-{digest}"


def is_own_folder(path: Path) -> bool:
    """Tell whether this is a folder, and no link to one; any name may be asked for."""
    return os.path.isdir(path) and not os.path.islink(path)


def is_own(path: Path) -> bool:
    """Tell whether this is a file, and no link to one."""
    return os.path.isfile(path) and not os.path.islink(path)


def remove(paths: Iterable[Path]) -> None:
    """Remove files, and their folders where nothing else is in them."""
    for path in list(paths):
        path.unlink()
        with suppress(OSError):
            path.parent.rmdir()


def remove_drafts(folder: Path) -> None:
    """Remove what runs that were killed have left in a folder."""
    for draft in folder.glob(_DRAFT + "[0-9a-f]" * 2 * _RANDOM):
        with suppress(OSError):
            draft.unlink()  # a link goes, not what it leads to


@contextmanager
def naming(path: Path, instead_of: Path | None = None) -> Iterator[None]:
    """Have an error of writing, such as a full disk, name the file.

    Args:
        path: The file, as the user knows it.
        instead_of: What the error may name in its place.
    """
    try:
        yield
    except OSError as e:
        if e.errno is None or (
            e.filename is not None and str(e.filename) != str(instead_of)
        ):
            raise
        raise OSError(e.errno, e.strerror, str(path)) from e


def _not_plain(path: Path) -> OSError:
    what = "a link" if path.is_symlink() else "no file"
    return OSError(
        f"{path} is {what}: nothing is read or written through it; remove it"
    )
