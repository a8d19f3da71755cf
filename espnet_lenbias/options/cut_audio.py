"""Audio files that are cut off, or several in one. No torch here.

libsndfile reads what is there of most of them without a word, and the half of an
utterance gives half a text. Of a cut FLAC it says so itself.
"""

import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import soundfile

from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.ogg_pages import damaged_at, ends_with_last_page
from espnet_lenbias.options.several_recordings import BEGINNINGS, check_alone

# From this on, the size of a WAV's samples in its header is no size: what writes into a
# pipe does not know it. sox has 0x7ffff000 and a little more there, arecord 0x80000000,
# ffmpeg 0xffffffff. Others have 0.
_NO_SIZE = 0x7FFF0000

# More samples than there are in any file: so many libsndfile tells of a FLAC whose header
# does not know.
_ENDLESS = 2**48

# Seconds that may be missing: headers are known that count themselves, or a last sample
# that is not there.
_SLACK = 0.01

# How libsndfile's log tells of a size that is not that of the file: RF64, W64, AIFF, AU.
_SIZES = re.compile(
    r"^\s*(?:riff(?: size)?|form|data size)\s*: (\d+) \(should be (\d+)\)",
    re.IGNORECASE | re.MULTILINE,
)

# Kinds, as libsndfile calls them, whose files tell where they end.
TELL_THEIR_END = frozenset(
    ("WAV", "WAVEX", "RF64", "FLAC", "MP3", "OGG", "AIFF", "AU", "CAF", "W64", "NIST")
)

_ID3 = 10  # bytes of the header of a tag before an MP3
_MP3_FRAME = 4096  # bytes, of which no frame has more
_SAMPLES = re.compile(rb"\nsample_count -i (\d+)")  # in the header of NIST's SPHERE
_VALID = re.compile(r"^\s*Valid frames\s*: (\d+)", re.MULTILINE)  # log of a packed CAF


class HeaderlessError(AudioError):
    """Whatever a file holds would be taken for samples, by its name."""

    def __init__(self, path: Path):
        super().__init__(
            f"{path}: by its name ({path.suffix}) samples without a header, of which "
            "nobody can tell the rate and the type: convert it to WAV or FLAC, or make "
            "it anew"
        )


