"""What ESPnet's streaming recogniser and translator share with another search."""

import logging
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from espnet_lenbias.errors import AudioError
from espnet_lenbias.inference.audio_checks import (
    Audio,
    check_audio,
    check_samples,
    is_finite,
    is_short,
    short_audio_named,
    width_warning,
)
from espnet_lenbias.inference.search_option import SearchOptionMixin
from espnet_lenbias.options.online import check_online

logger = logging.getLogger(__name__)

# In the states of a frontend: what it holds has made no frame yet.
_UNHEARD = "unheard"


class StreamingSearchMixin(SearchOptionMixin):
    """:class:`SearchOptionMixin` for a class that hears audio chunk by chunk."""

    # None means something for these: time-synchronous search without a transducer.
    _filled_in: Mapping[str, Any] = {}
    _streams = True

    # Whether chunks are looked at: a part of good audio may be next to silence.
    warns_of_width = True

    @classmethod
    def _check_search(cls, search: str, options: Mapping[str, Any]) -> None:
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
        try:
            check_samples(speech, "the chunk", self._waiting())
            if not is_finite(speech):
                raise AudioError("the chunk holds NaN or infinity")
            if self.warns_of_width and (why := width_warning(speech, "the chunk")):
                logger.warning(f"{why}; this is said once")
                self.warns_of_width = False
            samples = self._samples(speech)
            if is_short(sum(self._lengths)):
                self._lengths.append(len(samples))
            if not is_final:
                return self._take(samples, is_final)
            heard = torch.zeros(1).expand(sum(self._lengths))  # so long, of no memory
            with short_audio_named(heard, partial(self._replay, [*self._lengths])):
                return self._take(samples, is_final)
        except BaseException:
            if not is_final:
                logger.warning(
                    "a chunk could not be taken, and what was heard before it is given up: "
                    "the next chunk is the first of another utterance"
                )
            self.reset()
            raise

    def reset(self) -> None:
        """Forget the utterance: the next chunk is the first one of another."""
        self._lengths: list[int] = []  # of its chunks, as long as it may be too short
        super().reset()

    def apply_frontend(
        self, speech: torch.Tensor, prev_states: Any = None, is_final: bool = False
    ) -> Any:
        """Fill the last samples up to a window: ESPnet does so for one channel.

        Chunks that make no frame yet are put before the first that does. ESPnet takes that
        one for a later one, and leaves out what would have been heard before.
        """
        if prev_states is not None and _UNHEARD in prev_states:
            speech = torch.cat([prev_states["waveform_buffer"], speech])
            prev_states = None
        known = (
            prev_states["waveform_buffer"] if prev_states is not None else speech[:0]
        )
        n_samples = len(known) + len(speech)
        states: Any
        if not is_final and not self._makes_frames(n_samples):
            feats, lengths = None, None
            states = {"waveform_buffer": torch.cat([known, speech])}
        else:
            if is_final and n_samples < self.win_length:
                missing = self.win_length - n_samples
                silence = speech.new_zeros(missing, *speech.shape[1:])
                speech = torch.cat([speech, silence])
            feats, lengths, states = super().apply_frontend(
                speech, prev_states, is_final
            )
        if feats is None and prev_states is None:
            states[_UNHEARD] = True
        return feats, lengths, states

    def _makes_frames(self, n_samples: int) -> bool:
        """Tell whether ESPnet can be given so many samples before the last chunk."""
        return True

    def _take(self, speech: Audio, is_final: bool) -> Any:
        """Hand a chunk to ESPnet's object, which calls the search with its frames."""
        return super().__call__(speech, is_final)

    def _waiting(self) -> torch.Tensor | None:
        """Return the samples that wait for more; None: nothing has come yet."""
        states = self.frontend_states
        return states["waveform_buffer"] if states else None

    @property
    def _overlap(self) -> int:
        """How many frames at either end of a chunk depend on other samples."""
        overlap: int = math.ceil(math.ceil(self.win_length / self.hop_length) / 2)
        return overlap

    def _replay(self, lengths: list[int], speech: torch.Tensor) -> None:
        """Decode an utterance, (samples,), in chunks; the last takes what is left."""
        self.reset()
        for length in lengths[:-1]:
            self._take(speech[:length], is_final=False)
            speech = speech[length:]
        self._take(speech, is_final=True)


class ChunkedRecognizer:
    """Hands whole utterances to a streaming inference object, chunk by chunk."""

    batch_size = 1

    def __init__(self, model: Any, chunk: int):
        """Wrap an inference object.

        Args:
            model: ESPnet's or ours.
            chunk: Samples of a chunk; 0: all.
        """
        self._model = model
        self._chunk = chunk
        self.nbest = model.nbest
        # ESPnet's translator encodes these features anew with each chunk.
        frontend = getattr(getattr(model, "st_model", None), "frontend", None)
        self._all_again = type(frontend).__name__ == "S3prlFrontend"

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
        starts = [0 if self._all_again else i * size for i in range(whole + 1)]
        for i, start in enumerate(starts[:-1]):
            self._model(speech[start : (i + 1) * size], is_final=False)
        nbest: list[tuple[Any, ...]] = self._model(speech[starts[-1] :], is_final=True)
        return nbest
