"""ESPnet's speech recognition with another search."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from espnet2.bin import asr_inference as espnet_asr

from espnet_lenbias.errors import AudioError, OptionError, ScorerError
from espnet_lenbias.espnet_compat import OneByOne, decodes_batches
from espnet_lenbias.inference.audio_checks import (
    Audio,
    as_samples,
    check_audio,
    check_samples,
    is_finite,
    is_short,
    lengths_of,
    short_audio_named,
)
from espnet_lenbias.inference.encoding import encode_alone, padded
from espnet_lenbias.inference.speech_option import SpeechSearchOptionMixin
from espnet_lenbias.inference.whisper_results import without_primer
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.options.train_config import train_config
from espnet_lenbias.search.label_synchronous import LabelSynchronousSearch
from espnet_lenbias.search.trace import Trace

# ESPnet's options for what outputs start with, which it leaves aside for other models.
_PROMPTS = ("lang_prompt_token", "nlp_prompt_token", "lid_prompt")

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

    @classmethod
    def _check_model(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify that what a prompt is made of is for a Whisper model."""
        given = [key for key in _PROMPTS if options.get(key)]
        config = train_config(options, "asr") if given else {}
        model = options.get("bpemodel") or config.get("bpemodel")
        if config and not str(model).startswith("whisper_"):
            raise OptionError(
                f"{given[0]}: only Whisper models take a prompt, and this one has the "
                f"bpemodel {model}: leave {given[0]} out"
            )

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
    ) -> Any:
        """Decode a list of utterances as one batch, or a padded array as ESPnet does.

        Each utterance is encoded alone, so its result is the one that it has alone. One
        of a list that would be an :class:`AudioError` alone gets the empty text, with a
        warning in the log.

        Args:
            speech: A list of (samples,), or (B, samples) with `speech_lengths`.
            speech_lengths: (B,) samples of each.

        Returns:
            The n-best list of each utterance.

        Raises:
            AudioError: An utterance of a padded array cannot be decoded.
        """
        decode = partial(self._decode_batch, speech, speech_lengths)
        return self._decided(decode, partial(lengths_of, speech, speech_lengths))

    def _decode_batch(
        self, speech: Audio | Sequence[Audio], speech_lengths: Any
    ) -> Any:
        """Decode a batch; see :meth:`batch_decode`."""
        if isinstance(speech, (list, tuple)):
            return self._decode_list(speech)
        if speech_lengths is None:
            raise ValueError("speech_lengths is required for a padded array")
        waves = [wave[: int(n)] for wave, n in zip(speech, speech_lengths)]
        names = ["the audio"]
        if len(waves) > 1:
            names = [f"utterance {i} of the batch" for i in range(len(waves))]
        if self.search == ESPNET:
            for wave, name in zip(waves, names):
                self._encodable(wave, name)
            return super().batch_decode(as_samples(cast(Audio, speech)), speech_lengths)
        if self._searches_batches():
            return self._search([self._frames_of(*one) for one in zip(waves, names)])
        for wave, name in zip(waves, names):
            check_audio(wave, name)
        return [self(wave) for wave in waves]

    def _decode_list(self, speech: Sequence[Audio]) -> list[Any]:
        """Decode a list; see :meth:`batch_decode`."""
        prepare: Callable[[Audio], Any] = self._alone
        decode: Callable[[list[Any]], list[Any]] = list
        if self.search == ESPNET:
            prepare, decode = self._encodable, super().batch_decode
        elif self._searches_batches():
            prepare, decode = self._frames_of, self._search
        results: list[Any] = []  # of each utterance, or its place in `prepared`
        prepared: list[Any] = []
        traces: list[Trace] = []  # of what has been decoded, where the search has them
        for i, wave in enumerate(speech):
            check_samples(wave, f"utterance {i} of the list")
            try:
                prepared.append(prepare(wave))
                results.append(len(prepared) - 1)
                traces += self._traces() if decode is list else []
            except AudioError as e:
                logger.warning(f"utterance {i} of the list: {e}; its text is empty")
                results.append(self._nothing_heard())
        found = decode(prepared) if prepared else []
        if decode == self._search and prepared:
            traces = self._traces()
        if isinstance(self.beam_search, LabelSynchronousSearch):
            self.beam_search.trace = [
                traces[r] if isinstance(r, int) else Trace(stopped="empty")
                for r in results
            ]
        return [found[r] if isinstance(r, int) else r for r in results]

    def _traces(self) -> list[Trace]:
        """Return how the last call of a search of this package went."""
        search = self.beam_search
        return search.trace if isinstance(search, LabelSynchronousSearch) else []

    def _searches_batches(self) -> bool:
        """Tell whether the search takes the encoder outputs of several utterances.

        Where the encoder's layers have predictions of their own, ESPnet returns these
        for an utterance alone.
        """
        has_own = getattr(self.asr_model.encoder, "interctc_layer_idx", None)
        return decodes_batches() and self._can_batch_decode() and not has_own

    def _encodable(self, wave: Audio, name: str = "the audio") -> torch.Tensor:
        """Return the samples of an utterance, (samples,).

        Raises:
            AudioError: The utterance cannot be decoded.
        """
        check_audio(wave, name)
        samples = self._samples(wave)
        if is_short(len(samples)):  # beside longer ones it would not be found out
            with short_audio_named(samples, self._encode):
                self._encode(samples)
        return samples

    def _frames_of(self, wave: Audio, name: str = "the audio") -> torch.Tensor:
        """Return the encoder output of an utterance, (T, D).

        Raises:
            AudioError: The utterance cannot be decoded.
        """
        check_audio(wave, name)
        samples = self._samples(wave)
        # asr.sh counts these lines, one an utterance
        logger.info(f"speech length: {len(samples)}")
        with short_audio_named(samples, self._encode):
            frames = encode_alone(self, samples)
        if not is_finite(frames):
            raise AudioError(
                f"the encoder makes NaN or infinity of the audio, whose samples go up to "
                f"{float(samples.abs().amax()):g}"
            )
        return frames

    def _alone(self, wave: Audio) -> Any:
        """Return the n-best list of an utterance.

        Raises:
            AudioError: The utterance cannot be decoded.
        """
        try:
            return self(wave)
        except ScorerError:
            self._frames_of(wave)  # raises if it is the encoder's
            raise

    def _search(self, frames: list[torch.Tensor]) -> list[Any]:
        """Return the n-best list of each of several encoder outputs, (T, D) each."""
        if not frames:
            return []
        for module in self.beam_search.modules():
            if hasattr(module, "setup_step"):  # of an S4 decoder, as ESPnet does
                module.setup_step()
        x, lengths = padded(frames)
        found = self.beam_search(
            x,
            x_lengths=lengths,
            maxlenratio=self.maxlenratio,
            minlenratio=self.minlenratio,
        )
        return [without_primer(self, self._hyps_to_results(hyps)) for hyps in found]
