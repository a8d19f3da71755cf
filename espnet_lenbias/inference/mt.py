"""ESPnet's text translation with another search."""

from espnet2.bin import mt_inference as espnet_mt

from espnet_lenbias.inference.searchable import ChosenSearch


class Text2Text(ChosenSearch, espnet_mt.Text2Text):
    """ESPnet's text translator, with a search chosen by name.

    Takes all that ``espnet2.bin.mt_inference.Text2Text`` takes, and `search` and
    `search_conf` as :class:`~espnet_lenbias.inference.searchable.ChosenSearch` tells.

    Examples:
        >>> text2text = Text2Text(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = text2text(source_ids)[0]

    """
