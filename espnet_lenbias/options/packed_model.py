"""Files of a pretrained model: a packed archive on disk, or a model-zoo tag."""

import fcntl
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from espnet_lenbias import espnet_compat


def model_files(tag: str) -> dict[str, str]:
    """Return the constructor arguments that hold a model's files.

    Args:
        tag: a ``.zip`` on disk as ESPnet's ``pack`` writes it, else a tag or an address
            that ESPnet's model zoo knows.

    Raises:
        FileNotFoundError: the name ends in ``.zip``, and no such file is there.
        ValueError: the file is not a packed ESPnet model.
    """
    if is_archive(tag):
        return unpack_model(Path(tag))
    return espnet_compat.download_pretrained(tag)


def is_archive(tag: str) -> bool:
    """Whether the tag names a file on disk rather than a model of the zoo."""
    return Path(tag).is_file() or (tag.endswith(".zip") and "://" not in tag)


def unpack_model(archive: Path) -> dict[str, str]:
    """Unpack a model once into the cache; return its constructor arguments (files)."""
    check_archive(archive)
    folder = _cache_folder() / f"{_sha256(archive)[:16]}{espnet_compat.model_variant()}"
    folder.mkdir(parents=True, exist_ok=True)
    listing = folder / ".files.json"  # written last
    with _locked(folder / ".lock"):  # jobs that start together unpack once
        files = json.loads(listing.read_text("utf-8")) if listing.exists() else {}
        if not files or not all(map(os.path.exists, files.values())):
            # ESPnet's own cache misses: it looks for the files a folder too high.
            files = espnet_compat.unpack(archive, folder, use_cache=False)
            for key, file in files.items():
                if key.endswith("_model_file"):
                    espnet_compat.add_older_names(Path(file))
            listing.write_text(json.dumps(files), "utf-8")
        return files


def check_archive(archive: Path) -> None:
    """Verify that the file is a model packed by ESPnet; see :func:`model_files`."""
    if not archive.is_file():
        raise FileNotFoundError(f"model_tag: there is no file {archive}")
    if not zipfile.is_zipfile(archive):
        raise ValueError(f"model_tag: {archive} is not a zip archive")
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
    if not any(Path(name).name == "meta.yaml" for name in names):
        raise ValueError(
            f"model_tag: {archive} holds no meta.yaml, so it is not a model packed by "
            "ESPnet (python -m espnet2.bin.pack asr ... makes one)"
        )


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "espnet_lenbias"


def _sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)  # released when the file is closed
        yield
