"""Audio files that are cut off."""

import struct

import numpy as np
import pytest
import soundfile

from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.audio_files import (
    check_audio_file,
    read_audio,
    seconds_of,
)
from espnet_lenbias.options.cut_audio import check_whole, file_info
from espnet_lenbias.options.several_recordings import check_alone

RATE = 16000
HEADER = 44  # bytes of a plain WAV's


def write_wav(path, subtype="PCM_16", channels=1, seconds=2):
    samples = np.full((seconds * RATE, channels), 0.1)
    soundfile.write(path, samples, RATE, subtype=subtype)
    return path.read_bytes()


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT", "ULAW", "IMA_ADPCM"])
@pytest.mark.parametrize("channels", [1, 2])
def test_half_of_a_wav(subtype, channels, tmp_path):
    path = tmp_path / "a.wav"
    whole = write_wav(path, subtype, channels)
    check_whole(path)
    path.write_bytes(whole[: len(whole) // 2])
    message = r"a.wav: cut off: its header says 2\.0. s, and (1\.0.|0\.9.) s are there"
    with pytest.raises(AudioError, match=message):
        read_audio(path)


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0x80000000, 0xFFFFFFFF])
def test_a_header_that_was_written_into_a_pipe(size, tmp_path):
    path = tmp_path / "a.wav"
    whole = write_wav(path)
    assert whole[HEADER - 8 : HEADER - 4] == b"data"
    path.write_bytes(whole[: HEADER - 4] + struct.pack("<I", size) + whole[HEADER:])
    check_whole(path)


@pytest.mark.parametrize("missing, cut", [(0, False), (44, False), (640, True)])
def test_what_is_no_loss(missing, cut, tmp_path):
    """A hundredth of a second is 320 bytes."""
    path = tmp_path / "a.wav"
    whole = write_wav(path)
    path.write_bytes(whole[: len(whole) - missing])
    if cut:
        with pytest.raises(AudioError):
            check_whole(path)
    else:
        check_whole(path)


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0xFFFFFFFF])
@pytest.mark.parametrize("channels", [1, 3])  # soundfile writes WAVEX from three on
def test_several_that_were_written_into_pipes(size, channels, tmp_path):
    """Neither header tells a length: the second one would be heard as samples."""
    path = tmp_path / "a.wav"
    content = write_wav(path, channels=channels)
    place = content.index(b"data") + 4
    one = content[:place] + struct.pack("<I", size) + content[place + 4 :]
    path.write_bytes(one)
    check_whole(path)
    path.write_bytes(one + one)
    with pytest.raises(AudioError, match="several recordings one after the other"):
        check_whole(path)


def test_a_wav_within_an_archive(tmp_path):
    path = tmp_path / "a.ark"
    whole = write_wav(tmp_path / "a.wav")
    path.write_bytes(b"utt1 " + whole + b"utt2 " + whole)
    check_whole(path, 5)
    check_whole(path, len(whole) + 10)
    path.write_bytes(b"utt1 " + whole[:-RATE])
    with pytest.raises(AudioError, match="says 2.00 s, and 1.50 s are there"):
        check_whole(path, 5)


