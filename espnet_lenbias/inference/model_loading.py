"""Files of a model that cannot be loaded, named in one line."""

import logging
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np
import torch

from espnet_lenbias.errors import OptionError
from espnet_lenbias.inference.loaded_parameters import (
    CheckpointError,
    loading_checked,
    unwrapped,
)
from espnet_lenbias.options.train_config import (
    STATS,
    files_in,
    is_packed_model,
    letters_of,
    train_config,
    train_config_file,
)

logger = logging.getLogger(__name__)

# How the options end that name a checkpoint; others name an n-gram LM, say.
_CHECKPOINTS = ("_model_file", "lm_file")

# How an argument is refused that is not of the type that ESPnet has written at it.
_ARGUMENT = re.compile(r'argument "(\w+)" (\(.*)', re.DOTALL)


@contextmanager
def broken_files_named(options: Mapping[str, Any]) -> Iterator[None]:
    """Say which file it is where ESPnet cannot load a model.

    A checkpoint that would run code is not loaded, whatever the release of ESPnet: one
    runs it, another asks a person at a terminal whether to.

    Args:
        options: Those of an inference object, with the model's files among them.

    Raises:
        OptionError: A file is not there, is none that torch can load, or describes no
            model that ESPnet can build; a checkpoint is of another model than its config;
            there is no memory for it.
    """
    problem = checkpoints_problem(options)
    if problem:
        raise OptionError(problem)
    try:
        config = train_config(options, letters_of(options))
        with loading_checked(config, _uses_lm(options)):
            yield
    except OptionError:
        raise
    except Exception as e:  # of every kind: ESPnet verifies little
        raise OptionError(_problem(e, options)) from e


def _uses_lm(options: Mapping[str, Any]) -> bool:
    """Tell whether a language model is to be loaded that has a weight in a search."""
    weights = {"lm_file": "lm_weight", "src_lm_file": "asr_lm_weight"}
    return any(
        options.get(file) is not None and options.get(weight) != 0
        for file, weight in weights.items()
    )


def check_named(options: Mapping[str, Any], taken: Iterable[str]) -> None:
    """Verify that a model is named, and say so where it is named in part.

    Args:
        options: Those given.
        taken: Those that the inference object takes.

    Raises:
        OptionError: Says what to give.
    """
    letters = letters_of(dict.fromkeys(taken))
    config, model = f"{letters}_train_config", f"{letters}_model_file"
    if options.get(config) is None and options.get(model) is None:
        raise OptionError(
            f"no model is named: give {config} and {model}, or a packed model to "
            "from_pretrained()"
        )
    if options.get(model) is None:
        logger.warning(
            f"{model} is not given: the model of {config} {options[config]} has random "
            "parameters"
        )


def _problem(error: Exception, options: Mapping[str, Any]) -> str:
    """Return in one line what an error in loading comes from."""
    problem = _option_problem(error, options)
    if problem:
        return problem
    config, model, building = _files_of(error, options)
    if isinstance(error, CheckpointError):
        return f"{model.replace(' ', ': ', 1)} {error}"
    problem = checkpoints_problem(options) or _stats_problem(options)
    if problem:
        return problem
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        device = options.get("device") or "cpu"
        return f"device: {device} has no memory for the model {model}: choose another"
    if isinstance(error, RuntimeError) and "size mismatch" in str(error):
        first = next(
            line for line in str(error).splitlines() if "size mismatch" in line
        )
        return (
            f"{model}: not the checkpoint of the model in its config: {first.strip()} "
            "Name the config and the checkpoint of one training"
        )
    if isinstance(error, OSError):
        named = f" (named in {config.partition(' ')[2]}?)"
        if error.filename is None:
            return f"a file of the model cannot be read{named}: {error}"
        return f"a file of the model cannot be read{named}: {error.filename}: " + (
            error.strerror or type(error).__name__
        )
    what = "build" if building else "decode with"
    return f"{config}: ESPnet cannot {what} the model that it describes ({said(error)})"


def _option_problem(error: Exception, options: Mapping[str, Any]) -> str | None:
    """Return which option ESPnet does not take, if it is that."""
    refused = _ARGUMENT.match(str(error))
    is_type = type(error).__name__ == "TypeCheckError"  # of typeguard
    if is_type and refused and refused[1] in options:
        key, why = refused[1], " ".join(refused[2].split())
        return f"{key}: ESPnet does not take {options[key]!r} {why}"
    if isinstance(error, NotImplementedError) and "batch_size" in str(error):
        return f"batch_size: {said(error)}"
    return None


def said(error: BaseException) -> str:
    """Return the kind of an error and what it says, in one line."""
    return ": ".join(
        [type(error).__name__, *filter(None, [" ".join(str(error).split())])]
    )


