"""What decides the results of a run, for a later run in its folder to compare with."""

import argparse
import ast
import hashlib
import os
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from espnet_lenbias.options.data_files import DATA, KEYED
from espnet_lenbias.options.train_config import (
    files_in,
    train_config,
    train_config_file,
)

# A file up to so many bytes, such as a config, is told from another one by
# what it holds; a larger one, a model, by its size and time of change.
_READ = 2**24

# A file as `described`; of several in one value the whole is no file.
_BY_CONTENT = "sha256"
_FILE = re.compile(
    rf"(?P<path>(?:(?! \(\d+ bytes, ).)*) "
    rf"\((?P<state>\d+ bytes, (?P<how>{_BY_CONTENT}|changed at) \S+)\)",
    re.DOTALL,
)

# What stands for the files that a run is told of by training configs alone.
_OF_TRAINING = "files of the training"

# Options that change where or how fast a run goes, not what it finds.
_NOT_RESULTS = {
    "batch_bins",
    "batch_size",
    "config",
    "formats",  # written from the results, whenever they are asked for
    "key_file",
    "log_level",
    "ngpu",
    "num_workers",
    "output_dir",
    "pieces",  # of segments
    "recordings",  # of them
    "segments",  # whose lines are compared one by one
}


def run_options(args: argparse.Namespace) -> dict[str, str]:
    """Return what decides the results of a run, for a later run to compare with.

    Files are described by more than their names, so that a model that was trained
    further under the same name is not taken for the old one. Of data files with a line
    for each utterance only name and type count: the lines are compared one by one, see
    :func:`espnet_lenbias.options.data_files.utterances`.
    """
    options = {
        key: described(value)
        for key, value in vars(args).items()
        if key not in _NOT_RESULTS
    }
    options[DATA] = described(
        [
            [name, kind] if kind in KEYED else [path, name, kind]
            for path, name, kind in getattr(args, DATA)
        ]
    )
    options[_OF_TRAINING] = described(_files_of_training(vars(args)) or None)
    for package in ("espnet", "espnet_lenbias"):
        options[f"{package} version"] = version(package)
    return options


def _files_of_training(options: Mapping[str, Any]) -> list[str]:
    """Return the files that decide results and that no option names.

    Those that training configs name, and the config itself where ESPnet finds it.
    """
    named: list[str] = []
    for key in options:
        letters = key.removesuffix("_train_config")
        if letters == key:
            continue
        config = train_config(options, letters)
        if config and options[key] is None:
            named.append(str(train_config_file(options, letters)))
        named += files_in(config).values()
    return sorted({path for path in named if os.path.isfile(path)})


def described(value: Any) -> str:
    """Return the value of an option as text; files by more than their names."""
    if isinstance(value, list | tuple):
        return ", ".join(described(item) for item in value)
    if isinstance(value, str) and os.path.isfile(value):
        return f"{value} ({_state(Path(value))})"
    return str(value)


def is_same(was: Any, now: Any) -> bool:
    """Tell whether two values, as :func:`described` has them, are those of one option.

    An option that is not there, as another tool or release lacks it, is one that is not
    set. A number is the same as `0` and as `0.0`. A file is the same by another path, too:
    one that has been read whole is known by its content, another one by where it lies.
    """
    was, now = (described(None) if value is None else value for value in (was, now))
    if was == now:
        return True
    if not (isinstance(was, str) and isinstance(now, str)):
        return False
    if value_of(was) == value_of(now):
        return True
    one, other = _FILE.fullmatch(was), _FILE.fullmatch(now)
    if one is None or other is None or one["state"] != other["state"]:
        return False
    paths = os.path.abspath(one["path"]), os.path.abspath(other["path"])
    return one["how"] == _BY_CONTENT or paths[0] == paths[1]


def value_of(text: str) -> Any:
    """Return the value that :func:`described` has made a text of; a text stays one."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _state(path: Path) -> str:
    """Return what tells a file from others, and from itself once it has changed."""
    stat = path.stat()
    if stat.st_size > _READ:
        return f"{stat.st_size} bytes, changed at {stat.st_mtime}"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{stat.st_size} bytes, {_BY_CONTENT} {digest[:16]}"
