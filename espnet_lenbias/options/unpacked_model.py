"""A packed model's files on disk: unpacked, and known again by what they hold.

What lies in the cache for years may be cut by a full disk, or edited by hand. So a
listing beside it has the size and the checksum of every file.
"""

import hashlib
import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from espnet_lenbias.options.fast_yaml import DUMPER, LOADER

# In the folder of an unpacked model: its listing, written last.
LISTING = ".files.json"
# Beside it: what those hold who unpack it. It stays when the rest is removed.
LOCK = ".lock"


def unpack_members(archive: Path, folder: Path, yaml_files: Collection[str]) -> None:
    """Unpack an archive, and have its configs name the files where they are now.

    As ESPnet's ``unpack`` does, which looks through a config once for each member.

    Args:
        archive: Its members have been verified.
        folder: Where it is unpacked.
        yaml_files: Those of its members that are configs.

    Raises:
        OSError: Of the folder.
        zipfile.BadZipFile: A member is damaged.
    """
    with zipfile.ZipFile(archive) as packed:
        places = {PurePosixPath(name): folder / name for name in packed.namelist()}
        for member in packed.infolist():
            if member.filename in yaml_files:
                config = yaml.load(packed.read(member), Loader=LOADER)
                path = folder / member.filename
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("w", encoding="utf-8") as f:
                    yaml.dump(_placed(config, places), f, Dumper=DUMPER)
            else:
                packed.extract(member, folder)


def _placed(value: Any, places: Mapping[PurePosixPath, Path]) -> Any:
    """Return a value of a config with the names of members made their places."""
    if isinstance(value, dict):
        return {key: _placed(part, places) for key, part in value.items()}
    if isinstance(value, list):
        return [_placed(part, places) for part in value]
    if isinstance(value, str):
        return str(places.get(PurePosixPath(value), value))
    return value


def write_listing(folder: Path, files: Mapping[str, str], names: list[str]) -> None:
    """Note what an unpacked model holds.

    Args:
        folder: Of the model.
        files: Constructor argument -> file.
        names: Of all files, below the folder.
    """
    listing = {
        "files": files,
        "checksums": {name: _checksum(folder / name) for name in names},
    }
    draft = folder / f"{LISTING}-{secrets.token_hex(8)}"
    draft.write_text(json.dumps(listing), "utf-8")
    os.replace(draft, folder / LISTING)  # whole or not at all


def read_listing(folder: Path) -> tuple[dict[str, str], str]:
    """Return the files of a model that is unpacked there, and what is wrong with it.

    Returns:
        Constructor argument -> file, none if there is no model or a damaged one; and
        the name of a damaged file, "" if none is known to be.
    """
    try:
        if not (folder / LISTING).is_file():  # a pipe would be waited for
            return {}, ""
        listing = json.loads((folder / LISTING).read_text("utf-8"))
        files, checksums = listing["files"], listing["checksums"]
        places = {str(folder / name): name for name in checksums}
        if not files or not set(files.values()) <= places.keys():
            return {}, ""
    except (
        OSError,
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
        RecursionError,
    ):
        return {}, ""  # there is none yet, or that of an older release
    for path, name in places.items():
        try:
            is_file = Path(path).is_file()
            if not is_file or _checksum(Path(path)) != checksums[name]:
                return {}, name
        except OSError:
            return {}, name
    return files, ""


def remove_unpacked(folder: Path) -> None:
    """Remove what is left of an unpacked model, its listing first."""
    listing = folder / LISTING
    if listing.is_symlink() or not listing.is_dir():
        listing.unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _checksum(path: Path) -> str:
    """Return what tells a file from one that is damaged, in a second for 1 GB."""
    with path.open("rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest()
        return f"{os.fstat(f.fileno()).st_size} bytes, sha256 {digest}"
