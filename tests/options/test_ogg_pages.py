"""The pages of Ogg files. libogg, which writes those here, works out their checksums."""

import struct

import numpy as np
import pytest
import soundfile

from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.audio_files import read_audio
from espnet_lenbias.options.ogg_pages import checksums, damaged_at

RATE = 16000


@pytest.fixture(params=["VORBIS", "OPUS"])
def ogg(request, tmp_path):
    """A file of 30 s, and where its pages begin."""
    path = tmp_path / "a.ogg"
    wave = 0.1 * np.random.default_rng(0).standard_normal(30 * RATE)
    soundfile.write(path, wave, RATE, format="OGG", subtype=request.param)
    data = path.read_bytes()
    starts = [n for n in range(len(data)) if data.startswith(b"OggS\0", n)]
    assert len(starts) > 5
    return path, starts


def test_checksums_are_those_of_libogg(ogg):
    path, starts = ogg
    data = path.read_bytes()
    ends = [*starts[1:], len(data)]
    pages = [data[start:end] for start, end in zip(starts, ends, strict=True)]
    said = [struct.unpack("<I", page[22:26])[0] for page in pages]
    assert checksums(pages).tolist() == said
    assert damaged_at(path) is None


@pytest.mark.parametrize("n", [0, 2, -1])
def test_a_byte_that_changed(ogg, n):
    path, starts = ogg
    data = bytearray(path.read_bytes())
    data[starts[n] + 40] ^= 1
    path.write_bytes(data)
    assert damaged_at(path) == starts[n]


def test_a_page_that_is_missing(ogg):
    path, starts = ogg
    data = path.read_bytes()
    path.write_bytes(data[: starts[3]] + data[starts[4] :])
    assert damaged_at(path) == starts[3]


def test_what_follows_the_last_page_is_none(ogg):
    path, _ = ogg
    data = path.read_bytes()
    path.write_bytes(data + b"TAG" + bytes(125))
    assert damaged_at(path) is None


def test_a_damaged_file_is_not_read(ogg):
    """libsndfile leaves the page out, and says nothing."""
    path, starts = ogg
    data = bytearray(path.read_bytes())
    data[starts[3] + 100 : starts[3] + 120] = bytes(20)
    path.write_bytes(data)
    with pytest.raises(AudioError, match=f"{path}: damaged at byte {starts[3]}, from"):
        read_audio(path)
