"""ESPnet's speech-to-text of many languages and tasks (OWSM) with another search."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from espnet2.bin import s2t_inference as espnet_s2t

from espnet_lenbias.espnet_compat import decodes_batches
from espnet_lenbias.inference.audio_checks import Audio, as_samples, check_audio
from espnet_lenbias.inference.search_option import SearchOptionMixin
from espnet_lenbias.options.registry import ESPNET


class Speech2Text(SearchOptionMixin, espnet_s2t.Speech2Text):
    """ESPnet's speech-to-text model, with a search chosen by name.

    Takes all that ``espnet2.bin.s2t_inference.Speech2Text`` takes, and `search` and
    `search_conf` as :class:`~espnet_lenbias.inference.search_option.SearchOptionMixin`
    tells. ``decode_long`` searches each of its windows so; ``best_path`` searches
    nothing.

    Examples:
        >>> speech2text = Speech2Text(
        ...     "config.yaml", "model.pth", lang_sym="<eng>", search="explicit_length"
        ... )
        >>> text, tokens, token_ids, plain_text, hypothesis = speech2text(audio)[0]
        >>> for start, end, text in speech2text.decode_long(recording):
        ...     print(start, end, text)

    """

    def __call__(self, speech: Audio, *args: Any, **kwargs: Any) -> Any:
        """Decode one utterance, padded or cut to the window of the model.

        Args:
            speech: (samples,).
            *args: What ESPnet's object takes beside it: previous text, symbols.
            **kwargs: Likewise.

        Returns:
            The n-best list, (text, tokens, token ids, text without special symbols,
            hypothesis) each, best first.

        Raises:
            AudioError: The utterance is empty, or holds NaN or infinity.
        """
        if self.search != ESPNET:
            check_audio(speech)
            speech = as_samples(speech)
        return super().__call__(speech, *args, **kwargs)

    def batch_decode(
        self, speech: Audio | Sequence[Audio], *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Decode utterances as one batch; their primers may differ in length.

        Args:
            speech: A list of (samples,), or (B, samples).
            *args: What ESPnet's object takes beside it: previous texts, symbols.
            **kwargs: Likewise.

        Returns:
            The n-best list of each utterance.

        Raises:
            AudioError: An utterance is empty, or holds NaN or infinity.
            NotImplementedError: This release of ESPnet decodes no batches.
        """
        if not decodes_batches():
            raise NotImplementedError(
                "batch_decode: this release of ESPnet decodes one utterance at a time; "
                "call the model for each, or install ESPnet 202611"
            )
        if self.search != ESPNET:
            for i, wave in enumerate(speech):
                check_audio(wave, f"utterance {i} of the batch")
            if isinstance(speech, Audio):
                speech = as_samples(speech)
            else:
                speech = [as_samples(wave) for wave in speech]
        decode = partial(super().batch_decode, speech, *args, **kwargs)
        results: list[Any] = self._decided(decode)
        return results
