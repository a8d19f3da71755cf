"""ESPnet's streaming speech recognition with another search."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from espnet_lenbias.errors import AudioError
from espnet_lenbias.espnet_compat import Speech2TextStreaming as EspnetStreaming
from espnet_lenbias.inference.audio_checks import (
    Audio,
    check_audio,
    check_samples,
    is_finite,
    is_short,
    short_audio_named,
)
from espnet_lenbias.inference.search_option import SearchOptionMixin
from espnet_lenbias.options.online import check_online
from espnet_lenbias.options.registry import ESPNET


class Speech2TextStreaming(SearchOptionMixin, EspnetStreaming):
    """ESPnet's streaming recogniser, with a search chosen by name.

    Takes all that ``espnet2.bin.asr_inference_streaming.Speech2TextStreaming`` takes,
    and `search` and `search_conf` as
    :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin` tells.

    Examples:
        >>> speech2text = Speech2TextStreaming(
        ...     "config.yaml", "model.pth", beam_size=20, search="explicit_length"
        ... )
        >>> for chunk in chunks:
        ...     partial = speech2text(chunk, is_final=False)
        >>> text, tokens, token_ids, hypothesis = speech2text(last_chunk)[0]

    """

    @classmethod
    def _check_model(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify that search and model can be online."""
        check_online(search, options)

    def __call__(self, speech: Audio, is_final: bool = True) -> Any:
        """Take a chunk of an utterance.

        Args:
            speech: (samples,), which may be none.
            is_final: Whether it is the last one.

        Returns:
            The n-best list so far, (text, tokens, token ids, hypothesis) each.

        Raises:
            AudioError: The chunk holds NaN or infinity, or the utterance is too short
                as a whole. It is given up, here and with whatever else goes wrong: the
                next chunk is another one's first.
        """
        if self.search == ESPNET:
            return super().__call__(speech, is_final)
        try:
            states = self.frontend_states
            before = states["waveform_buffer"] if states else None
            check_samples(speech, "the chunk", before)
            if not is_finite(speech):
                raise AudioError("the chunk holds NaN or infinity")
            samples = self._samples(speech)
            if is_short(sum(self._lengths)):
                self._lengths.append(len(samples))
            if not is_final:
                return super().__call__(samples, is_final)
            heard = torch.zeros(1).expand(sum(self._lengths))  # so long, of no memory
            with short_audio_named(heard, partial(self._replay, [*self._lengths])):
                return super().__call__(samples)
        except BaseException:
            self.reset()
            raise

    def reset(self) -> None:
        """Forget the utterance: the next chunk is the first one of another."""
        self._lengths: list[int] = []  # of its chunks, as long as it may be too short
        super().reset()

    def apply_frontend(
        self, speech: torch.Tensor, prev_states: Any = None, is_final: bool = False
    ) -> Any:
        """Wait for more samples where ESPnet wants to keep more than have come.

        The last ones are filled up to a window here: ESPnet does so for one channel.
        """
        known = (
            prev_states["waveform_buffer"] if prev_states is not None else speech[:0]
        )
        half_window = math.ceil(math.ceil(self.win_length / self.hop_length) / 2)
        n_frames = (len(known) + len(speech)) // self.hop_length
        missing = self.win_length - len(known) - len(speech)
        if is_final and missing > 0:
            silence = speech.new_zeros(missing, *speech.shape[1:])
            speech = torch.cat([speech, silence])
        if is_final or n_frames >= 2 * half_window - 1:
            return super().apply_frontend(speech, prev_states, is_final)
        return None, None, {"waveform_buffer": torch.cat([known, speech])}

    def _replay(self, lengths: list[int], speech: torch.Tensor) -> None:
        """Decode an utterance, (samples,), in chunks; the last takes what is left."""
        self.reset()
        for length in lengths[:-1]:
            super().__call__(speech[:length], is_final=False)
            speech = speech[length:]
        super().__call__(speech)


class ChunkedRecognizer:
    """Hands whole utterances to a streaming recogniser, chunk by chunk."""

    batch_size = 1

    def __init__(self, model: EspnetStreaming, chunk: int):
        """Wrap a recogniser.

        Args:
            model: ESPnet's or ours.
            chunk: Samples of a chunk; 0: all.
        """
        self._model = model
        self._chunk = chunk
        self.nbest = model.nbest

    def __call__(self, speech: torch.Tensor) -> list[tuple[Any, ...]]:
        """Decode one utterance, (samples,); return its n-best list.

        Raises:
            AudioError: The utterance is empty, too short, or holds NaN or infinity.
        """
        check_audio(speech)
        # A streaming encoder is asked by decoding: ESPnet has no other way into it.
        with short_audio_named(speech, self._decode):
            return self._decode(speech)

    def _decode(self, speech: torch.Tensor) -> list[tuple[Any, ...]]:
        self._model.reset()  # an utterance that failed has left its blocks
        size = self._chunk or len(speech) + 1
        whole = len(speech) // size  # as ESPnet's tool: the last may be of no samples
        for i in range(whole):
            self._model(speech[i * size : (i + 1) * size], is_final=False)
        nbest: list[tuple[Any, ...]]
        nbest = self._model(speech[whole * size :], is_final=True)
        return nbest
