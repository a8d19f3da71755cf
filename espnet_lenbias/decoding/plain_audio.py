"""Audio as a model takes it: of one channel, at its sampling rate; no torch here.

Where a file is otherwise, a copy is made, with no more of it in memory than a block.
"""

import glob
import hashlib
import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from espnet_lenbias.decoding.audio_blocks import (
    Blocks,
    ffmpeg_blocks,
    ffmpeg_remarks,
    soundfile_blocks,
)
from espnet_lenbias.decoding.plain_files import is_own, open_number, whole_file
from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.audio_files import check_audio_file
from espnet_lenbias.options.cut_audio import (
    TELL_THEIR_END,
    HeaderlessError,
    check_pages,
    file_info,
)
from espnet_lenbias.options.ogg_pages import begins_as_ogg
from espnet_lenbias.options.several_recordings import SeveralRecordingsError

# Where copies are, below the output folder.
COPIES = "audio"

# Digits of what tells a copy's source, names that end in them, and one such ending.
_MARK = 8
MARKED = "[0-9a-f]" * _MARK + ".flac"
AN_ENDING = f"-{'0' * _MARK}.flac"

# In the file itself, and what follows it where it is not as loud as its source.
_COMMENT = "a copy by espnet_lenbias"
_SCALED = ", scaled by "

# Up to here samples above full scale are cut: what resampling and codecs add to it.
_OVERSHOOT = 1.25

# Kinds whose samples can be read from any place on, exactly, but for some codecs in WAV.
_SEEKABLE = ("WAV", "WAVEX", "FLAC")


def plain_audio(path: Path, rate: int, folder: Path, name: str) -> tuple[Path, str]:
    """Return a file of one channel at a rate, and what was done to make it.

    Args:
        path: The audio file, of any kind that soundfile or ffmpeg reads.
        rate: In Hz.
        folder: The output folder.
        name: What the name of the file to write there begins with. The rest tells which
            audio it is of, as it is now; what is left of other audio of that name goes.

    Returns:
        `path` itself, and "", where it is such a file.

    Raises:
        AudioError: It cannot be read, is cut off, or holds no samples.
        OSError: Names a file that cannot be read or written.
    """
    try:
        found = path.stat()
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except (OSError, RuntimeError) as e:  # a link that leads nowhere, or in a circle
        why = getattr(e, "strerror", None) or "it is a link that leads to itself"
        raise AudioError(f"{path} cannot be read: {why}") from e
    if not found.st_size:
        raise AudioError(f"{path} is empty")
    info = _info(path)
    if info is not None:
        check_audio_file(path)
        if (
            (info.samplerate, info.channels) == (rate, 1)
            and info.format in _SEEKABLE
            and _fits_a_line(path)
            and _is_seekable(path)
        ):
            return path, ""
        blocks, done = partial(soundfile_blocks, path, rate), _changes(info, rate)
    else:
        if begins_as_ogg(path):  # such as with Speex, or FLAC
            check_pages(path)
        blocks = partial(ffmpeg_blocks, path, rate)
        done = f"read by ffmpeg, as one channel of {rate} Hz"
        done += ffmpeg_remarks(path)
    source = f"{path.absolute()} {found.st_size} {found.st_mtime_ns} {rate}"
    mark = hashlib.sha256(os.fsencode(source)).hexdigest()[:_MARK]
    marked = f"{name}-{mark}.flac"
    copy = folder / marked
    if os.path.lexists(copy) and not is_copy(copy):
        raise AudioError(
            f"{copy} stands where a copy of {path} goes, and is none: move it elsewhere"
        )
    if not is_copy(copy) or not _is_whole(copy):
        _write(folder, marked, rate, blocks, path)
    for other in folder.glob(f"{glob.escape(name)}-{MARKED}"):
        if other != copy and is_copy(other):
            other.unlink()
    return copy, done + _comment(copy).removeprefix(_COMMENT)


