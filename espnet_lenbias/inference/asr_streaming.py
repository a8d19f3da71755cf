"""ESPnet's streaming speech recognition with another search."""

from collections.abc import Mapping
from typing import Any

import torch

from espnet_lenbias.errors import AudioError
from espnet_lenbias.espnet_compat import Speech2TextStreaming as EspnetStreaming
from espnet_lenbias.inference.audio_checks import (
    Audio,
    as_samples,
    check_audio,
    check_samples,
    is_finite,
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
            AudioError: The chunk holds NaN or infinity. The utterance is given up, here
                and with whatever else goes wrong: the next chunk is another one's first.
        """
        if self.search == ESPNET:
            return super().__call__(speech, is_final)
        try:
            check_samples(speech, "the chunk")
            if not is_finite(speech):
                raise AudioError("the chunk holds NaN or infinity")
            return super().__call__(as_samples(speech), is_final)
        except BaseException:
            self.reset()
            raise


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
