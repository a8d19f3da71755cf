"""ESPnet's text translation with another search."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from espnet2.bin import mt_inference as espnet_mt

from espnet_lenbias.inference.ctc_checks import check_ctc_weight, train_config
from espnet_lenbias.inference.search_option import SearchOptionMixin
from espnet_lenbias.options.registry import ESPNET


class Text2Text(SearchOptionMixin, espnet_mt.Text2Text):
    """ESPnet's text translator, with a search chosen by name.

    Takes all that ``espnet2.bin.mt_inference.Text2Text`` takes, and `search` and
    `search_conf` as :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin`
    tells.

    Examples:
        >>> text2text = Text2Text(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = text2text(source_ids)[0]

    """

    def __call__(self, src_text: torch.Tensor | np.ndarray) -> Any:
        """Translate one text.

        Args:
            src_text: (L,) its token ids.

        Returns:
            The n-best list, (text, tokens, token ids, hypothesis) each, best first.

        Raises:
            ValueError: There are no tokens.
        """
        if self.search != ESPNET and not len(src_text):
            raise ValueError("the source text is empty")
        return super().__call__(src_text)

    @classmethod
    def _check_model(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify that a model has CTC if it is used: those of discrete units may."""
        config = train_config(options, "mt")
        has_ctc = config.get("model") == "discrete_asr"
        if config:
            check_ctc_weight(options["ctc_weight"], has_ctc)
