"""Audio files that are not whole, and samples of another scale."""

import struct

import numpy as np
import pytest
import soundfile
import torch

from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.audio_files import (
    are_large,
    array_warning,
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
    "kind, large, trained_on, message",
    [
        ("kaldi_ark", True, "sound", "not scale, and the model was trained on sound"),
        ("kaldi_ark", True, "kaldi_ark", ""),
        ("kaldi_ark", True, None, ""),
        ("kaldi_ark", False, "sound", ""),
        ("sound", False, "sound", ""),
        ("sound", False, "kaldi_ark", "decode with the type kaldi_ark"),
        ("sound", False, None, ""),
        ("sound", True, "sound", "a.wav: its samples go far beyond -1 to 1"),
        ("sound", True, None, "divided by what is 1 there, such as 32768"),
        ("sound", True, "kaldi_ark", ""),
    ],
)
def test_the_scale_of_the_training(kind, large, trained_on, message):
    warning = scale_warning("a.wav", kind, large, trained_on)
    assert message in warning
    assert bool(warning) == bool(message)


@pytest.mark.parametrize(
    "large, trained_on, message",
    [
        (True, "sound", "the audio: its samples go far beyond -1 to 1"),
        (True, None, "or hand over integers"),
        (True, "kaldi_ark", ""),
        (False, "sound", ""),
        (False, None, ""),
        (False, "kaldi_ark", "hand over floats up to 32768"),
    ],
)
def test_the_scale_of_an_array(large, trained_on, message):
    warning = array_warning(large, trained_on)
    assert message in warning
    assert bool(warning) == bool(message)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
@pytest.mark.parametrize(
    "samples, large",
    [
        ([], False),
        ([0.0, 1.0, -1.0], False),
        ([0.5, 1.4], False),  # clipped: nothing else is as loud
        ([2.0, -5.0, 0.0], True),  # of 16 bits, next to silence
        ([0.25, -800.5], True),
        ([[0.25, 0.5], [0.5, -20000.0]], True),
        ([float("nan"), 0.5], False),
        ([float("nan"), 300.0], True),
        ([float("inf"), 0.5], False),
    ],
)
def test_samples_of_another_scale(samples, large, make):
    assert are_large(make(samples)) is large


def test_the_types_of_a_training():
    data = [["a/wav.scp", "speech", "kaldi_ark"], ["a/text", "text", "text"]]
    config = {"train_data_path_and_name_and_type": data}
    assert training_types(config) == {"speech": "kaldi_ark", "text": "text"}
    assert training_types({}) == {}
