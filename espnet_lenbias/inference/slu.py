"""ESPnet's spoken language understanding with another search."""

from espnet2.bin import slu_inference as espnet_slu

from espnet_lenbias.inference.search_option import SpeechSearchOptionMixin


class Speech2Understand(SpeechSearchOptionMixin, espnet_slu.Speech2Understand):
    """ESPnet's spoken language understanding, with a search chosen by name.

    Takes all that ``espnet2.bin.slu_inference.Speech2Understand`` takes, and `search`
    and `search_conf` as
    :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin` tells.

    Examples:
        >>> speech2understand = Speech2Understand(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = speech2understand(audio)[0]

    """
