"""ESPnet's speech translation with another search."""

from espnet2.bin import st_inference as espnet_st

from espnet_lenbias.inference.searchable import ChosenSpeechSearch


class Speech2Text(ChosenSpeechSearch, espnet_st.Speech2Text):
    """ESPnet's speech translator, with a search chosen by name.

    Takes all that ``espnet2.bin.st_inference.Speech2Text`` takes, and `search` and
    `search_conf` as :class:`~espnet_lenbias.inference.searchable.ChosenSearch` tells. Where the
    source text is searched first (`md_encoder`), the search does both.

    Examples:
        >>> speech2text = Speech2Text(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = speech2text(audio)[0]

    """