@pytest.mark.parametrize(
    "content", [b"", b"RIFF", b"fLaC" + bytes(99), b"RIFF\0\0\0\0WAVE"]
)
def test_other_files_are_left_to_their_readers(content, tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    check_whole(path)


@pytest.mark.parametrize("kind", ["RF64", "W64", "AIFF", "AU", "NIST", "MP3"])
def test_half_of_another_kind(kind, tmp_path):
    path = tmp_path / "a.x"
    noise = 0.1 * np.random.default_rng(0).standard_normal(2 * RATE)
    soundfile.write(path, noise, RATE, format=kind)
    check_whole(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        AudioError, match=r"cut off: its header says 2\.\d\d s, and [01]\."
    ):
        read_audio(path)


def test_a_whole_file_of_a_pipe_of_another_kind(tmp_path):
    """The size of AU is 0xffffffff where it is not known."""
    path = tmp_path / "a.au"
    soundfile.write(path, np.full(RATE, 0.1), RATE, format="AU")
    whole = path.read_bytes()
    path.write_bytes(whole[:8] + b"\xff" * 4 + whole[12:])
    check_whole(path)


def test_a_flac_that_was_written_into_a_pipe(tmp_path):
    """The number of samples, 36 bits behind 8 bytes of the first block's head, is 0."""
    path = tmp_path / "a.flac"
    soundfile.write(path, np.full(RATE, 0.1), RATE)
    content = bytearray(path.read_bytes())
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    path.write_bytes(content)
    for look in (check_whole, read_audio, seconds_of, check_audio_file):
        with pytest.raises(AudioError, match=r"a\.flac: its header does not tell how"):
            look(path)


def test_samples_without_a_header(tmp_path):
    """soundfile goes by the name."""
    path = tmp_path / "a.raw"
    write_wav(tmp_path / "a.wav")
    (tmp_path / "a.wav").rename(path)
    for look in (check_whole, read_audio, seconds_of, check_audio_file):
        with pytest.raises(AudioError, match=r"a\.raw: by its name \(\.raw\) sampl"):
            look(path)


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_half_of_an_ogg(subtype, tmp_path):
    """Its header tells no length, its last page that it is the last."""
    path = tmp_path / "a.ogg"
    wave = 0.1 * np.random.default_rng(0).standard_normal(20 * RATE)
    soundfile.write(path, wave, RATE, format="OGG", subtype=subtype)
    check_whole(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(AudioError, match="cut off: its last page is not marked"):
        read_audio(path)


def test_half_of_a_flac(tmp_path):
    """libsndfile says so itself, where it reads."""
    path = tmp_path / "a.flac"
    wave = 0.1 * np.random.default_rng(0).standard_normal(2 * RATE)
    soundfile.write(path, wave, RATE)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(AudioError, match=r"a\.flac cannot be read to its end"):
        read_audio(path)


def test_a_damaged_mp3(tmp_path, monkeypatch):
    """libsndfile finds damages where it reads; what it says is of no use."""
    path = tmp_path / "a.mp3"
    soundfile.write(path, np.full(RATE, 0.1), RATE, format="MP3")

    def damaged(*args, **kwargs):
        raise soundfile.LibsndfileError(1)

    monkeypatch.setattr(soundfile.SoundFile, "read", damaged)
    with pytest.raises(AudioError, match=r"a\.mp3 cannot be read to its end"):
        check_whole(path)


def _noise(seconds, path, kind):
    wave = 0.1 * np.random.default_rng(seconds).standard_normal(seconds * RATE)
    soundfile.write(path, wave, RATE, **kind)
    return path.read_bytes()


@pytest.mark.parametrize(
    "kind",
    [
        {"format": "FLAC"},
        {"format": "OGG", "subtype": "VORBIS"},
        {"format": "OGG", "subtype": "OPUS"},
        {"format": "MP3"},
        {"format": "CAF", "subtype": "PCM_16"},
        {"format": "AU", "subtype": "PCM_16"},
        {"format": "RF64", "subtype": "PCM_16"},
        {"format": "MAT5", "subtype": "PCM_16"},
        {"format": "PVF", "subtype": "PCM_16"},
        {"format": "VOC", "subtype": "PCM_16"},
        {"format": "W64", "subtype": "PCM_16"},
        {"format": "WVE", "subtype": "ALAW"},
        {"format": "XI", "subtype": "DPCM_16"},
        {"format": "WAV", "subtype": "PCM_16"},  # which libsndfile cannot read
        {"format": "AIFF", "subtype": "PCM_16"},
    ],
    ids=lambda kind: kind.get("subtype", kind["format"]),
)
def test_several_recordings_in_one_file(kind, tmp_path):
    """As `cat` makes them: libsndfile reads the first, and says nothing."""
    path = tmp_path / "audio"
    one = _noise(1, path, kind)
    check_whole(path)
    path.write_bytes(one + _noise(2, path, kind))
    with pytest.raises(AudioError, match=f"{path}: several recordings one after the"):
        check_whole(path)


def test_more_in_a_sphere_than_its_header_says(tmp_path):
    """All of it would be read, the second header too."""
    path = tmp_path / "a.sph"
    one = _noise(1, path, {"format": "NIST", "subtype": "PCM_16"})
    check_whole(path)
    path.write_bytes(one + one)
    with pytest.raises(
        AudioError, match="its header says 1.00 s, and 2.0. s are there"
    ):
        check_whole(path)


@pytest.mark.parametrize(
    "kind, lost",
    [
        ({"format": "WAV", "subtype": "MS_ADPCM"}, 1),
        ({"format": "WAV", "subtype": "IMA_ADPCM"}, 1),
        ({"format": "CAF", "subtype": "ALAC_16"}, 2),
        ({"format": "CAF", "subtype": "PCM_16"}, 1000),
    ],
    ids=lambda value: value.get("subtype") if isinstance(value, dict) else str(value),
)
def test_a_few_bytes_can_be_a_block_of_many_samples(kind, lost, tmp_path):
    path = tmp_path / "audio"
    whole = _noise(1, path, kind)
    check_whole(path)
    path.write_bytes(whole[:-lost])
    with pytest.raises(AudioError, match=f"{path}: cut off: its header says 1.0"):
        check_whole(path)


@pytest.mark.parametrize("name", ["a.au", "a.SND", "a.vox", "a.gsm", "a.raw"])
@pytest.mark.parametrize("content", ["an AU behind a line feed", "no audio"])
def test_what_has_the_name_of_samples_without_a_header(name, content, tmp_path):
    """libsndfile takes whatever it is for samples."""
    path = tmp_path / name
    noise = _noise(1, tmp_path / "au", {"format": "AU", "subtype": "PCM_16"})
    path.write_bytes(3000 * b"<html>" if content == "no audio" else b"\n" + noise)
    with pytest.raises(AudioError, match=f"{path}: by its name .{path.suffix}. sa"):
        file_info(path)


@pytest.mark.parametrize(
    "start",
    [
        b"RIFF\x24\x08\0\0WAVEfmt ",
        b"\0\0\0\x1cftypM4A \0\0\2\0",
        b"\0\0\0\x20ftypisom\0\0\2\0",
        b"FORM\0\1\0\0AIFFCOMM",
        b"TTA1\x01\0\x01\0\x10\0",
        bytes.fromhex("1a45dfa39f4286810142f7810142f281"),
        bytes.fromhex("1a45dfa301000000000000234286810142f78101"),
        bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"),
        b"#!AMR\n",
    ],
)
def test_several_recordings_of_a_kind_that_ffmpeg_reads(start, tmp_path):
    path = tmp_path / "audio"
    path.write_bytes(start + bytes(1000))
    check_alone(path, None)
    path.write_bytes((start + bytes(1000)) * 2)
    with pytest.raises(AudioError, match=f"{path}: several recordings one after the"):
        check_alone(path, None)


def test_two_chunks_of_samples_in_a_wav(tmp_path):
    """libsndfile refuses it, and ffmpeg would read the second alone."""
    chunk = b"data" + struct.pack("<I", 5) + bytes(6)  # odd sizes are filled up
    layout = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    path = tmp_path / "a.wav"
    for n in (1, 2):
        body = b"WAVE" + layout + n * chunk
        path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
        if n == 1:
            check_alone(path, None)
    with pytest.raises(AudioError, match=f"{path}: several recordings one after the"):
        check_alone(path, None)


@pytest.mark.parametrize("tag", [b"", b"ID3\x04\0\0\0\0\x23\x08" + bytes(4488)])
def test_an_mp3_that_does_not_count_its_frames(tag, tmp_path):
    """Its length is guessed: of one of variable bit rate half of it may be read."""
    path = tmp_path / "a.mp3"
    whole = _noise(2, path, {"format": "MP3"})
    path.write_bytes(tag + whole)
    check_whole(path)
    second = whole.index(whole[:2], 2)  # the first frame counts the others
    path.write_bytes(tag + whole[second:])
    with pytest.raises(AudioError, match=f"{path}: an MP3 that does not count its fr"):
        seconds_of(path)


def test_a_wav_that_goes_on_behind_its_end(tmp_path):
    """As of a recorder that counts from time to time, and was switched off."""
    path = tmp_path / "a.wav"
    whole = _noise(2, path, {"subtype": "PCM_16"})
    path.write_bytes(whole[: HEADER - 4] + struct.pack("<I", 2 * RATE) + whole[HEADER:])
    with pytest.raises(
        AudioError, match=r"its header says 1.00 s, and 2.00 s are ther"
    ):
        check_whole(path)
    id3 = b"TAG" + bytes(125)
    for more in (
        b"LIST\x04\0\0\0abcd",
        bytes(512),
        b"\n",
        id3,
        b"ID3\x03" + bytes(2000),
    ):
        path.write_bytes(whole + more)
        check_whole(path)
