"""Audio that is handed to an inference object: is it some, and enough?"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from espnet_lenbias.errors import AudioError, ScorerError
from espnet_lenbias.espnet_compat import TooShortUttError
from espnet_lenbias.inference.model_checks import train_args_of
from espnet_lenbias.options.audio_files import (
    are_large,
    array_warning,
    length_warning,
    model_rate,
    training_types,
)
from espnet_lenbias.options.train_config import feature_size

logger = logging.getLogger(__name__)

Audio = torch.Tensor | np.ndarray  # (samples,)

# Up to so many samples it may be the length that encoders fail at: one that makes one
# frame of eight takes 17 in a stream, of 256 samples and more. Half a second at 16 kHz is
# enough for each.
_SHORT = 6000
_ENOUGH = 8000


def is_finite(wave: Audio) -> bool:
    """Tell whether all samples are numbers."""
    return bool(_as_tensor(wave).isfinite().all())


def check_audio(wave: Audio, name: str = "the audio") -> None:
    """Verify that there is something to decode.

    Raises:
        AudioError: Says what is wrong with the audio of this name: all of it, since
            a part of good audio may well be next to silence.
        TypeError: It is no audio.
    """
    check_samples(wave, name)
    if warning := width_warning(wave, name):
        raise AudioError(warning)
    if not len(wave):
        raise AudioError(f"{name} is empty")
    if not is_finite(wave):
        raise AudioError(f"{name} holds NaN or infinity")


def check_one_channel(wave: Audio, name: str = "the audio") -> None:
    """Verify that audio is of one channel, as ESPnet's S2T models take it.

    Raises:
        AudioError: It has several.
    """
    if wave.ndim > 1 and wave.shape[1] > 1:
        raise AudioError(
            f"{name} has {wave.shape[1]} channels, and a model of S2T takes one: give "
            "one of them, or their mean"
        )


def check_samples(wave: Any, name: str, before: torch.Tensor | None = None) -> None:
    """Verify that this is an array of samples, not a file name or the like.

    Args:
        wave: What was given.
        name: What a message calls it.
        before: Samples of the same stream; None: there are none yet.

    Raises:
        AudioError: It is of another shape than (samples,) or (samples, channels).
        TypeError: It is something else, of a type that no samples have, or masked.
    """
    if not isinstance(wave, Audio) or not wave.ndim:
        raise TypeError(
            f"{name} is a {type(wave).__name__}: give its samples, an array or a "
            "tensor (samples,), such as soundfile.read(path)[0]"
        )
    if before is not None and before.shape[1:] != wave.shape[1:]:
        raise AudioError(
            f"{name} is of shape {tuple(wave.shape)}, and what came before it was of "
            f"(samples{''.join(f', {n}' for n in before.shape[1:])})"
        )
    looks_turned = wave.ndim == 2 and 0 < len(wave) < wave.shape[1]
    if wave.ndim > 2 or (looks_turned and before is None):
        raise AudioError(
            f"{name} is of shape {tuple(wave.shape)}: give (samples,), or (samples, "
            "channels)"
        )
    if isinstance(wave, np.ma.MaskedArray) and np.ma.is_masked(wave):
        raise TypeError(
            f"{name} has samples that are masked: give what is to be heard in their "
            "place, such as wave.filled(0)"
        )
    if isinstance(wave, torch.Tensor) and wave.layout != torch.strided:
        raise TypeError(f"{name} is a sparse tensor: give wave.to_dense()")
    if not _is_signed(wave):
        raise TypeError(
            f"{name} holds {wave.dtype}: give floats from -1 to 1, or signed integers"
        )


def _as_tensor(wave: Audio) -> torch.Tensor:
    """Return an array as a tensor: torch takes no other byte order, and no flipped one."""
    if isinstance(wave, np.ndarray):
        kind = wave.dtype.newbyteorder("=")
        kind = np.dtype("f8") if kind.kind == "f" and kind.itemsize > 8 else kind
        wave = np.ascontiguousarray(wave, dtype=kind)
    return torch.as_tensor(wave)


def _is_signed(wave: Audio) -> bool:
    """Tell whether these are floats or signed integers."""
    if isinstance(wave, np.ndarray):
        return wave.dtype.kind in "fi"
    return wave.dtype.is_signed and not wave.dtype.is_complex


def width_warning(wave: Audio, name: str) -> str:
    """Return what is wrong where wider integers hold samples of 16 bits.

    By the range of these they would be 90 dB down, which no utterance is. Quiet samples
    of 24 bits, whose last byte is 0, are no such.
    """
    samples = _as_tensor(wave)
    if samples.is_floating_point() or torch.iinfo(samples.dtype).bits <= 16:
        return ""
    if not samples.numel() or not 0 < int(samples.abs().amax()) <= 2**15:
        return ""
    if not (samples % 256).any():
        return ""
    return (
        f"{name} holds {wave.dtype}, and its samples are in the range of 16 bits, "
        "which would be next to silence: give int16, or floats from -1 to 1"
    )


def as_samples(wave: Audio) -> torch.Tensor:
    """Return samples as a tensor of floats; integers are scaled by their range.

    Args:
        wave: (samples,) or (samples, channels), see :func:`check_samples`.
    """
    samples = _as_tensor(wave)
    if samples.is_floating_point():
        return samples
    return samples.float() / -float(torch.iinfo(samples.dtype).min)


def lengths_of(speech: Sequence[Audio] | Audio, lengths: Any = None) -> list[int]:
    """Return of how many samples each utterance of a batch is.

    Args:
        speech: A list of (samples,), or (B, samples).
        lengths: (B,) samples of each, behind which there is padding; None: there is none.
    """
    return [int(n) for n in (map(len, speech) if lengths is None else lengths)]


class Samples:
    """Makes tensors of audio, and warns, once for an object, of scale and length."""

    # Whether they are looked at.
    warns_of_scale = True
    warns_of_length = True

    def _samples(self, wave: Audio) -> torch.Tensor:
        """Return samples as :func:`as_samples` does.

        Raises:
            AudioError: The model takes features of another shape.
        """
        samples = as_samples(wave)
        size = feature_size(self._train_config())
        if size is not None and samples.shape[1:] != (size,):
            raise AudioError(
                f"the audio is of shape {tuple(samples.shape)}, and this model takes "
                f"features, of (frames, {size})"
            )
        if self.warns_of_scale:
            warning = array_warning(are_large(samples), self._trained_on())
            if warning:
                logger.warning(f"{warning}; this is said once")
                self.warns_of_scale = False
        if self.warns_of_length:
            warning = self._length_warning(len(samples))
            if warning:
                logger.warning(f"{warning}; this is said once")
                self.warns_of_length = False
        return samples

    def _trained_on(self) -> str | None:
        """Return the type of the audio in training; None: not known."""
        return training_types(self._train_config()).get("speech")

    def _length_warning(self, n_samples: int) -> str:
        """Return what is wrong with the length; where there is a window, nothing is."""
        config = self._train_config()
        if hasattr(self, "s2t_train_args") or config.get("encoder") == "whisper":
            return ""
        rate = model_rate(config.get("frontend_conf"))
        if not rate:
            return ""
        return length_warning("the audio", n_samples / rate)

    def _train_config(self) -> Mapping[str, Any]:
        """Return the options of the model's training."""
        args = train_args_of(self)
        options: Mapping[str, Any] = {} if args is None else vars(args)
        return options


