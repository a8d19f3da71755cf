"""What is taken for audio that is too short, or far too long."""

import argparse
import logging

import numpy as np
import pytest
import torch

from espnet_lenbias.errors import AudioError, ScorerError
from espnet_lenbias.espnet_compat import TooShortUttError
from espnet_lenbias.inference import audio_checks
from espnet_lenbias.inference.audio_checks import short_audio_named


def encoder(least: int, error: Exception):
    """Return an encoder that fails on fewer samples than `least`."""

    def encode(speech: torch.Tensor) -> None:
        if len(speech) < least:
            raise error

    return encode


@pytest.mark.parametrize(
    "error",
    [RuntimeError("padding size"), TooShortUttError("too short", 1, 7)],
    ids=["STFT", "subsampling"],
)
@pytest.mark.parametrize("kind", [np.zeros, torch.zeros])
def test_the_encoder_fails_at_the_length(error, kind):
    speech = kind(50)
    with (
        pytest.raises(AudioError, match="too short for the encoder: 50 samples") as e,
        short_audio_named(speech, encoder(100, error)),
    ):
        raise error
    assert e.value.__cause__ is error


@pytest.mark.parametrize(
    "error, least",
    [
        (RuntimeError("in the search"), 0),  # the encoder takes the audio
        (RuntimeError("of the device"), 10**9),  # the encoder takes no audio at all
        (ScorerError("NaN"), 100),
    ],
)
def test_an_error_of_another_kind_stays(error, least):
    with (
        pytest.raises(type(error)) as e,
        short_audio_named(torch.zeros(50), encoder(least, RuntimeError())),
    ):
        raise error
    assert e.value is error


def test_what_is_said_of_silence_is_not_logged(caplog):
    """A streaming encoder is asked by decoding, which has much to say."""

    def encode(speech: torch.Tensor) -> None:
        logging.warning("the output was cut")
        if len(speech) < 100:
            raise RuntimeError

    with (
        pytest.raises(AudioError, match="too short for the encoder: 50 samples"),
        short_audio_named(torch.zeros(50), encode),
    ):
        raise RuntimeError
    logging.warning("of an utterance")
    assert [record.message for record in caplog.records] == ["of an utterance"]


def test_the_encoder_is_not_asked_about_longer_audio():
    def encode(_: torch.Tensor) -> None:
        pytest.fail("asked")

    with (
        pytest.raises(RuntimeError, match="in the search"),
        short_audio_named(torch.zeros(6001), encode),
    ):
        raise RuntimeError("in the search")


@pytest.mark.parametrize(
    ("config", "seconds", "warned"),
    [
        ({"encoder": "conformer", "frontend_conf": {"fs": "8k"}}, 40.1, True),
        ({"encoder": "conformer", "frontend_conf": {"fs": "8k"}}, 39.9, False),
        ({"encoder": "conformer"}, 20.1, False),  # at the usual 16 kHz
        ({"encoder": "conformer"}, 80.1, True),
        ({"encoder": "whisper", "frontend_conf": {"fs": "8k"}}, 99, False),
        ({"encoder": "conformer", "frontend_conf": {"fs": "fast"}}, 99, False),
    ],
)
def test_audio_that_is_far_too_long_is_said_once(config, seconds, warned, caplog):
    """At 8000 samples for each of these seconds; Whisper has a warning of its own."""
    model = audio_checks.Samples()
    model.asr_train_args = argparse.Namespace(**config)
    for _ in range(2):
        model._samples(torch.zeros(int(8000 * seconds)))
    said = [m for m in caplog.messages if "models are trained on utterances" in m]
    assert len(said) == warned
