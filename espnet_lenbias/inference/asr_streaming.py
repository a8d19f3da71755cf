"""ESPnet's streaming speech recognition with another search."""

from typing import Any

import torch

from espnet_lenbias.espnet_compat import Speech2TextStreaming as EspnetStreaming
from espnet_lenbias.inference.streaming import StreamingSearchMixin


class Speech2TextStreaming(StreamingSearchMixin, EspnetStreaming):
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

    def apply_frontend(
        self, speech: torch.Tensor, prev_states: Any = None, is_final: bool = False
    ) -> Any:
        """Wait for more samples where ESPnet wants to keep more than have come."""
        known = (
            prev_states["waveform_buffer"] if prev_states is not None else speech[:0]
        )
        n_frames = (len(known) + len(speech)) // self.hop_length
        if is_final or n_frames >= 2 * self._overlap - 1:
            return super().apply_frontend(speech, prev_states, is_final)
        return None, None, {"waveform_buffer": torch.cat([known, speech])}
