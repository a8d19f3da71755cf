"""ESPnet's speech-to-text of many languages and tasks (OWSM) with another search."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from espnet2.bin import s2t_inference as espnet_s2t

from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.espnet_compat import decodes_batches
from espnet_lenbias.inference.audio_checks import (
    Audio,
    check_audio,
    check_one_channel,
    check_samples,
    lengths_of,
)
from espnet_lenbias.inference.search_option import SearchOptionMixin
from espnet_lenbias.inference.source_text import check_rows, checked_ids
from espnet_lenbias.inference.symbols import Symbols, check_symbol
from espnet_lenbias.options.audio_files import check_audio_file
from espnet_lenbias.options.cut_audio import damage_named
from espnet_lenbias.options.train_config import train_config

logger = logging.getLogger(__name__)


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

    _more_texts = ("",)

    @classmethod
    def _check_model(cls, search: str, options: Mapping[str, Any]) -> None:
        """Verify that a model has the symbols of the prompt."""
        if options["predict_time"] and options["ctc_weight"] > 0:
            raise OptionError(
                f"predict_time: CTC, whose ctc_weight is {options['ctc_weight']}, cannot "
                "predict timestamps: set ctc_weight to 0.0"
            )
        config = train_config(options, "s2t")
        tokens = config.get("token_list")
        if not isinstance(tokens, list):
            return
        for key in ("lang_sym", "task_sym"):
            check_symbol(key, options[key], tokens)
        conf = config.get("preprocessor_conf") or {}
        first_time = conf.get("first_time_symbol")
        if options["predict_time"] and first_time is not None:
            check_symbol("predict_time", first_time, tokens)

    def _adapt(self) -> None:
        """Have symbols that are handed over later named, too, if there are none such."""
        token2id = getattr(self.converter, "token2id", None)
        if token2id is not None:  # a Whisper model's converter has none
            self.converter.token2id = Symbols(token2id)

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
            AudioError: The utterance is empty, holds NaN or infinity, or has several
                channels.
            TypeError: The previous text is neither text nor an array of token ids.
            ValueError: It holds others than those of the model.
        """
        if isinstance(speech, (list, tuple)):
            raise TypeError(
                "the audio is a list: give one utterance, or call batch_decode"
            )
        text_prev = args[0] if args else kwargs.get("text_prev")
        is_text = text_prev is None or isinstance(text_prev, str)
        # an empty array, as in batches: nothing was said before
        if not is_text and getattr(text_prev, "shape", None) != (0,):
            wanted = "a text, or an array (L,) of its token ids"
            checked_ids(text_prev, self.beam_search.n_vocab, "text_prev", wanted)
        return super().__call__(self._heard(speech), *args, **kwargs)

    def batch_decode(
        self, speech: Audio | Sequence[Audio], *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Decode utterances as one batch; their primers may differ in length.

        Args:
            speech: A list of (samples,), or (B, samples).
            *args: What ESPnet's object takes beside it: previous texts, symbols.
            **kwargs: Likewise.

        Returns:
            The n-best list of each utterance. One of a list that would be an
            :class:`AudioError` alone has the empty text, with a warning in the log.

        Raises:
            AudioError: An utterance of an array is empty, holds NaN or infinity, or has
                several channels.
            NotImplementedError: This release of ESPnet decodes no batches.
            TypeError: Previous texts that are no token ids.
            ValueError: Likewise, or not one for each utterance.
        """
        if not decodes_batches():
            raise NotImplementedError(
                "batch_decode: this release of ESPnet decodes one utterance at a time; "
                "call the model for each, or install ESPnet 202611"
            )
        failed: list[int] = []
        if isinstance(speech, Audio):
            if speech.ndim == 2 and len(speech) > speech.shape[1]:  # each takes 30 s
                raise AudioError(
                    f"the audio is of shape {tuple(speech.shape)}: give (utterances, "
                    "samples), or (samples,) to the model itself"
                )
            for i, wave in enumerate(speech):
                alone = len(speech) == 1
                _check(wave, "the audio" if alone else f"utterance {i} of the batch")
            speech = self._samples(speech)
        else:
            speech, failed = self._all_heard(speech)
        if not len(speech):
            return []
        names = ("speech_lengths", "text_prev", "text_prev_lengths")
        given = {**dict.fromkeys(names), **dict(zip(names, args)), **kwargs}
        lengths, texts, counts = (given[name] for name in names)
        n_tokens = self.beam_search.n_vocab
        check_rows(texts, counts, len(speech), n_tokens, "text_prev")
        decode = partial(super().batch_decode, speech, *args, **kwargs)
        results: list[Any] = self._decided(
            decode,
            lambda: [
                self._n_samples(wave[:n])
                for wave, n in zip(speech, lengths_of(speech, lengths))
            ],
        )
        for i in failed:
            results[i] = self._nothing_heard()
        return results

    def decode_long(
        self, speech: Audio | str | Path, *args: Any, **kwargs: Any
    ) -> list[tuple[float, float, str]]:
        """Decode a recording of any length, window by window.

        Args:
            speech: (samples,); with ESPnet 202611 also the name of a file.
            *args: What ESPnet's object takes beside it.
            **kwargs: Likewise.

        Returns:
            Start and end in seconds, and text, of each utterance in it.

        Raises:
            AudioError: The recording is empty, holds NaN or infinity, or has several
                channels.
            OSError: There is no such file.
            ValueError: The file is no audio; one that is cut off or damaged is an
                AudioError, too.
        """
        if isinstance(speech, str | Path):
            check_audio_file(Path(speech))
        else:
            speech = self._heard(speech)
        found: list[tuple[float, float, str]] = super().decode_long(
            speech, *args, **kwargs
        )
        return found

    def read_audio(self, speech: Audio | str | Path) -> np.ndarray:
        """Read a recording for ESPnet's ``iter_long``; see :meth:`decode_long`."""
        read: np.ndarray
        if isinstance(speech, str | Path):
            with damage_named(Path(speech)):
                read = super().read_audio(speech)
        else:
            read = super().read_audio(self._heard(speech))
        return read

    def _n_samples(self, source: torch.Tensor) -> int:
        """Return of how many samples audio is, without what fills it up to the window.

        ESPnet's tools fill it with zeros before the model sees it.
        """
        conf = self.preprocessor_conf
        if len(source) < int(conf["fs"] * conf["speech_length"]):
            return len(source)
        sounds = source.reshape(len(source), -1).any(dim=1).nonzero()
        return int(sounds[-1]) + 1 if len(sounds) else len(source)

    def _heard(self, speech: Audio, name: str = "the audio") -> torch.Tensor:
        """Return the samples of an utterance, (samples,), checked.

        Raises:
            AudioError: See :meth:`__call__`.
        """
        _check(speech, name)
        return self._samples(speech)

    def _all_heard(
        self, speech: Sequence[Audio]
    ) -> tuple[list[torch.Tensor], list[int]]:
        """Return the samples of utterances, and which of them cannot be decoded.

        Those have silence in their place: other arguments count them.
        """
        waves, failed = [], []
        for i, wave in enumerate(speech):
            name = f"utterance {i} of the list"
            check_samples(wave, name)
            try:
                waves.append(self._heard(wave, name))
            except AudioError as e:
                logger.warning(f"{e}; its text is empty")
                waves.append(torch.zeros(1))
                failed.append(i)
        return waves, failed


def _check(wave: Audio, name: str) -> None:
    """Verify that an utterance can be decoded.

    Raises:
        AudioError: It is empty, holds NaN or infinity, or has several channels.
    """
    check_audio(wave, name)
    check_one_channel(wave, name)
