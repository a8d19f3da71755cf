"""Audio for a page: where it is, its waveform, and itself where the page holds it."""

import base64
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import soundfile

from espnet_lenbias.options.audio_files import check_audio_file, read_stretch
from espnet_lenbias.options.cut_audio import damage_named
from espnet_lenbias.options.data_files import read_lines
from espnet_lenbias.options.html_page import EMBED, LINK, NO_AUDIO
from espnet_lenbias.options.segments import read_segments

WAV_SCP, SEGMENTS = "wav.scp", "segments"

# Pairs of lowest and highest sample in a waveform, and the largest number in it.
PEAKS = 600
FULL = 100

# MP3 is what every browser plays. These rates need no change; others become the last.
_RATES = (8000, 11025, 12000, 16000)

# About 27 kbit/s at 16 kHz: a minute is 270 kB within a page. With a constant rate the
# file would not tell players to leave out the 69 ms of silence that the encoder adds.
_MP3 = {
    "format": "MP3",
    "subtype": "MPEG_LAYER_III",
    "bitrate_mode": "AVERAGE",
    "compression_level": 0.9,
}


@dataclass(frozen=True)
class Source:
    """The audio of an utterance."""

    file: str  # as wav.scp has it
    start: float = 0.0  # seconds
    end: float | None = None  # None: that of the file


def sources_of(folder: Path) -> Mapping[str, Source]:
    """Return where the audio of a set is, by utterance; empty without a ``wav.scp``.

    Args:
        folder: Of the data, with ``wav.scp`` and, where utterances are pieces of
            recordings, ``segments``.

    Raises:
        OSError: A file cannot be read.
        OptionError: Names the line that is wrong.
    """
    if not (folder / WAV_SCP).is_file():
        return {}
    recordings = read_lines(folder / WAV_SCP)
    if (folder / SEGMENTS).is_file():
        segments = read_segments(folder / SEGMENTS, recordings)
        return {k: Source(s.file, s.start, s.end) for k, s in segments.items()}
    return {key: Source(file) for key, file in recordings.items()}


def page_audio(
    source: Source | None, how: str, page_folder: Path
) -> dict[str, Any] | None:
    """Return what a page needs to play and draw an utterance; None: it is not to.

    Args:
        source: Where it is; None: nowhere.
        how: The value of ``--html_audio``.
        page_folder: Where the page will lie, for links.

    Returns:
        `duration` in seconds, `peaks` (see :func:`peaks`), `src` for an audio element,
        and `start`, where the utterance begins in that, in seconds. Or else a
        `problem`: why the file cannot be read.
    """
    if how == NO_AUDIO:
        return None
    if source is None:
        return {"problem": f"{WAV_SCP} names no audio of it"}
    try:
        samples, rate = _read(source)
        src = _embedded(samples, rate) if how == EMBED else _link(source, page_folder)
    except (OSError, ValueError) as e:
        return {"problem": str(e)}
    return {
        "src": src,
        "start": source.start if how == LINK else 0.0,
        "duration": round(len(samples) / rate, 3),
        "peaks": peaks(samples),
    }


def peaks(samples: np.ndarray, count: int = PEAKS) -> list[int]:
    """Return the outline of a waveform.

    Args:
        samples: (n,), n > 0.
        count: At most so many pairs.

    Returns:
        Lowest and highest sample of each stretch of time, one after the other, where
        `FULL` is the loudest sample of all.
    """
    count = min(count, len(samples))
    starts = np.arange(count) * len(samples) // count
    loudest = np.abs(samples).max() or 1.0
    pairs = [ufunc.reduceat(samples, starts) for ufunc in (np.minimum, np.maximum)]
    outline: list[int] = np.rint(FULL / loudest * np.stack(pairs, 1)).ravel().tolist()
    return [int(x) for x in outline]


def _read(source: Source) -> tuple[np.ndarray, int]:
    """Return the samples, (n,), the mean of all channels, and their rate in Hz.

    Raises:
        OSError: There is no such file.
        ValueError: It cannot be played.
    """
    if source.file.endswith("|"):
        raise ValueError(f"{source.file} is a command, not a file")
    path = Path(source.file)
    check_audio_file(path)
    with damage_named(path), soundfile.SoundFile(os.fsencode(path)) as f:
        rate: int = f.samplerate
        samples = read_stretch(
            f, source.start, source.end, dtype="float32", always_2d=True
        ).mean(axis=1)
    if not len(samples):
        raise ValueError(f"{path} holds nothing from {source.start:g} s on")
    return np.nan_to_num(samples, posinf=0.0, neginf=0.0), rate


def _embedded(samples: np.ndarray, rate: int) -> str:
    """Return samples as a data URI of MP3."""
    if rate not in _RATES:
        from scipy.signal import resample_poly  # here, not above: it takes long to load

        common = math.gcd(rate, _RATES[-1])
        samples = resample_poly(samples, _RATES[-1] // common, rate // common)
        rate = _RATES[-1]
    samples = samples / max(1.0, float(np.abs(samples).max()))
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **_MP3)
    return "data:audio/mpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _link(source: Source, page_folder: Path) -> str:
    """Return the address of a file, relative to that of the page."""
    # Both without links, or `..` would lead elsewhere.
    target = os.path.relpath(
        os.path.realpath(source.file), os.path.realpath(page_folder)
    )
    return quote(os.fsencode(target))
