"""ESPnet's speech recognition with another search."""

import logging
from collections.abc import Sequence
from typing import Any, cast

import torch
from espnet2.bin import asr_inference as espnet_asr

from espnet_lenbias.errors import AudioError, ScorerError
from espnet_lenbias.espnet_compat import OneByOne, TooShortUttError
from espnet_lenbias.inference.audio_checks import (
    Audio,
    check_audio,
    check_samples,
    is_finite,
    is_short,
    short_audio_named,
)
from espnet_lenbias.inference.search_option import SpeechSearchOptionMixin
from espnet_lenbias.options.registry import ESPNET

logger = logging.getLogger(__name__)


class Speech2Text(SpeechSearchOptionMixin, espnet_asr.Speech2Text, OneByOne):
    """ESPnet's speech recogniser, with a search chosen by name.

    Takes all that ``espnet2.bin.asr_inference.Speech2Text`` takes, and `search` and
    `search_conf` as :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin`
    tells.

    Examples:
        >>> speech2text = Speech2Text(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = speech2text(audio)[0]
        >>> hypothesis.score  # log-prob of the text and its length

    """

    def __call__(self, speech: Audio | Sequence[Audio]) -> Any:
        """Decode one utterance, or a list of them as one batch.

        Args:
            speech: (samples,) or a list of such; see :meth:`batch_decode`.

        Returns:
            The n-best list, (text, tokens, token ids, hypothesis) each, best first; of
            a list such a list for each utterance.

        Raises:
            AudioError: The utterance is empty, too short, or holds NaN or infinity.
        """
        if isinstance(speech, (list, tuple)):
            return self.batch_decode(speech)
        return super().__call__(cast(Audio, speech))

    def batch_decode(
        self, speech: Audio | Sequence[Audio], speech_lengths: Any = None
    ) -> list[Any]:
        """Decode a list of utterances as one batch, or a padded array as ESPnet does.

        An utterance of a list that would be an :class:`AudioError` alone gets the empty
        text, with a warning in the log, and the others are decoded as if without it.

        Args:
            speech: A list of (samples,), or (B, samples) with `speech_lengths`.
            speech_lengths: (B,) samples of each.

        Returns:
            The n-best list of each utterance.

        Raises:
            AudioError: An utterance of a padded array cannot be decoded.
        """
        if self.search == ESPNET:
            return super().batch_decode(speech, speech_lengths)
        if isinstance(speech, (list, tuple)):
            return self._decode_list(speech)
        if speech_lengths is None:
            raise ValueError("speech_lengths is required for a padded array")
        for i, (wave, n_samples) in enumerate(zip(speech, speech_lengths)):
            check_audio(wave[:n_samples], f"utterance {i} of the batch")
        lengths = [int(n_samples) for n_samples in speech_lengths]
        shortest = lengths.index(min(lengths))
        with short_audio_named(speech[shortest][: lengths[shortest]], self._encode):
            return super().batch_decode(speech, speech_lengths)

    def _decode_list(self, speech: Sequence[Audio]) -> list[Any]:
        """Decode a list; see :meth:`batch_decode`."""
        if not speech:
            return []
        waves = [_finite_or_empty(wave, i) for i, wave in enumerate(speech)]
        try:
            return super().batch_decode(waves)
        except TooShortUttError:
            pass
        except RuntimeError as e:
            if isinstance(e, ScorerError) or not any(map(is_short, waves)):
                raise
        # Encoders fail on a batch in which one utterance is too short for them. Each
        # alone, the others are decoded, and whatever else is wrong shows again.
        return [self._decode_or_nothing(wave, i) for i, wave in enumerate(waves)]

    def _decode_or_nothing(self, wave: Audio, place: int) -> Any:
        """Decode an utterance of a list; to the empty text if that is impossible."""
        try:
            return self(wave)
        except AudioError as e:
            logger.warning(f"utterance {place} of the list: {e}; its text is empty")
            return self._decode_single_sample(torch.zeros(0, 1))


def _finite_or_empty(wave: Audio, place: int) -> Audio:
    """Return the audio of an utterance of a list; no samples if it has broken ones.

    Raises:
        AudioError: It is of another shape.
        TypeError: It is no audio.
    """
    check_samples(wave, f"utterance {place} of the list")
    if is_finite(wave):
        return wave
    logger.warning(
        f"utterance {place} of the list: the audio holds NaN or infinity; its text is "
        "empty"
    )
    return wave[:0]
