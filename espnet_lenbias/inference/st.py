"""ESPnet's speech translation with another search."""

from collections.abc import Mapping
from typing import Any

from espnet2.bin import st_inference as espnet_st

from espnet_lenbias.inference.ctc_checks import check_st_ctc
from espnet_lenbias.inference.speech_option import SpeechSearchOptionMixin


class Speech2Text(SpeechSearchOptionMixin, espnet_st.Speech2Text):
    """ESPnet's speech translator, with a search chosen by name.

    Takes all that ``espnet2.bin.st_inference.Speech2Text`` takes, and `search` and
    `search_conf` as :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin`
    tells. Where the source text is searched first (`md_encoder`), the search does both.

    Examples:
        >>> speech2text = Speech2Text(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = speech2text(audio)[0]

    """

    @classmethod
    def _check_model(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify that a model has CTC for the translation if it is used."""
        check_st_ctc(options)
