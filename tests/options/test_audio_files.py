"""Samples of another scale, and what audio files say of themselves."""

import numpy as np
import pytest
import soundfile
import torch

from espnet_lenbias.errors import AudioError
from espnet_lenbias.options.audio_files import (
    are_large,
    array_warning,
    check_audio_file,
    check_rate,
    read_stretch,
    scale_warning,
    training_types,
)


@pytest.mark.parametrize(
    "kind, large, trained_on, message",
    [
        ("kaldi_ark", True, "sound", "not scale, and the model was trained on sound"),
        ("kaldi_ark", True, "kaldi_ark", ""),
        ("kaldi_ark", True, None, ""),
        ("kaldi_ark", False, "sound", ""),
        ("npy", True, "sound", "not scale, and the model was trained on sound"),
        ("npy", True, "npy", ""),
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


def test_what_to_do_about_the_rate_of_a_command():
    with pytest.raises(
        ValueError, match=r"end with: sox -t wav - -r 16000 -t wav - \|"
    ):
        check_rate("cat a.wav |", 8000, None)


@pytest.mark.parametrize("kind", ["WAV", "GSM"])
@pytest.mark.parametrize(
    "start, end, first, last",
    [
        (0, None, 0, 16000),
        (0.5, 0.75, 4000, 6000),
        (1.5, None, 12000, 16000),
        (3, 4, 0, 0),
    ],
)
def test_a_stretch_is_what_lies_between(kind, start, end, first, last, tmp_path):
    """In GSM there is no way to it but through what is before."""
    path = tmp_path / "a.wav"
    wave = 0.1 * np.random.default_rng(0).standard_normal(16000)
    soundfile.write(path, wave, 8000, subtype={"WAV": "PCM_16", "GSM": "GSM610"}[kind])
    whole, _ = soundfile.read(path)
    with soundfile.SoundFile(path) as f:
        assert f.seekable() == (kind == "WAV")
        samples = read_stretch(f, start, end, dtype="float64")
    last = len(whole) if end is None else last
    np.testing.assert_array_equal(samples, whole[first:last])


@pytest.mark.parametrize("rate, speech", [(1, False), (8000, True)])
def test_a_header_that_says_that_audio_is_a_thousand_times_as_long(
    rate, speech, tmp_path
):
    soundfile.write(tmp_path / "a.wav", np.ones(8000), rate)
    if speech:
        check_audio_file(tmp_path / "a.wav")
        return
    with pytest.raises(AudioError, match="a.wav: its header says 1 samples a second"):
        check_audio_file(tmp_path / "a.wav")


@pytest.mark.parametrize("kind", [("MP3", "MPEG_LAYER_III"), ("OGG", "OPUS")])
def test_pieces_of_what_is_compressed_are_those_of_the_whole(kind, tmp_path):
    """A decoder that begins there may make other samples of the place."""
    rng = np.random.default_rng(0)
    time = np.arange(30 * 16000) / 16000
    loud = np.repeat(rng.uniform(0, 0.5, 300), 1600)
    tones = np.repeat(rng.uniform(100, 3000, 300), 1600)
    wave = loud * np.sin(2 * np.pi * tones * time) + 0.02 * rng.standard_normal(480000)
    path = tmp_path / "a"
    soundfile.write(path, wave, 16000, format=kind[0], subtype=kind[1])
    whole, _ = soundfile.read(path, dtype="float32")
    for start in np.linspace(0.3, 28.7, 60):
        with soundfile.SoundFile(path) as f:
            piece = read_stretch(f, start, start + 1.0, dtype="float32")
        first = round(start * 16000)
        last = round((start + 1.0) * 16000)
        np.testing.assert_allclose(piece, whole[first:last], rtol=0, atol=1e-6)
