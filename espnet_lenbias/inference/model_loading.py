"""Files of a model that cannot be loaded, named in one line."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from espnet2.text.sentencepiece_tokenizer import SentencepiecesTokenizer
from sentencepiece import SentencePieceProcessor

from espnet_lenbias.errors import OptionError
from espnet_lenbias.inference.ctc_checks import train_config

# Options of ESPnet's that hold another kind of file: an n-gram LM.
_NO_CHECKPOINTS = ("ngram_file",)


@contextmanager
def broken_files_named(options: Mapping[str, Any]) -> Iterator[None]:
    """Say which file it is where ESPnet cannot load a model.

    A checkpoint that would run code is not loaded, whatever the release of ESPnet: one
    runs it, another asks a person at a terminal whether to.

    Args:
        options: Those of an inference object, with the model's files among them.

    Raises:
        OptionError: A file is not there, or is none that torch can load.
    """
    problem = checkpoints_problem(options)
    if problem:
        raise OptionError(problem)
    try:
        yield
    except OptionError:
        raise
    except Exception as e:
        problem = _problem(e, options)
        if problem is None:
            raise
        raise OptionError(problem) from e


def check_bpe_model(inference: Any) -> None:
    """Verify the model of word pieces, which ESPnet reads with the first text.

    Args:
        inference: The inference object, its models loaded.

    Raises:
        OptionError: Names the file.
    """
    tokenizer = getattr(inference, "tokenizer", None)
    if isinstance(tokenizer, SentencepiecesTokenizer):
        try:
            SentencePieceProcessor().load(tokenizer.model)
        except (OSError, RuntimeError) as e:
            raise OptionError(
                f"bpemodel: {tokenizer.model} is not there, or is no model of "
                f"sentencepiece: {' '.join(str(e).split())}"
            ) from e


def _problem(error: Exception, options: Mapping[str, Any]) -> str | None:
    """Return which file an error in loading comes from, or None: from no file."""
    problem = checkpoints_problem(options) or _stats_problem(options)
    if problem:
        return problem
    if isinstance(error, RuntimeError) and "size mismatch" in str(error):
        files = ", ".join(
            f"{key} {value}"
            for key, value in options.items()
            if key.endswith(("_model_file", "lm_file")) and value is not None
        )
        first = next(
            line for line in str(error).splitlines() if "size mismatch" in line
        )
        return (
            f"{files}: not the checkpoint of the model in its config: {first.strip()} "
            "Name the config and the checkpoint of one training"
        )
    if isinstance(error, OSError):
        configs = [str(options[key]) for key in options if key.endswith("train_config")]
        named = f" (named in {configs[0]}?)" if configs else ""
        if error.filename is None:
            return f"a file of the model cannot be read{named}: {error}"
        return f"a file of the model cannot be read{named}: {error.filename}: " + (
            error.strerror or type(error).__name__
        )
    return None


def checkpoints_problem(options: Mapping[str, Any]) -> str | None:
    """Return which of a model's checkpoints torch does not load, and why.

    Nothing that they say is run.
    """
    for key, value in options.items():
        if key in _NO_CHECKPOINTS or not isinstance(value, str | Path):
            continue
        if key.endswith("_file"):
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
            if damaged:
                return f"is damaged: the checksum of {damaged} in it is wrong"
        torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except (FileNotFoundError, PermissionError) as e:
        return f"cannot be read: {e.strerror}"
    except Exception as e:
        if zipfile.is_zipfile(path):
            return (
                "holds more than parameters, and torch does not load what could run "
                "code: save the state_dict() of the model"
            )
        why = str(e).strip().partition("\n")[0]
        return f"is no checkpoint of torch, or a damaged one: {why}"
    return None


def _stats_problem(options: Mapping[str, Any]) -> str | None:
    """Return which training config names statistics of features that are none."""
    ends = ("_train_config", "_model_file")
    tools = [key.removesuffix(end) for key in options for end in ends if end in key]
    for tool in dict.fromkeys(tools):
        for section, conf in train_config(options, tool).items():
            file = conf.get("stats_file") if isinstance(conf, Mapping) else None
            if isinstance(file, str) and Path(file).is_file() and not _is_stats(file):
                given = options.get(f"{tool}_train_config")
                config = given or f"of {options[f'{tool}_model_file']}"
                return (
                    f"{tool}_train_config {config}: {section}: stats_file: {file} is no "
                    "numpy file of sums of features, or a damaged one: copy it anew from "
                    "where the model was trained"
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
