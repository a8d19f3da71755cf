"""Utterances of a data set, read so that a broken one does not stop the others."""

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from espnet_lenbias.espnet_compat import ESPnetDataset
from espnet_lenbias.options.audio_files import audio_rate, check_rate


@dataclass(frozen=True)
class Unreadable:
    """Stands for the data of an utterance that could not be read."""

    reason: str


# One batch as it is read: key and data of each utterance.
Batch = list[tuple[str, dict[str, np.ndarray] | Unreadable]]


class Utterances(torch.utils.data.Dataset[Any]):
    """ESPnet's data set, read by key.

    Args:
        dataset: Maps a key to its preprocessed data; see ESPnet's ``ESPnetDataset``.

    """

    def __init__(self, dataset: ESPnetDataset):
        self.dataset = dataset

    def __getitem__(self, key: str) -> tuple[str, dict[str, np.ndarray] | Unreadable]:
        try:
            return key, self.dataset[key][1]
        except KeyError:
            files = [path for path, _ in self.dataset.debug_info.values()]
            return key, Unreadable(f"is not in all of {', '.join(files)}")
        except Exception as e:  # whatever is wrong with this file, others may be sound
            return key, Unreadable(_reason_of_file(e, _audio_files(self.dataset, key)))


def _audio_files(dataset: ESPnetDataset, key: str) -> list[str]:
    """Return the audio files that a wav.scp has for an utterance."""
    readers = [
        getattr(loader, "loader", None) for loader in dataset.loader_dict.values()
    ]
    named = [getattr(reader, "data", {}).get(key, []) for reader in readers]
    return [file for n in named for file in ([n] if isinstance(n, str) else n)]


def _reason_of_file(error: Exception, files: Sequence[str]) -> str:
    """Return why an utterance could not be read, with its file if it has one."""
    for file in files:
        if not Path(file).exists():
            return f"there is no file {file}"
    why = reason(error)
    return why if not files or files[0] in why else f"{files[0]}: {why}"


def build_dataset(
    data_path_and_name_and_type: Sequence[tuple[str, str, str]],
    task: Any,
    train_args: Any,
    dtype: str,
    allow_variable_data_keys: bool,
) -> ESPnetDataset:
    """Build ESPnet's data set with the preprocessing of a model of that task."""
    dataset = ESPnetDataset(
        data_path_and_name_and_type,
        float_dtype=dtype,
        preprocess=task.build_preprocess_fn(train_args, False),
        allow_multi_rates=True,  # as ESPnet's inference, which reads file by file
    )
    task.check_task_requirements(
        dataset, allow_variable_data_keys, train=False, inference=True
    )
    _warn_of_rate(dataset, getattr(train_args, "frontend_conf", None))
    return dataset


def _warn_of_rate(
    dataset: ESPnetDataset, frontend_conf: Mapping[str, Any] | None
) -> None:
    """Warn if the first utterance has another sampling rate than the model.

    It is no error: a model can have been trained with a frontend set to a wrong rate.
    """
    for file in map(Path, _audio_files(dataset, next(iter(dataset), ""))):
        try:
            rate = audio_rate(file)
        except (OSError, ValueError):
            continue  # reported when the utterance has its turn
        try:
            check_rate(file, rate, frontend_conf)
        except ValueError as e:
            logging.warning(e)


def read_batches(
    dataset: ESPnetDataset, batches: Sequence[Sequence[str]], num_workers: int
) -> Generator[Batch, None, None]:
    """Read batches of utterances in order, ahead of time by workers, until closed."""
    yield from torch.utils.data.DataLoader(
        Utterances(dataset),
        batch_sampler=map(list, batches),
        num_workers=num_workers,
        collate_fn=list,
    )


def reason(error: BaseException) -> str:
    """Return an exception as one line of a report."""
    if isinstance(error, torch.OutOfMemoryError):
        return (
            "out of memory; lower beam_size, or decode it on the CPU (--ngpu 0) or on "
            "a device with more memory"
        )
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
