"""Files of a pretrained model: a packed archive on disk, or a model-zoo tag."""

import fcntl
import hashlib
import logging
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from espnet_lenbias import espnet_compat
from espnet_lenbias.errors import OptionError, one_line
from espnet_lenbias.options.espnet_tools import Tool, owner_of
from espnet_lenbias.options.fast_yaml import NO_YAML
from espnet_lenbias.options.model_archive import (
    check_members,
    check_meta,
    check_yaml,
    files_within,
)
from espnet_lenbias.options.output_folder import NO_ROOM
from espnet_lenbias.options.train_config import why_no_file
from espnet_lenbias.options.unpacked_model import (
    LOCK,
    read_listing,
    remove_unpacked,
    unpack_members,
    write_listing,
)

# What reading an archive raises that is damaged, encrypted, or packed in another way.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    *NO_YAML,
)


# How the names end of archives that ESPnet's ``pack`` makes.
_PACKED = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz2", ".tar.bz2", ".txz", ".tar.xz")


def model_files(tag: str | Path) -> dict[str, str]:
    """Return the constructor arguments that hold a model's files.

    Args:
        tag: a ``.zip`` on disk as ESPnet's ``pack`` writes it, else a tag or an address
            that ESPnet's model zoo knows.

    Raises:
        FileNotFoundError: the name ends as those of archives, and no such file is there.
        OptionError: the file is not a packed ESPnet model, or cannot be unpacked; it is
            no name of a model, or the model zoo does not have it.
    """
    check_tag(tag)
    tag = str(tag)
    if is_archive(tag):
        return unpack_model(Path(tag))
    try:
        return espnet_compat.download_pretrained(tag)
    except Exception as e:  # of every kind: of the net, of the disk, of the zoo's own
        raise OptionError(
            f"model_tag: the model zoo gives no model {tag} "
            f"({type(e).__name__}: {one_line(e)}): give a tag that it lists, or a packed "
            "model on disk"
        ) from e


def check_owner(tag: Any, files: Mapping[str, str], tool: Tool) -> None:
    """Verify that a packed model is one of a tool's.

    Args:
        tag: As given.
        files: See :func:`model_files`.
        tool: What is to decode with it.

    Raises:
        OptionError: Says of which tool it is.
    """
    wanted = tool.model_options
    if all(key in files for key in wanted):
        return
    other = owner_of(files)
    if other is not None and other.key != tool.key:
        raise OptionError(
            f"model_tag: {tag} is a model of {other.name}, not of {tool.name}: decode "
            f"it with {other.name}"
        )
    missing = " and ".join(key for key in wanted if key not in files)
    raise OptionError(
        f"model_tag: {tag} is no model of {tool.name}: it holds no {missing}, but "
        f"{', '.join(files) or 'nothing'}"
    )


def check_tag(tag: Any) -> None:
    """Verify that this can be the name of a model: of a file, or of one in the zoo.

    Raises:
        FileNotFoundError: See :func:`model_files`.
        OptionError: Likewise.
    """
    what = "give the name of a packed model (.zip) on disk, or a tag of the model zoo"
    if not isinstance(tag, str | Path) or not str(tag).strip():
        raise OptionError(f"model_tag: {tag!r} is no name of a model: {what}")
    if os.path.isdir(tag):  # a Path raises for an address that is too long
        raise OptionError(
            f"model_tag: {tag} is a folder: {what}; where a model need not be packed (in "
            "Python, and in ESPnet's tools) it is named by its files, such as "
            "asr_train_config and asr_model_file"
        )
    if os.path.exists(tag) and not os.path.isfile(tag):
        raise OptionError(f"model_tag: {why_no_file(tag)}")
    if is_archive(str(tag)) or isinstance(tag, Path):
        check_archive(Path(tag))


def is_archive(tag: str) -> bool:
    """Whether the tag names a file on disk rather than a model of the zoo."""
    return os.path.isfile(tag) or (tag.endswith(_PACKED) and "://" not in tag)


