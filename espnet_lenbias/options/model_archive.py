"""What a packed model's archive may hold: verified before anything of it is unpacked.

An archive comes from anywhere. Nothing of it may be written outside of its folder, fill
the disk, or keep the reader busy for ever.
"""

import shutil
import stat
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from espnet_lenbias.errors import OptionError, one_line
from espnet_lenbias.options.fast_yaml import LOADER, NO_YAML, load_yaml
from espnet_lenbias.options.unpacked_model import LISTING, LOCK

# Nothing that is trained packs so well: weights hardly at all, text to a tenth.
_LARGEST_RATIO = 200
# Below so many bytes a member is harmless, however well it packs.
_HARMLESS = 2**24
# All members together, unpacked; the disk's free space is a limit too.
_MOST_BYTES = 2**36
# A model holds some ten files.
_MOST_MEMBERS = 10**5
# A yaml file, all together, and the values in one when its aliases are written out.
_MOST_YAML_BYTES = 2**23
_MOST_YAML_BYTES_TOGETHER = 2**25
_MOST_YAML_VALUES = 10**7


def check_members(archive: Path, folder: Path) -> list[str]:
    """Verify the members of a zip archive, by its table of contents and its yaml files.

    Args:
        archive: A zip file.
        folder: Where it is to be unpacked, below which there is room for all of it.

    Returns:
        The names of the files in it.

    Raises:
        OptionError: Names the member, and what is wrong with it.
    """
    with zipfile.ZipFile(archive) as packed:
        members = packed.infolist()
        if len(members) > _MOST_MEMBERS:
            raise OptionError(
                f"model_tag: {archive} holds {len(members)} files, which no model does"
            )
        for member in members:
            problem = _problem(member)
            if problem:
                raise OptionError(
                    f"model_tag: {archive}: {member.filename!r} {problem}"
                )
        total = sum(member.file_size for member in members)
        room = min(_MOST_BYTES, shutil.disk_usage(folder).free)
        if total > room:
            raise OptionError(
                f"model_tag: {archive} unpacks to {total} bytes, and there is room for "
                f"{room} in {folder}"
            )
        names = list(dict.fromkeys(m.filename for m in members if not m.is_dir()))
        _check_folders(names, archive)
        yamls = [m for m in members if _is_yaml(PurePosixPath(m.filename))]
        together = sum(member.file_size for member in yamls)
        if together > _MOST_YAML_BYTES_TOGETHER:
            raise OptionError(
                f"model_tag: {archive} holds yaml files of {together} bytes"
            )
        for member in yamls:
            check_yaml(packed, member, archive)
        return names


def _is_yaml(path: PurePosixPath) -> bool:
    """Tell whether a member is a yaml file, and not what macOS notes about one."""
    return path.suffix in (".yaml", ".yml") and not path.name.startswith("._")


def _problem(member: zipfile.ZipInfo) -> str:
    """Return what is wrong with a member by its entry in the table; "" if nothing."""
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        return "would be unpacked outside of its folder"
    if path.name == LOCK or path.name.startswith(LISTING):
        return "has a name that the cache of unpacked models keeps for itself"
    mode = member.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device, not a file"
    if member.file_size > max(_HARMLESS, _LARGEST_RATIO * member.compress_size):
        return (
            f"unpacks from {member.compress_size} to {member.file_size} bytes, which "
            "no model does"
        )
    return ""


def _check_folders(names: Sequence[str], archive: Path) -> None:
    """Verify that no file is what another one has for a folder."""
    files = set(map(PurePosixPath, names))
    for path in files:
        for parent in path.parents:
            if parent in files:
                raise OptionError(
                    f"model_tag: {archive}: {str(parent)!r} is a file, and the folder "
                    f"of {str(path)!r}"
                )


def check_yaml(packed: zipfile.ZipFile, member: zipfile.ZipInfo, archive: Path) -> Any:
    """Verify that a yaml file can be read, and its aliases written out; return it.

    Args:
        packed: The archive, opened.
        member: The yaml file.
        archive: What the archive is called.

    Raises:
        OptionError: Names the member, and what is wrong with it.
    """
    where = f"model_tag: {archive}: {member.filename!r}"
    if member.file_size > _MOST_YAML_BYTES:
        raise OptionError(f"{where} is a yaml file of {member.file_size} bytes")
    try:
        text = packed.read(member)
        n_values = expanded_size(yaml.compose(text, Loader=LOADER))
        value = load_yaml(text) if n_values <= _MOST_YAML_VALUES else None
    except NO_YAML as e:
        raise OptionError(
            f"{where} is no yaml file that can be read: {one_line(e)}"
        ) from e
    if n_values > _MOST_YAML_VALUES:
        raise OptionError(
            f"{where} holds {n_values} values, its aliases written out: that is no "
            "model's config"
        )
    return value


def expanded_size(node: yaml.Node | None) -> int:
    """Return how many values a yaml node holds when its aliases are written out."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 0  # an alias within what it names counts once
            children: list[yaml.Node] = []
            if isinstance(node, yaml.MappingNode):
                children = [part for pair in node.value for part in pair]
            elif isinstance(node, yaml.SequenceNode):
                children = node.value
            sizes[id(node)] = 1 + sum(map(size, children))
        return sizes[id(node)]

    return 0 if node is None else size(node)


def check_meta(meta: Any, archive: Path) -> None:
    """Verify the content of ``meta.yaml``.

    Raises:
        OptionError: It does not name the files of a model.
    """
    where = f"model_tag: {archive}: its meta.yaml"
    if not isinstance(meta, dict):
        raise OptionError(f"{where} holds no `name: value` lines")
    for part in ("yaml_files", "files"):
        named = meta.get(part)
        if not isinstance(named, dict):
            what = "is missing" if part not in meta else f"is {named!r}"
            raise OptionError(
                f"{where} names no files: {part}, a mapping of options to members of "
                f"the archive, {what}"
            )
        for key, value in named.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise OptionError(
                    f"{where}: {part}: {key!r}: {value!r} is no option and the name of "
                    "a member of the archive"
                )


def files_within(
    meta: Mapping[str, Any], archive: Path, folder: Path
) -> dict[str, str]:
    """Return the files that ``meta.yaml`` names, each within the folder.

    ESPnet's ``pack`` notes the absolute path of what was outside of its working folder,
    and the archive holds it under that path without the leading slash.

    Args:
        meta: The content of ``meta.yaml``, see :func:`check_meta`.
        archive: The archive.
        folder: Where it was unpacked.

    Returns:
        Constructor argument -> file.

    Raises:
        OptionError: The archive does not hold one of them.
    """
    named = {**meta["yaml_files"], **meta["files"]}
    with zipfile.ZipFile(archive) as packed:
        members = set(packed.namelist())
    files = {}
    for key, value in named.items():
        member = value.lstrip("/")
        if member not in members:
            raise OptionError(
                f"model_tag: {archive}: its meta.yaml names {value!r} as {key}, which "
                "the archive does not hold"
            )
        files[key] = str(folder / member)
    return files
