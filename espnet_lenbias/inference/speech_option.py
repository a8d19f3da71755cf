"""The choice of a search for classes of ESPnet that take audio of any length."""

from functools import partial
from typing import Any

import torch

from espnet_lenbias.inference.audio_checks import (
    Audio,
    check_audio,
    short_audio_named,
)
from espnet_lenbias.inference.model_checks import network_of
from espnet_lenbias.inference.search_option import SearchOptionMixin
from espnet_lenbias.inference.whisper_results import without_primer
from espnet_lenbias.options.registry import ESPNET


class SpeechSearchOptionMixin(SearchOptionMixin):
    """:class:`SearchOptionMixin` for a class that hears audio of any length."""

    def __call__(self, speech: Audio, *args: Any, **kwargs: Any) -> Any:
        """Decode one utterance.

        Args:
            speech: (samples,).
            *args: What ESPnet's object takes beside it.
            **kwargs: Likewise.

        Returns:
            The n-best list, (text, tokens, token ids, hypothesis) each, best first.

        Raises:
            AudioError: The utterance is empty, too short, or holds NaN or infinity.
        """
        check_audio(speech)
        samples = self._samples(speech)
        decode = super(SearchOptionMixin, self).__call__  # ESPnet's

        def without_prompt() -> Any:
            results = decode(samples, *args, **kwargs)
            espnets = self.search == ESPNET
            if espnets and not self.posterior_options.changes_results:
                return results  # as ESPnet has them
            return without_primer(self, results, drop_blank=espnets)

        with short_audio_named(samples, self._encode):
            return self._decided(without_prompt, partial(len, samples))

    def _encode(self, speech: torch.Tensor) -> None:
        """Encode an utterance, (samples,), to see whether it can be."""
        speech = speech.to(self.device, getattr(torch, self.dtype)).unsqueeze(0)
        network_of(self).encode(
            speech, torch.tensor([speech.size(1)], device=self.device)
        )