@contextmanager
def short_audio_named(
    speech: Audio, encode: Callable[[torch.Tensor], Any]
) -> Iterator[None]:
    """Turn what encoders say of audio that is too short for them into an AudioError.

    One kind of subsampling has an error of its own for this. The STFT, convolutions and
    RNNs raise a RuntimeError, each with another message. Its message is not judged, the
    encoder is asked: silence of this length fails too, and longer silence does not.

    Args:
        speech: (samples,), which is decoded in the context.
        encode: Encodes audio of that shape.

    Raises:
        AudioError: Says of how many samples the audio is.
    """
    too_short = f"the audio is too short for the encoder: {len(speech)} samples"
    try:
        yield
    except TooShortUttError as e:
        raise AudioError(f"{too_short} ({e})") from e
    except RuntimeError as e:
        if isinstance(e, ScorerError) or not is_short(len(speech)):
            raise
        silence = torch.zeros(_ENOUGH, *speech.shape[1:])
        if _can_encode(silence[: len(speech)], encode) or not _can_encode(
            silence, encode
        ):
            raise
        raise AudioError(too_short) from e


def is_short(n_samples: int) -> bool:
    """Tell whether audio may be too short for an encoder."""
    return n_samples <= _SHORT


@torch.no_grad()
def _can_encode(speech: torch.Tensor, encode: Callable[[torch.Tensor], Any]) -> bool:
    before = logging.root.manager.disable
    logging.disable()  # what is said of silence is of no utterance
    try:
        encode(speech)
    except (TooShortUttError, RuntimeError):
        return False
    finally:
        logging.disable(before)
    return True