def _files_of(error: Exception, options: Mapping[str, Any]) -> tuple[str, str, bool]:
    """Return config and checkpoint of the model that an error comes from.

    ESPnet builds the models one after the other, each with a function of its own, whose
    arguments tell which it was.

    Returns:
        Each with its option before it; whether the model was being built.
    """
    letters = letters_of(options)
    keys = (f"{letters}_train_config", f"{letters}_model_file")
    building = False
    files: list[Any] = [train_config_file(options, letters), options.get(keys[1])]
    for frame, _ in walk_tb(error.__traceback__):
        if frame.f_code.co_name == "build_model_from_file":
            there = [frame.f_locals.get(name) for name in ("config_file", "model_file")]
            files = [new or old for new, old in zip(there, files, strict=True)]
            building = True
    for key, value in options.items():
        if key.endswith("lm_train_config") and str(value) == str(files[0]):
            keys = (key, key.replace("_train_config", "_file"))
    return f"{keys[0]} {files[0]}", f"{keys[1]} {files[1]}", building


def checkpoints_problem(options: Mapping[str, Any]) -> str | None:
    """Return which of a model's checkpoints torch does not load, and why.

    Nothing that they say is run.
    """
    for key, value in options.items():
        if key.endswith(_CHECKPOINTS) and isinstance(value, str | Path):
            problem = _checkpoint_problem(Path(value))
            if problem:
                return f"{key}: {value} {problem}"
    return None


def _checkpoint_problem(path: Path) -> str | None:
    try:
        # Mapped, so that the parameters of a large model are not read for this.
        mmap = zipfile.is_zipfile(path)
        if mmap:
            with zipfile.ZipFile(path) as parts:  # torch does not look at checksums
                damaged = parts.testzip()
                is_state = _is_training_state(parts)
            if damaged:
                return f"is damaged: the checksum of {damaged} in it is wrong"
            if is_state:
                return (
                    "is the state that a training goes on from, with the parameters "
                    "below `model`: give what the training has saved of the model, such "
                    "as valid.acc.ave.pth"
                )
        saved = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except (FileNotFoundError, PermissionError, IsADirectoryError) as e:
        return f"cannot be read: {e.strerror}"
    except Exception as e:
        if is_packed_model(path):
            return "is a packed model: give it as model_tag, or to from_pretrained()"
        if zipfile.is_zipfile(path):
            return (
                "holds more than parameters, and torch does not load what could run "
                "code: save the state_dict() of the model"
            )
        # without what torch advises next, which is to run what the file says
        why = str(e).strip().partition("\n")[0].partition(". ")[0]
        return f"is no checkpoint of torch, or a damaged one: {why}"
    saved = unwrapped(saved)
    if not isinstance(saved, Mapping) or not all(isinstance(k, str) for k in saved):
        return (
            f"holds no parameters by name, but an object of type {type(saved).__name__}: "
            "give the state_dict() of a model"
        )
    below = [key for key, value in saved.items() if _holds_tensors(value)]
    if below and not _holds_tensors(saved):
        return (
            f"holds no parameters itself, but below `{below[0]}`: give the state_dict() "
            "of a model"
        )
    return None


def _is_training_state(parts: zipfile.ZipFile) -> bool:
    """Tell whether a checkpoint is ESPnet's ``checkpoint.pth``, without loading it.

    Older releases have put into it what torch does not load.
    """
    pickled = [name for name in parts.namelist() if Path(name).name == "data.pkl"]
    content = b"".join(map(parts.read, pickled))
    return b"reporter" in content and b"optimizers" in content


def _holds_tensors(value: Any) -> bool:
    """Tell whether there are tensors by name."""
    return isinstance(value, Mapping) and any(
        isinstance(part, torch.Tensor) for part in value.values()
    )


def _stats_problem(options: Mapping[str, Any]) -> str | None:
    """Return which training config names statistics of features that are none."""
    tool = letters_of(options)
    for name, file in files_in(train_config(options, tool)).items():
        if name.endswith(STATS) and os.path.isfile(file) and not _is_stats(file):
            return (
                f"{tool}_train_config {train_config_file(options, tool)}: {name}: "
                f"{file} is no numpy file of sums of features, or a damaged "
                "one: copy it anew from where the model was trained"
            )
    return None


def _is_stats(file: str) -> bool:
    """Tell whether a file has what ESPnet normalises features by."""
    try:
        stats = np.load(file)
        if isinstance(stats, np.ndarray):  # as Kaldi's
            return stats.ndim > 1 and len(stats) > 1
        with stats:
            return all(stats[key] is not None for key in ("count", "sum", "sum_square"))
    except Exception:  # of many kinds, for all that is no such file
        return False