def file_info(path: Path, verbose: bool = False) -> Any:
    """Return what soundfile knows about a file.

    Raises:
        AudioError: It has no header, its header does not tell how long it is, or it
            cannot be read for being several.
        soundfile.LibsndfileError: It is no audio.
    """
    try:
        info = soundfile.info(os.fsencode(path), verbose=verbose)
    except TypeError as e:  # by its name: the rate of such samples must be known
        raise HeaderlessError(path) from e
    except soundfile.LibsndfileError:
        if path.is_file() and path.stat().st_size:
            check_alone(path, None)
        raise
    if info.format == "MP3" and not _counts_frames(path):
        raise AudioError(
            f"{path}: an MP3 that does not count its frames, of which libsndfile guesses "
            "the length, and may read less: write it anew, such as by `ffmpeg -i old.mp3 "
            "-codec copy new.mp3`"
        )
    if info.format == "RAW":  # what libsndfile takes .au, .snd, .vox and .gsm for, too
        raise HeaderlessError(path)
    if info.frames > _ENDLESS:
        raise AudioError(
            f"{path}: its header does not tell how long it is, as of a FLAC that was "
            "written into a pipe: write it anew, from file to file"
        )
    return info


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Read audio within the context, of which libsndfile finds damages only there.

    Raises:
        AudioError: It is damaged, or cut off.
    """
    try:
        yield
    except soundfile.LibsndfileError as e:
        raise AudioError(f"{path} cannot be read to its end ({e})") from e


def check_whole(path: Path, start: int = 0) -> None:
    """Verify that an audio file is as long as its header says, and holds no other.

    Args:
        path: A file of any kind.
        start: Where in it the audio begins, as in Kaldi's archives.

    Raises:
        OSError: It cannot be read.
        AudioError: It is cut off, holds several, or see :func:`file_info`.
    """
    info = None
    if not start:
        with suppress(RuntimeError):  # no audio: who reads it says so
            info = file_info(path, verbose=True)
    promised, held = _wav_seconds(path, start)
    if not promised and info is not None:
        promised, held = _other_seconds(path, info)
    if promised - held > _SLACK:
        raise AudioError(
            f"{path}: cut off: its header says {promised:.2f} s, and {held:.2f} s are "
            "there: copy or make it anew"
        )
    if info is not None:
        check_alone(path, info.format)


def _wav_seconds(path: Path, start: int) -> tuple[float, float]:
    """Return how long a WAV is by its header, and by what is there.

    Returns:
        Zeros for what is no WAV, and for one whose header does not tell.

    Raises:
        AudioError: There is more of it than the header says.
    """
    untold = 0.0, 0.0
    with path.open("rb") as f:
        f.seek(start)
        riff = f.read(12)
        if riff[:4] != b"RIFF" or riff[8:] != b"WAVE":
            return untold
        byte_rate = block = 0
        while len(head := f.read(8)) == 8:
            name, size = struct.unpack("<4sI", head)
            body = f.tell()
            if name == b"fmt ":
                byte_rate, block = struct.unpack("<8xIH", f.read(14).ljust(14, b"\0"))
            if name == b"data":
                if size >= _NO_SIZE or not byte_rate:
                    return untold
                held = os.fstat(f.fileno()).st_size - body
                f.seek(body + size + size % 2)
                more = held - size > _SLACK * byte_rate
                if size and more and not start and _is_no_chunk(f.read(8)):
                    raise AudioError(
                        f"{path}: its header says {size / byte_rate:.2f} s, and "
                        f"{held / byte_rate:.2f} s are there, as where a recorder has "
                        "not come to its end: make it anew"
                    )
                if held < size and block:  # of a part of one nothing is read
                    held -= held % block
                return size / byte_rate, min(size, held) / byte_rate
            f.seek(body + size + size % 2)
    return untold


def _is_no_chunk(head: bytes) -> bool:
    """Tell whether what comes behind the samples of a WAV is no chunk, tag or zeros."""
    if head.startswith((b"ID3", b"TAG")):
        return False
    return any(head) and not (head[:4].isascii() and head[:4].decode().isprintable())


def _other_seconds(path: Path, info: Any) -> tuple[float, float]:
    """Return how long audio is by its header, and by what is there, of other kinds.

    Args:
        path: The file.
        info: What :func:`file_info` says about it, verbosely.

    Returns:
        Zeros where no more is said than is there.

    Raises:
        AudioError: It is cut off, and does not tell how long it was; it is damaged, or
            holds more than its header says.
    """
    untold = 0.0, 0.0
    if info.format == "OGG":
        check_pages(path)
    held = info.frames / info.samplerate
    if info.format == "NIST":
        with path.open("rb") as f:
            said = _SAMPLES.search(f.read(1024))
        promised = int(said[1]) / info.samplerate if said else held
        if held - promised > _SLACK:
            raise AudioError(
                f"{path}: its header says {promised:.2f} s, and {held:.2f} s are there, "
                "perhaps of several recordings: keep them apart, or make it anew"
            )
        return promised, held
    if info.format == "CAF":
        valid = _VALID.search(info.extra_info)
        if valid:
            return int(valid[1]) / info.samplerate, held
        size, there = _caf_bytes(path)
        return (held * size / there, held) if size > there > 0 else untold
    if info.format == "MP3":  # whose frames the header counts
        return held, _n_frames(path) / info.samplerate
    sizes = _SIZES.search(info.extra_info)
    if sizes is None or not 0 < int(sizes[2]) < int(sizes[1]) < _NO_SIZE:
        return untold
    return held * int(sizes[1]) / int(sizes[2]), held


def _caf_bytes(path: Path) -> tuple[int, int]:
    """Return how many bytes of samples a CAF has by its header, and how many there are.

    Below 1 where the header does not tell.
    """
    with path.open("rb") as f:
        f.seek(8)
        while len(head := f.read(12)) == 12:
            name, size = struct.unpack(">4sq", head)
            if name == b"data":
                return size, os.fstat(f.fileno()).st_size - f.tell()
            if size < 0:
                break
            f.seek(size, os.SEEK_CUR)
    return 0, 0


def check_pages(path: Path) -> None:
    """Verify that an Ogg file is there to its end, and sound.

    Raises:
        AudioError: It is cut off, or damaged.
    """
    if not ends_with_last_page(path):
        raise AudioError(
            f"{path}: cut off: its last page is not marked as such: copy or make it anew"
        )
    place = damaged_at(path)
    if place is not None:
        raise AudioError(
            f"{path}: damaged at byte {place}, from where on audio would be missing: copy "
            "or make it anew"
        )


def _counts_frames(path: Path) -> bool:
    """Tell whether an MP3 begins with a frame that counts the others."""
    with path.open("rb") as f:
        tag = f.read(_ID3)
        if tag[:3] == b"ID3":  # its size has seven bits in a byte
            size = sum((byte & 127) << 7 * i for i, byte in enumerate(tag[:5:-1]))
            f.seek(_ID3 + size)
        else:
            f.seek(0)
        return BEGINNINGS["MP3"].search(f.read(_MP3_FRAME)) is not None


def _n_frames(path: Path) -> int:
    """Return how many frames a file has, by reading them.

    Raises:
        AudioError: It is damaged.
    """
    n_frames = 0
    with damage_named(path), soundfile.SoundFile(os.fsencode(path)) as f:
        while n_read := len(f.read(2**16, dtype="float32")):
            n_frames += n_read
    return n_frames
