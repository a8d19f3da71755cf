"""ESPnet's streaming speech recognition with another search."""

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

    def _makes_frames(self, n_samples: int) -> bool:
        """Tell whether there are as many frames as ESPnet wants to keep."""
        return bool(n_samples // self.hop_length >= 2 * self._overlap - 1)
