"""Utterances of a data set, read so that a broken one does not stop the others."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from espnet_lenbias.decoding.log_markers import (
    CHANNELS,
    END,
    LENGTH,
    RATE,
    SCALE,
    WINDOW,
)
from espnet_lenbias.decoding.pieces import PieceReader
from espnet_lenbias.errors import AudioError, in_a_line
from espnet_lenbias.espnet_compat import ESPnetDataset
from espnet_lenbias.options.audio_files import (
    are_large,
    channel_warning,
    check_rate,
    end_warning,
    length_warning,
    model_rate,
    scale_warning,
    training_types,
)
from espnet_lenbias.options.cut_audio import check_whole
from espnet_lenbias.options.data_files import SOUND
from espnet_lenbias.options.train_config import feature_size, why_no_file

# Types of audio whose whole numbers ESPnet leaves as large as they are.
_NUMBERS = ("kaldi_ark", "npy")


@dataclass(frozen=True)
class Unreadable:
    """Stands for the data of an utterance that could not be read."""

    reason: str


class Read(NamedTuple):
    """An utterance as it is read."""

    key: str
    data: dict[str, np.ndarray] | Unreadable
    # Of audio that is not what the model was trained on, by kind: see `log_markers`.
    warnings: Mapping[str, str] = {}
    # How long what a model takes for a second of audio lasts; not 1 s where the sampling
    # rate is not the model's.
    second: float = 1.0


Batch = list[Read]


class Utterances(torch.utils.data.Dataset[Any]):
    """ESPnet's data set, read by key.

    Args:
        dataset: Maps a key to its preprocessed data; see ESPnet's ``ESPnetDataset``.
        train_config: Of the model, which says what sampling rate it takes, and what
            data it was trained on.

    """

    def __init__(
        self, dataset: ESPnetDataset, train_config: Mapping[str, Any] | None = None
    ):
        self.dataset = dataset
        self.train_config = train_config or {}
        self.frontend_conf = self.train_config.get("frontend_conf")
        self.trained_on = training_types(train_config or {})
        # Of files of which pieces are read one by one: what is wrong, "" if nothing.
        self._verified: dict[tuple[str, int], str] = {}
        # Likewise what is to be said of their ends.
        self._ends: dict[str, str] = {}

    def __getitem__(self, key: str) -> Read:
        loaders = self.dataset.loader_dict
        # of a loader itself, `in` would read the audio
        if not all(key in loader.keys() for loader in loaders.values()):  # noqa: SIM118
            return Read(key, Unreadable(self._where_it_lacks(key)))
        for loader in loaders.values():
            if hasattr(loader, "rate"):
                loader.rate = None  # of the utterance before
        try:
            self._check_whole(key)
            data = self._as_floats(self.dataset[key][1])
            self._check_sequences(key, data)
            found = {
                RATE: self._rate_warning(key),
                SCALE: self._scale_warning(key, data),
                WINDOW: self._window_warning(key),
                LENGTH: self._length_warning(key, data),
                CHANNELS: self._channel_warning(key, data),
                END: self._end_warning(key),
            }
        except Exception as e:  # whatever is wrong with this file, others may be sound
            return Read(key, Unreadable(self._why(key, e)))
        warnings = {kind: text for kind, text in found.items() if text}
        return Read(key, data, warnings, self._second())

    def _where_it_lacks(self, key: str) -> str:
        """Return why there is no data of a key."""
        # a reader's own `in` may read the audio
        keys = {name: data.keys() for name, data in self.dataset.loader_dict.items()}
        files = [
            path
            for name, (path, _) in self.dataset.debug_info.items()
            if key not in keys[name]
        ]
        readers = [
            loader.loader
            for loader in self.dataset.loader_dict.values()
            if hasattr(loader, "loader")
        ]
        if any(isinstance(reader, PieceReader) for reader in readers):
            return (
                f"is no piece of a recording that segments name, or not in "
                f"{', '.join(files)}"
            )
        return f"is not in {' and '.join(files)}"

    def _as_floats(self, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return audio as floats, not scaled: some releases of ESPnet leave integers."""
        kinds = {name: kind for name, (_, kind) in self.dataset.debug_info.items()}
        return {
            name: values.astype(np.float32)
            if name == "speech" and kinds[name] in _NUMBERS and values.dtype.kind == "i"
            else values
            for name, values in data.items()
        }

    def _check_sequences(self, key: str, data: Mapping[str, np.ndarray]) -> None:
        """Verify that there is a sequence of each name, which a lone number is not.

        Raises:
            AudioError: Names the file of the number.
        """
        for name, values in data.items():
            if values.ndim == 0:
                raise AudioError(
                    f"{self._source(name, key)} holds a single number, and no sequence"
                )

    def _rate_warning(self, key: str) -> str:
        """Return what is wrong with the sampling rate; ESPnet's loaders have noted it.

        It is no error: a model can have been trained with a frontend set to a wrong
        rate.
        """
        for name, loader in self.dataset.loader_dict.items():
            rate = getattr(loader, "rate", None)
            if rate is not None:
                try:
                    check_rate(self._source(name, key), rate, self.frontend_conf)
                except ValueError as e:
                    return str(e)
        return ""

    def _second(self) -> float:
        """Return how long what the model takes for a second of the audio lasts, s."""
        taken = model_rate(self.frontend_conf)
        for name in self.dataset.loader_dict:
            rate = self._rate(name)
            if rate is not None and taken is not None:
                return taken / rate
        return 1.0

    def _rate(self, name: str) -> int | None:
        """Return the sampling rate of the utterance that has been read, in Hz.

        ESPnet's loaders have noted it; of an array of samples, or a matrix of channels in
        an archive, it is the model's. None: there is no audio of this name.
        """
        rate: int | None = getattr(self.dataset.loader_dict[name], "rate", None)
        is_array = name == "speech" and self.dataset.debug_info[name][1] in _NUMBERS
        if rate is None and is_array and feature_size(self.train_config) is None:
            return model_rate(self.frontend_conf)
        return rate

    def _scale_warning(self, key: str, data: Mapping[str, np.ndarray]) -> str:
        """Return what is wrong with the scale of the samples."""
        for name, (_, kind) in self.dataset.debug_info.items():
            if name == "speech" and kind in (*_NUMBERS, *SOUND):
                source = self._source(name, key)
                large = are_large(data[name])
                warning = scale_warning(source, kind, large, self.trained_on.get(name))
                if warning:
                    return warning
        return ""

    def _window_warning(self, key: str) -> str:
        """Return what the model's window leaves out; the preprocessing has noted it."""
        left_out = getattr(self.dataset.preprocess, "left_out", "")
        return f"{self._source('speech', key)} {left_out}" if left_out else ""

    def _length_warning(self, key: str, data: Mapping[str, np.ndarray]) -> str:
        """Return what is wrong with the length; where there is a window, nothing is."""
        if getattr(self.dataset.preprocess, "window", None) is not None:
            return ""
        for name in self.dataset.loader_dict:
            rate = self._rate(name)
            if rate is not None:
                warning = length_warning(
                    self._source(name, key), len(data[name]) / rate
                )
                if warning:
                    return warning
        return ""

    def _channel_warning(self, key: str, data: Mapping[str, np.ndarray]) -> str:
        """Return what becomes of several channels."""
        for name in self.dataset.loader_dict:
            if self._rate(name) is not None and data[name].ndim == 2:
                n_channels = data[name].shape[1]
                source = self._source(name, key)
                return channel_warning(source, n_channels, self.train_config)
        return ""

    def _end_warning(self, key: str) -> str:
        """Return which file of an utterance may be cut off."""
        for name, (_, kind) in self.dataset.debug_info.items():
            for source in self._files(name, key) if kind in SOUND else []:
                if source not in self._ends:
                    self._ends[source] = end_warning(Path(source))
                if self._ends[source]:
                    return self._ends[source]
        return ""

    def _check_whole(self, key: str) -> None:
        """Verify that the files of an utterance are files, and not cut off.

        Raises:
            AudioError: Names the one that is not.
        """
        for name, (_, kind) in self.dataset.debug_info.items():
            if kind in _NUMBERS or kind in SOUND:
                for source in self._files(name, key):
                    place = (source, 0) if kind in SOUND else _place(source)
                    if place not in self._verified:
                        self._verified[place] = _problem(*place, kind)
                    if self._verified[place]:
                        raise AudioError(self._verified[place])

    def _why(self, key: str, error: Exception) -> str:
        """Return why an utterance could not be read, with its source if it has one."""
        sources = {name: self._source(name, key) for name in self.dataset.loader_dict}
        for name, source in sources.items():
            if self.dataset.debug_info[name][1] not in SOUND:
                continue
            if source.endswith("|"):
                return (
                    f"{source}: sound takes no commands: write what it gives into a file, "
                    "or use kaldi_ark if the model was trained on it"
                )
            for file in self._files(name, key):
                if not os.path.exists(file):
                    return why_no_file(file)
        why = reason(error)
        source = next(filter(None, sources.values()), "")
        if source.endswith("|") and source[:-1].strip() not in why:
            return f"{source}: the command failed, or what it wrote is no audio ({why})"
        return why if not source or source in why else f"{source}: {why}"

    def _source(self, name: str, key: str) -> str:
        """Return where the audio of an utterance is: files, a command; "" if none."""
        return " ".join(self._files(name, key))

    def _files(self, name: str, key: str) -> list[str]:
        loader = self.dataset.loader_dict[name]
        reader = getattr(loader, "loader", loader)
        # readers of sound and of arrays, and of Kaldi's archives
        sources = getattr(reader, "data", getattr(reader, "_dict", {}))
        source = sources.get(key, [])
        return [source] if isinstance(source, str) else list(source)


def _problem(path: str, start: int, kind: str) -> str:
    """Return what is wrong with the file of data of a type; "" if nothing is.

    Of what is not there, and of a command, their readers tell.
    """
    if path.endswith("|"):
        return ""
    # of os.path: a Path raises for a name that is too long
    if os.path.isfile(path):
        try:
            if kind != "npy":
                check_whole(Path(path), start)
        except AudioError as e:
            return str(e)
    elif os.path.exists(path):  # to read a pipe is to wait
        return why_no_file(path)
    return ""


def _place(source: str) -> tuple[str, int]:
    """Return file and offset of what Kaldi's lists name: `file.ark:offset`, `file`."""
    path, _, offset = source.rpartition(":")
    return (path, int(offset)) if path and offset.isdigit() else (source, 0)


def reason(error: BaseException) -> str:
    """Return an exception as one line of a report."""
    if isinstance(error, torch.OutOfMemoryError):
        return (
            "out of memory; lower beam_size, or decode it on the CPU (--ngpu 0) or on "
            "a device with more memory"
        )
    return in_a_line(error)
