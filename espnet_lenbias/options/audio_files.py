"""Audio files and their sampling rate, which must be the model's; no torch here."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import humanfriendly  # as ESPnet reads `16k`
import soundfile

if TYPE_CHECKING:
    import numpy as np

_USUAL_RATE = 16000  # of ESPnet's frontends


def audio_rate(path: Path) -> int:
    """Return the sampling rate of an audio file.

    Raises:
        OSError: There is no such file.
        ValueError: It is no audio.
    """
    rate: int = _info(path).samplerate
    return rate


def seconds_of(path: Path) -> float:
    """Return how long an audio file is; see :func:`audio_rate` for errors."""
    info = _info(path)
    seconds: float = info.frames / info.samplerate
    return seconds


def check_one_channel(path: Path) -> None:
    """Verify that an audio file has samples, of one channel.

    Raises:
        OSError: There is no such file.
        ValueError: It is no audio, of several channels, or empty.
    """
    info = _info(path)
    if info.channels != 1:
        raise ValueError(
            f"{path} has {info.channels} channels: make it one "
            f"(sox {path} -c 1 out.wav)"
        )
    if not info.frames:
        raise ValueError(f"{path} holds no samples")


def _info(path: Path) -> Any:
    """Return what soundfile knows about a file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no audio file {path}")
    try:
        return soundfile.info(os.fsencode(path))
    except soundfile.LibsndfileError as e:
        raise ValueError(f"{path} is no audio that soundfile can read ({e})") from e


def read_audio(path: Path) -> "np.ndarray":
    """Return the samples of an audio file, (samples,)."""
    samples: np.ndarray = soundfile.read(os.fsencode(path), dtype="float32")[0]
    return samples


def check_rate(
    audio: Path | str, rate: int, frontend_conf: Mapping[str, Any] | None
) -> None:
    """Verify that audio has the sampling rate that a model was trained on.

    Args:
        audio: The file, or where else it comes from.
        rate: Its rate in Hz.
        frontend_conf: Of the model, as its training config has it.

    Raises:
        ValueError: It has another rate.
    """
    wanted = (frontend_conf or {}).get("fs", _USUAL_RATE)
    wanted = humanfriendly.parse_size(str(wanted))
    if rate != wanted:
        raise ValueError(
            f"{audio} has {rate} samples a second, and the model takes {wanted}: "
            f"resample it (sox {audio} -r {wanted} out.wav)"
        )
