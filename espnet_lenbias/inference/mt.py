"""ESPnet's text translation with another search."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from espnet2.bin import mt_inference as espnet_mt

from espnet_lenbias.espnet_compat import MTTask
from espnet_lenbias.inference.ctc_checks import check_ctc_weight
from espnet_lenbias.inference.search_option import SearchOptionMixin
from espnet_lenbias.inference.source_text import SourceText, source_ids
from espnet_lenbias.options.train_config import train_config


class Text2Text(SearchOptionMixin, espnet_mt.Text2Text):
    """ESPnet's text translator, with a search chosen by name.

    Takes all that ``espnet2.bin.mt_inference.Text2Text`` takes, and `search` and
    `search_conf` as :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin`
    tells.

    Examples:
        >>> text2text = Text2Text(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = text2text("a source text")[0]

    """

    _hears = False

    def __call__(self, src_text: SourceText | Sequence[SourceText]) -> Any:
        """Translate one text, or each of a list of them.

        Args:
            src_text: A text, or (L,) its token ids; or a list of such.

        Returns:
            The n-best list, (text, tokens, token ids, hypothesis) each, best first; of
            a list such a list for each text.

        Raises:
            TypeError: It is neither a text nor token ids.
            ValueError: There are no tokens, or some that the model does not have.
        """
        if not isinstance(src_text, list | tuple):
            return super().__call__(self._ids(src_text, "the source text"))
        ids = [self._ids(t, f"text {i} of the list") for i, t in enumerate(src_text)]
        return [super(Text2Text, self).__call__(text) for text in ids]

    def _ids(self, text: Any, name: str) -> torch.Tensor | np.ndarray:
        """Return a source text as token ids; see :func:`source_ids`."""
        if isinstance(text, str) and not hasattr(self, "_preprocess"):
            args = self.mt_train_args
            self._preprocess = MTTask.build_preprocess_fn(args, False)
        preprocess = getattr(self, "_preprocess", None)
        n_tokens = len(self.mt_train_args.src_token_list)
        return source_ids(text, preprocess, n_tokens, name)

    @classmethod
    def _check_model(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify that a model has CTC if it is used: those of discrete units may."""
        config = train_config(options, "mt")
        has_ctc = config.get("model") == "discrete_asr"
        if config:
            check_ctc_weight(options["ctc_weight"], has_ctc)
