"""Audio files that are not whole, and samples of another scale."""

import struct

import numpy as np
import pytest
import soundfile

from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.audio_files import (
    check_rate,
    check_whole,
    read_audio,
    scale_warning,
    training_types,
)

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


@pytest.mark.parametrize(
    "kind, integers, trained_on, message",
    [
        ("kaldi_ark", True, "sound", "not scale, and the model was trained on sound"),
        ("kaldi_ark", True, "kaldi_ark", ""),
        ("kaldi_ark", True, None, ""),
        ("kaldi_ark", False, "sound", ""),
        ("sound", False, "sound", ""),
        ("sound", False, "kaldi_ark", "decode with the type kaldi_ark"),
        ("sound", False, None, ""),
    ],
)
def test_the_scale_of_the_training(kind, integers, trained_on, message):
    warning = scale_warning("a.wav", kind, integers, trained_on)
    assert message in warning
    assert bool(warning) == bool(message)


def test_the_types_of_a_training():
    data = [["a/wav.scp", "speech", "kaldi_ark"], ["a/text", "text", "text"]]
    config = {"train_data_path_and_name_and_type": data}
    assert training_types(config) == {"speech": "kaldi_ark", "text": "text"}
    assert training_types({}) == {}


@pytest.mark.parametrize("data", [5, "abc", [1, 2], ["abc"], [["a", "b"]], {"a": 1}])
def test_data_of_a_training_that_are_none(data):
    config = {"train_data_path_and_name_and_type": data}
    assert training_types(config).get("speech") is None


@pytest.mark.parametrize("conf", [None, [1], "fs", 5, {"fs": [1]}, {"fs": None}])
def test_a_rate_that_is_none_is_not_compared(conf):
    if isinstance(conf, dict):
        check_rate("a.wav", 8000, conf)
    else:  # without one it is ESPnet's default
        with pytest.raises(ValueError, match="8000 samples a second, .* takes 16000"):
            check_rate("a.wav", 8000, conf)
