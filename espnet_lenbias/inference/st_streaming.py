"""ESPnet's streaming speech translation with another search."""

from collections.abc import Mapping
from typing import Any

import torch
from espnet2.bin import st_inference_streaming as espnet_st_streaming

from espnet_lenbias.inference.audio_checks import Audio
from espnet_lenbias.inference.ctc_checks import check_st_ctc
from espnet_lenbias.inference.streaming import StreamingSearchMixin


class Speech2TextStreaming(
    StreamingSearchMixin, espnet_st_streaming.Speech2TextStreaming
):
    """ESPnet's streaming speech translator, with a search chosen by name.

    Takes all that ``espnet2.bin.st_inference_streaming.Speech2TextStreaming`` takes,
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
        """Verify that a model has CTC for the translation if it is used."""
        check_st_ctc(options)

    def reset(self) -> None:
        """Forget the utterance: the next chunk is the first one of another."""
        self._held: torch.Tensor | None = None  # samples, too few for a frame
        super().reset()

    def _waiting(self) -> torch.Tensor | None:
        return self._held if self._held is not None else super()._waiting()

    def _take(self, speech: Audio, is_final: bool) -> Any:
        """Hand a chunk to ESPnet's object, once there are frames in it.

        ESPnet's frontend fails on less. It has no way to wait, so the samples wait here.
        """
        samples = torch.as_tensor(speech)
        if self._held is not None:
            samples = torch.cat([self._held, samples])
        if not is_final and self._block_by_block and not self._has_frames(samples):
            self._held = samples
            return []
        self._held = None
        return super()._take(samples, is_final)

    @property
    def _block_by_block(self) -> bool:
        """Whether the encoder is one of those that ESPnet's frontend cuts frames for."""
        return type(self.st_model.encoder).__name__.startswith("ContextualBlock")

    def _has_frames(self, samples: torch.Tensor) -> bool:
        """Tell whether ESPnet's frontend makes frames of a chunk that is not the last.

        It takes whole hops, makes a frame of each and one more, and cuts off those that
        other samples would change: at the end, and unless it is the first, in front.
        """
        states = self.frontend_states
        known = len(states["waveform_buffer"]) if states else 0
        rest = self.win_length - self.hop_length
        hops = (known + len(samples) - rest) // self.hop_length
        used = rest + hops * self.hop_length
        cut = self._overlap * (2 if states else 1)
        return bool(used > self.n_fft // 2 and 1 + used // self.hop_length > cut)
