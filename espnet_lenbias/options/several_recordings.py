"""Audio files with several recordings one after the other, as `cat` makes them.

Of most kinds the first alone is read, without a word. No torch here.
"""

import re
from mmap import ACCESS_READ, mmap
from pathlib import Path

from espnet_lenbias.errors import AudioError


class SeveralRecordingsError(AudioError):
    """A file holds several recordings."""


# Of a WAV whose header does not know its length, all that follows would be samples.
_BEGINS_AS_WAV = re.compile(rb"RIFF....WAVE(?:fmt |LIST|JUNK|bext)", re.DOTALL)

# How a recording begins, by what libsndfile calls its kind.
BEGINNINGS = {
    "AU": re.compile(rb"\.snd\x00\x00\x00"),
    "CAF": re.compile(rb"caff\x00\x01\x00\x00"),
    "FLAC": re.compile(rb"fLaC[\x00\x80]\x00\x00\x22"),
    "MP3": re.compile(
        rb"\xff[\xe0-\xff]..(?:.{9}|.{17}|.{32})(?:Xing|Info)", re.DOTALL
    ),
    "MAT5": re.compile(rb"MATLAB 5\.0 MAT-file"),
    "PVF": re.compile(rb"PVF1\n\d+ \d+ \d+\n"),
    "RF64": re.compile(rb"RF64\xff\xff\xff\xff"),
    "VOC": re.compile(rb"Creative Voice File\x1a"),
    "WAV": _BEGINS_AS_WAV,
    "WAVEX": _BEGINS_AS_WAV,
    "W64": re.compile(rb"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00"),
    "WVE": re.compile(rb"ALawSoundFile\*\*\x00"),
    "XI": re.compile(rb"Extended Instrument: "),
}

# Of Ogg, whose streams can begin together, a page that begins none.
_OGG_BEGINS = re.compile(rb"OggS\x00[\x02\x06]")
_OGG_GOES_ON = re.compile(rb"OggS\x00[\x00\x01\x04\x05]")

# Likewise of kinds that ffmpeg reads, libsndfile not: WAV and AIFF (which it refuses if
# there are several), AVI, MP4 and its like, Windows Media, AMR, TTA, Matroska and WebM.
_OF_FFMPEG = (
    re.compile(rb"RIFF....(?:WAVE|AVI )", re.DOTALL),
    re.compile(
        rb"ftyp(?:isom|iso[2-9]|M4[ABV] |mp4[12]|qt  |avc1|dash|3g[2p].)", re.DOTALL
    ),
    re.compile(rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c"),
    re.compile(rb"#!AMR(?:-WB)?\n"),
    re.compile(rb"FORM....AIF[FC]", re.DOTALL),
    re.compile(rb"TTA1[\x01-\x03]\x00"),
    re.compile(rb"\x1a\x45\xdf\xa3(?:.|.{8})\x42\x86\x81\x01", re.DOTALL),
)
_WAV = re.compile(rb"RIFF....WAVE", re.DOTALL)
_FIRST_BYTES = 64  # of a file, within which its first recording begins


def check_alone(path: Path, kind: str | None) -> None:
    """Verify that no other recording begins behind the beginning of a file's first.

    Args:
        path: The file, which is not empty.
        kind: What libsndfile calls its kind; None: it cannot read it.

    Raises:
        SeveralRecordingsError: There are several.
        OSError: It cannot be read.
    """
    with path.open("rb") as f, mmap(f.fileno(), 0, access=ACCESS_READ) as held:
        if _begins_again(held, kind):
            raise SeveralRecordingsError(
                f"{path}: several recordings one after the other, of which one alone "
                "would be heard: keep them apart, or write them anew as one"
            )


def _begins_again(held: mmap, kind: str | None) -> bool:
    """Tell whether there are several recordings in the bytes of a file."""
    if kind is None:
        kinds = [k for k in _OF_FFMPEG if k.search(held, 0, _FIRST_BYTES)]
        pairs = [(one, one) for one in kinds]
        if _n_data_chunks(held) > 1:
            return True
    elif kind == "OGG":
        pairs = [(_OGG_GOES_ON, _OGG_BEGINS)]
    else:
        pairs = [(BEGINNINGS[k], BEGINNINGS[k]) for k in BEGINNINGS.keys() & {kind}]
    for first, again in pairs:
        begun = first.search(held)
        if begun is not None and again.search(held, begun.end()):
            return True
    return False


def _n_data_chunks(held: mmap) -> int:
    """Return how many chunks of samples a WAV file has; 0: it is none.

    What has several libsndfile refuses, and ffmpeg reads the last.
    """
    place, n = len(b"RIFF....WAVE"), 0
    if not _WAV.match(held):
        return 0
    while place + 8 <= len(held):
        n += held[place : place + 4] == b"data"
        size = int.from_bytes(held[place + 4 : place + 8], "little")
        place += 8 + size + size % 2
    return n