def unpack_model(archive: Path) -> dict[str, str]:
    """Unpack a model once into the cache; return its constructor arguments (files).

    What is damaged there is unpacked anew.

    Raises:
        FileNotFoundError: there is no such file.
        OptionError: names the archive, or the cache, and what is wrong with it.
    """
    check_archive(archive)
    folder = _cache_folder() / f"{_sha256(archive)[:16]}{espnet_compat.model_variant()}"
    files, damaged = read_listing(folder)
    if files:  # before anything is written: the cache may be one that others keep
        return files
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / LOCK):  # jobs that start together unpack once
            files, damaged = read_listing(folder)
            if files:
                return files
            if damaged:
                logging.warning(
                    f"the cache {folder} is damaged ({damaged}): {archive} is unpacked "
                    "anew"
                )
            remove_unpacked(folder)
            return _unpack(archive, folder)
    except OSError as e:
        room = "make room there, or " if e.errno in NO_ROOM else ""
        remedy = f"remove {folder}, or " if damaged else room
        raise OptionError(
            f"model_tag: {archive} cannot be unpacked into the cache {folder} "
            f"({e.strerror}): {remedy}set XDG_CACHE_HOME to another folder"
        ) from e


def _unpack(archive: Path, folder: Path) -> dict[str, str]:
    """Unpack a model; return its files, within the folder."""
    try:
        names = check_members(archive, folder)
        meta = _meta(archive)
        check_meta(meta, archive)
        unpack_members(archive, folder, set(meta["yaml_files"].values()))
        files = files_within(meta, archive, folder)
    except OSError:  # of the folder, which is not the archive's fault
        raise
    except (*_DAMAGED, AssertionError) as e:
        named = str(e).startswith("model_tag: ")
        why = e if named else f"model_tag: {archive} cannot be unpacked: {one_line(e)}"
        raise OptionError(str(why)) from e
    for key, file in files.items():
        if key.endswith("_model_file"):
            espnet_compat.add_older_names(Path(file))
    write_listing(folder, files, names)  # last: what has none is not whole
    return files


def _meta(archive: Path) -> Any:
    """Return what ``pack`` has noted of the files: the first meta.yaml, as ESPnet."""
    with zipfile.ZipFile(archive) as packed:
        members = packed.infolist()
        member = next(m for m in members if Path(m.filename).name == "meta.yaml")
        return check_yaml(packed, member, archive)


def check_archive(archive: Path) -> None:
    """Verify that the file is a model packed by ESPnet; see :func:`model_files`."""
    if not os.path.isfile(archive):
        raise FileNotFoundError(f"model_tag: {why_no_file(archive)}")
    if tarfile.is_tarfile(archive):  # one can look like the last zip file within it
        raise OptionError(
            f"model_tag: {archive} is a tar archive, and packed models are read from .zip "
            "only: pack the model with --outpath NAME.zip, or unpack it with tar and give "
            "its files"
        )
    try:
        with zipfile.ZipFile(archive) as packed:
            names = packed.namelist()
    except _DAMAGED as e:
        raise OptionError(
            f"model_tag: {archive} is not a zip archive: {one_line(e)}"
        ) from e
    if not any(Path(name).name == "meta.yaml" for name in names):
        raise OptionError(
            f"model_tag: {archive} holds no meta.yaml, so it is not a model packed by "
            "ESPnet (python -m espnet2.bin.pack asr ... makes one)"
        )


def packed_options(archive: Path) -> set[str]:
    """Return which constructor arguments a packed model has files for.

    Of what is no packed model on disk there are none.
    """
    try:
        meta = _meta(archive)
        return {str(key) for part in ("files", "yaml_files") for key in meta[part]}
    except (*_DAMAGED, OSError, StopIteration):
        return set()


def _cache_folder() -> Path:
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as e:  # HOME is not set, and the system does not know the user
        raise OptionError(
            "model_tag: a packed model is unpacked into a cache, and there is no home "
            "folder for it: set XDG_CACHE_HOME to a folder that you can write"
        ) from e
    return Path(base).absolute() / "espnet_lenbias"


def _sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # no link is followed, which could lead to any file of the person's
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed
        yield
    finally:
        os.close(lock)
