"""Audio files: are they whole, and of the model's sampling rate? No torch here."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import humanfriendly  # as ESPnet reads `16k`
import soundfile

from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.cut_audio import (
    TELL_THEIR_END,
    check_whole,
    damage_named,
    file_info,
)
from espnet_lenbias.options.data_files import SOUND
from espnet_lenbias.options.train_config import why_no_file

if TYPE_CHECKING:
    import numpy as np

# What Whisper takes, and the samples that its encoder has positions for.
WHISPER_RATE = 16000
WHISPER_WINDOW = 30 * WHISPER_RATE

# Beyond this no recipe of ESPnet's trains.
LONG_SECONDS = 40.0

USUAL_RATE = 16000  # of ESPnet's frontends, and of a model that tells of none

# Samples above this are no loud ones of -1 to 1: that would be 18 dB of clipping.
_LOUD = 8.0

# In Hz; a telephone has 8000.
_SLOWEST = 1000

# Kinds whose decoders need what was before, as of MP3 or Opus, and how much of it, in
# seconds, until they make of a place what they make of it from the beginning on.
_REMEMBER = ("MP3", "OGG")
_LEAD = 10.0


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


def check_audio_file(path: Path) -> None:
    """Verify that an audio file has samples, all that its header tells of.

    Raises:
        OSError: There is no such file.
        ValueError: It is no audio, empty, or cut off.
    """
    info = _info(path)
    check_whole(path)
    if not info.frames:
        raise AudioError(f"{path} holds no samples")


def _info(path: Path) -> Any:
    """Return what soundfile knows about a file."""
    if not os.path.isfile(path):
        raise FileNotFoundError(why_no_file(path, "audio file"))
    try:
        info = file_info(path)
    except soundfile.LibsndfileError as e:
        raise ValueError(f"{path} is no audio that soundfile can read ({e})") from e
    if info.samplerate < _SLOWEST:
        raise AudioError(
            f"{path}: its header says {info.samplerate} samples a second, and no speech "
            "has so few: mend the header"
        )
    return info


def read_audio(path: Path) -> "np.ndarray":
    """Return the samples of an audio file, (samples,) or (samples, channels).

    Raises:
        AudioError: It is cut off, or damaged.
    """
    check_whole(path)
    with damage_named(path):
        samples: np.ndarray = soundfile.read(os.fsencode(path), dtype="float32")[0]
    return samples


def read_stretch(
    f: soundfile.SoundFile, start: float, end: float | None = None, **how: Any
) -> "np.ndarray":
    """Return the samples of an open audio file between two times.

    Args:
        f: The file, at its beginning.
        start: In seconds; behind the end of the file there are no samples.
        end: In seconds; None: that of the file.
        **how: What ``SoundFile.read`` takes beside their number.
    """
    first = min(round(start * f.samplerate), f.frames)
    last = f.frames if end is None else max(first, round(end * f.samplerate))
    if f.seekable():
        lead = round(_LEAD * f.samplerate) if f.format in _REMEMBER else 0
        begin = max(first - lead, 0)
        f.seek(begin)
        samples: np.ndarray = f.read(last - begin, **how)[first - begin :]
    else:  # GSM: each of its frames needs those before
        samples = f.read(last, **how)[first:]
    return samples


def are_large(samples: Any) -> bool:
    """Tell whether samples are beyond -1 to 1, not by clipping, but by their scale.

    Args:
        samples: A numpy array, or a tensor; ESPnet has made floats of integers.
    """
    peaks = abs(samples)
    if not bool((peaks > 1).any()):
        return False
    loud = (peaks > _LOUD) & (peaks < math.inf)
    return bool(loud.any()) or bool((samples == samples.round()).all())


def scale_warning(source: str, kind: str, large: bool, trained_on: str | None) -> str:
    """Return what is wrong with how large samples are; "" if nothing is known to be.

    ESPnet hands whole numbers on as they are, up to 32768 for 16 bits, where
    `kaldi_ark` reads a WAV; `sound` gives -1 to 1, but for a file of floats that goes
    beyond. A model hears well only what is as large as in its training.

    Args:
        source: Where the audio comes from.
        kind: ESPnet's type of the data: `sound`, `kaldi_ark`, `npy`.
        large: See :func:`are_large`.
        trained_on: The type of the data in training; None: not known.
    """
    if kind not in SOUND and large and trained_on in SOUND:
        return (
            f"{source}: {kind} gives samples beyond -1 to 1, which ESPnet does not "
            f"scale, and the model was trained on {trained_on}, from -1 to 1: write the "
            "audio into files, and decode them with the type sound"
        )
    if kind in SOUND and large and trained_on != "kaldi_ark":
        return (
            f"{source}: its samples go far beyond -1 to 1, and the model takes samples "
            "from -1 to 1: write the file anew with samples divided by what is 1 there, "
            "such as 32768"
        )
    if kind in SOUND and not large and trained_on == "kaldi_ark":
        return (
            f"{source}: {kind} gives samples from -1 to 1, and the model was trained on "
            "kaldi_ark, which for WAV gives whole numbers up to 32768: decode with the "
            "type kaldi_ark, unless the archives of the training were FLAC"
        )
    return ""


def array_warning(large: bool, trained_on: str | None) -> str:
    """Return what is wrong with how large the samples of an array in Python are.

    Args:
        large: See :func:`are_large`; integers have been scaled by their range.
        trained_on: See :func:`scale_warning`.
    """
    if large and trained_on != "kaldi_ark":
        return (
            "the audio: its samples go far beyond -1 to 1, and the model takes samples "
            "from -1 to 1: divide them by what is 1 there, such as 32768, or hand over "
            "integers"
        )
    if not large and trained_on == "kaldi_ark":
        return (
            "the audio: its samples are from -1 to 1, and the model was trained on "
            "kaldi_ark, which for WAV gives whole numbers up to 32768: hand over floats "
            "up to 32768, unless the archives of the training were FLAC"
        )
    return ""


def length_warning(source: str, seconds: float) -> str:
    """Return that audio is far longer than what a model can have been trained on.

    For models that hear all of it, not a window. ESPnet's recipes train on utterances of
    at most 20 or 30 s.

    Args:
        source: Where the audio comes from.
        seconds: Its length.
    """
    if seconds <= LONG_SECONDS:
        return ""
    return (
        f"{source} has {seconds:.2f} s, and models are trained on utterances of at most "
        "20 to 30 s: its text will have gaps and loops: cut it with `espnet-lenbias "
        "segment`, and decode the pieces with --segments"
    )


def end_warning(path: Path) -> str:
    """Return that nobody can tell whether an audio file is whole; "" if one can.

    Args:
        path: The file; of what soundfile does not read, its reader tells.
    """
    try:
        kind = _info(path).format
    except (OSError, ValueError):
        return ""
    if kind in TELL_THEIR_END:
        return ""
    return (
        f"{path}: of {kind} it cannot be told whether a file is whole: listen to its end, "
        "and keep audio as WAV or FLAC"
    )


def channel_warning(
    source: str, n_channels: int, train_config: Mapping[str, Any]
) -> str:
    """Return what becomes of several channels; "" if a model hears all of them.

    Args:
        source: Where the audio comes from.
        n_channels: How many it has.
        train_config: Of the model, whose frontend may combine them.
    """
    conf = train_config.get("frontend_conf") or {}
    is_usual = train_config.get("frontend", "default") == "default"
    if n_channels == 1 or not is_usual or conf.get("frontend_conf"):
        return ""
    return (
        f"{source} has {n_channels} channels, of which ESPnet's frontend hears the "
        "first: mix them if speech is in another one (sox in.wav out.wav remix -)"
    )


def training_types(train_config: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each data of a training, by the name of the data."""
    data = train_config.get("train_data_path_and_name_and_type")
    if not isinstance(data, Sequence):
        return {}
    entries = [e for e in data if isinstance(e, Sequence) and len(e) == 3]
    return {str(name): str(kind) for _, name, kind in entries}


def model_rate(frontend_conf: Mapping[str, Any] | None) -> int | None:
    """Return the sampling rate, in Hz, of a model with this frontend.

    None: the config has one that is none, of which ESPnet tells.
    """
    if not isinstance(frontend_conf, Mapping):
        frontend_conf = {}
    try:
        rate: int = humanfriendly.parse_size(str(frontend_conf.get("fs", USUAL_RATE)))
    except humanfriendly.InvalidSize:
        return None
    return rate


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
    wanted = model_rate(frontend_conf)
    if wanted is not None and rate != wanted:
        remedy = f"resample it (sox {audio} -r {wanted} out.wav)"
        if str(audio).endswith("|"):  # a command of Kaldi's
            remedy = f"let it end with: sox -t wav - -r {wanted} -t wav - |"
        raise ValueError(
            f"{audio} has {rate} samples a second, and the model takes {wanted}: {remedy}"
        )