def _info(path: Path) -> Any:
    """Return what soundfile knows of a file; None if it cannot read it.

    Raises:
        AudioError: Nor may ffmpeg, as it holds several recordings, or has no header.
    """
    try:
        return file_info(path)
    except (HeaderlessError, SeveralRecordingsError):
        raise
    except (soundfile.LibsndfileError, AudioError):
        return None


def _is_seekable(path: Path) -> bool:
    """Tell whether libsndfile can go to a place in an audio file; not so in GSM."""
    with soundfile.SoundFile(os.fsencode(path)) as f:
        return bool(f.seekable())


def _fits_a_line(path: Path) -> bool:
    """Tell whether a line of ``wav.scp`` can name a file."""
    name = str(path)
    return name.isprintable() and name == name.strip() and not name.endswith("|")


def _changes(info: Any, rate: int) -> str:
    """Return what has to be done to audio that soundfile reads."""
    changes = []
    if info.channels > 1:
        changes.append(f"{info.channels} channels mixed to one")
    if info.samplerate != rate:
        changes.append(f"resampled from {info.samplerate} to {rate} Hz")
    done = ", ".join(changes) or f"{info.format} written as FLAC"
    if info.format in TELL_THEIR_END:
        return done
    return f"{done}; of {info.format} it cannot be told whether a file is whole"


def is_copy(path: Path) -> bool:
    """Tell whether a file is a copy that a run has made, and no link to one."""
    if not is_own(path):
        return False
    try:
        return _comment(path).startswith(_COMMENT)
    except soundfile.LibsndfileError:
        return False


def _comment(copy: Path) -> str:
    """Return what an audio file says of itself."""
    with soundfile.SoundFile(os.fsencode(copy)) as f:
        return str(f.comment)


def _is_whole(copy: Path) -> bool:
    """Tell whether nobody has cut a copy since it was made: its last sample is there."""
    try:
        with soundfile.SoundFile(os.fsencode(copy)) as f:
            f.seek(-1, os.SEEK_END)
            return len(f.read(1)) == 1
    except soundfile.LibsndfileError:
        return False


def _write(
    folder: Path, name: str, rate: int, blocks: Callable[[], Blocks], path: Path
) -> None:
    """Write audio into a FLAC file of 16 bits, whole or not at all.

    Floats may go above full scale, where nothing of them is lost yet: then all of the
    audio is scaled down.

    Args:
        folder: The output folder.
        name: Of the file there.
        rate: In Hz.
        blocks: Begins to read the audio.
        path: The file that it is of.

    Raises:
        AudioError: There are no samples.
        OSError: It cannot be written.
    """
    with whole_file(folder, name) as draft:
        try:
            n_samples, peak = _fill(draft, rate, blocks, 1.0, _COMMENT)
            if peak > _OVERSHOOT:
                draft.unlink()
                comment = f"{_COMMENT}{_SCALED}{1 / peak:.2g}"
                _fill(draft, rate, blocks, 1 / peak, comment)
        except (soundfile.LibsndfileError, AssertionError) as e:
            # of reading they have been taken care of; soundfile tells no cause
            raise OSError(f"{folder / name} cannot be written: is there room?") from e
        if not n_samples:
            raise AudioError(f"{path} holds no samples")


def _fill(
    draft: Path, rate: int, blocks: Callable[[], Blocks], gain: float, comment: str
) -> tuple[int, float]:
    """Write a new FLAC file; return how many samples it has, and what the largest was."""
    n_samples, peak = 0, 0.0
    number = open_number(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    with (
        closing(blocks()) as audio,
        soundfile.SoundFile(
            number, "w", rate, channels=1, format="FLAC", subtype="PCM_16"
        ) as f,
    ):
        f.comment = comment
        for block in audio:
            f.write(gain * block)
            n_samples += len(block)
            peak = max(peak, float(np.abs(block).max(initial=0.0)))
    return n_samples, peak
