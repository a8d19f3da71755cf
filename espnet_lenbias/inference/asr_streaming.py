"""ESPnet's streaming speech recognition with another search."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from espnet_lenbias.espnet_compat import Speech2TextStreaming as EspnetStreaming
from espnet_lenbias.inference.audio_checks import check_audio, short_audio_named
from espnet_lenbias.inference.searchable import ChosenSearch
from espnet_lenbias.options.online import check_online


class Speech2TextStreaming(ChosenSearch, EspnetStreaming):
    """ESPnet's streaming recogniser, with a search chosen by name.

    Takes all that ``espnet2.bin.asr_inference_streaming.Speech2TextStreaming`` takes, and
    `search` and `search_conf` as :class:`~espnet_lenbias.inference.searchable.ChosenSearch` tells.

    Examples:
        >>> speech2text = Speech2TextStreaming(
        ...     "config.yaml", "model.pth", beam_size=20, search="explicit_length"
        ... )
        >>> for chunk in chunks:
        ...     partial = speech2text(chunk, is_final=False)
        >>> text, tokens, token_ids, hypothesis = speech2text(last_chunk)[0]

    """

    @classmethod
    def _verified(
        cls,
        search: str,
        conf: Mapping[str, Any],
        args: tuple,
        kwargs: Mapping[str, Any],
    ) -> inspect.BoundArguments:
        """Verify all options, before any model is loaded; return those of ESPnet's."""
        given = super()._verified(search, conf, args, kwargs)
        check_online(search, given.arguments)
        return given


class InPieces:
    """A streaming recogniser that is handed whole utterances, and takes them in pieces."""

    batch_size = 1

    def __init__(self, model: EspnetStreaming, piece: int):
        """Wrap a recogniser.

        Args:
            model: ESPnet's or ours.
            piece: Samples of a piece; 0: all.
        """
        self._model = model
        self._piece = piece
        self.nbest = model.nbest

    def __call__(self, speech: torch.Tensor) -> list[tuple]:
        """Decode one utterance, (samples,); return its n-best list.

        Raises:
            AudioError: The utterance is empty, too short, or holds NaN or infinity.
        """
        check_audio(speech)
        self._model.reset()  # an utterance that failed has left its blocks
        size = self._piece or len(speech) + 1
        whole = len(speech) // size  # as ESPnet's tool: the last may be of no samples
        with short_audio_named(len(speech)):
            for i in range(whole):
                self._model(speech[i * size : (i + 1) * size], is_final=False)
            return self._model(speech[whole * size :], is_final=True)
