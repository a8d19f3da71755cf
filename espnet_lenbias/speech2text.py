"""ESPnet's inference objects with another search."""

import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from espnet2.bin import asr_inference as espnet_asr

from espnet_lenbias.espnet_compat import BatchBeamSearch, BeamSearch, CTCPrefixScorer
from espnet_lenbias.pretrained import model_files
from espnet_lenbias.registry import (
    ESPNET,
    OptionError,
    build_search,
    check_espnet_options,
    check_keywords,
    check_nbest,
    check_search_conf,
    search_options,
)
from espnet_lenbias.utterances import (
    Audio,
    AudioError,
    check_audio,
    is_finite,
    short_audio_named,
)

logger = logging.getLogger(__name__)


def use_search(
    model: Any, name: str, *, beam_size: int | None = None, **conf: Any
) -> Any:
    """Give an inference object of ESPnet another search, in place.

    Scorers, weights and all that ESPnet has set up stay as they are. Lists of
    utterances are decoded as real batches where the search takes batches.

    Args:
        model: e.g. ``espnet2.bin.asr_inference.Speech2Text``.
        name: One of :func:`espnet_lenbias.available_searches`.
        beam_size: Another beam size; None: the model's.
        **conf: The search's own options (``search_conf`` in a decode config); ``nbest``
            is the model's unless given, and made the model's if it is larger.

    Returns:
        The model.

    Raises:
        ValueError: No such search or option, or one that the model's do not go with.
        OptionError: The model does not decode with label-synchronous beam search, or
            has no CTC and is to use it. It is a ValueError.
        TypeError: It is no inference object.
    """
    check_search_conf(name, conf)
    old = _label_synchronous_search(model, name)
    check_espnet_options(name, {"normalize_length": old.normalize_length})
    _check_ctc(old)
    if "nbest" in search_options(name):
        conf = {"nbest": model.nbest, **conf}
        model.nbest = max(model.nbest, conf["nbest"] or 1)

    search = build_search(name, old, beam_size, **conf)
    search.to(device=model.device, dtype=getattr(torch, model.dtype)).eval()
    model.beam_search = search
    model.search = name
    _allow_batches(model)
    return model


class Speech2Text(espnet_asr.Speech2Text):
    """ESPnet's speech recogniser, with a search chosen by name.

    Takes all that ``espnet2.bin.asr_inference.Speech2Text`` takes, and:

    Args:
        search: One of :func:`espnet_lenbias.available_searches`; ESPnet's own by default.
        search_conf: The search's own options.

    Raises:
        ValueError: Names the option that is wrong, before any model is loaded.
        TypeError: Names the keyword that is unknown, and where it belongs.
        OptionError: See :func:`use_search`.

    Examples:
        >>> speech2text = Speech2Text(
        ...     "config.yaml", "model.pth", beam_size=64, search="explicit_length"
        ... )
        >>> text, tokens, token_ids, hypothesis = speech2text(audio)[0]
        >>> hypothesis.score  # log-prob of the text and its length

    """

    def __init__(
        self,
        *args: Any,
        search: str = ESPNET,
        search_conf: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ):
        conf = search_conf or {}
        given = _verified(search, conf, args, kwargs)
        batch_size = given.arguments.get("batch_size", 1)
        if search != ESPNET and batch_size > 1:
            # ESPnet refuses scorers that its own search cannot batch.
            given.arguments["batch_size"] = 1
        super().__init__(*given.args, **given.kwargs)
        self.search = search
        self.batch_size = batch_size
        _check_ctc(self.beam_search)
        if search != ESPNET:
            use_search(self, search, **conf)

    @classmethod
    def from_pretrained(cls, model_tag: str | None = None, **kwargs: Any):
        """Build a recogniser from a packed ``.zip`` on disk or a model-zoo tag.

        Args:
            model_tag: See :func:`espnet_lenbias.pretrained.model_files`; None: the
                files are in `kwargs`.
            **kwargs: What the constructor takes.
        """
        if cls is Speech2Text:  # before a download; a subclass may take more
            options = dict(kwargs)
            search = options.pop("search", ESPNET)
            _verified(search, options.pop("search_conf", None) or {}, (), options)
        files = model_files(model_tag) if model_tag is not None else {}
        return cls(**{**kwargs, **files})

    def __call__(self, speech: Audio | Sequence[Audio]) -> Any:
        """Decode one utterance, or a list of them as one batch.

        Args:
            speech: (samples,) or a list of such; see :meth:`batch_decode`.

        Returns:
            The n-best list, (text, tokens, token ids, hypothesis) each, best first; of a
            list such a list for each utterance.

        Raises:
            AudioError: The utterance is empty, too short, or holds NaN or infinity.
        """
        if self.search == ESPNET or isinstance(speech, (list, tuple)):
            return super().__call__(speech)
        check_audio(speech)
        with short_audio_named(len(speech)):
            return super().__call__(speech)

    def batch_decode(
        self, speech: Audio | Sequence[Audio], speech_lengths: Any = None
    ) -> list[Any]:
        """Decode a list of utterances as one batch, or a padded array as ESPnet does.

        An utterance of a list that would be an :class:`AudioError` alone gets the empty
        text, with a warning in the log, and the others are decoded as if without it.

        Args:
            speech: A list of (samples,), or (B, samples) with `speech_lengths`.
            speech_lengths: (B,) samples of each.

        Returns:
            The n-best list of each utterance.

        Raises:
            AudioError: An utterance of a padded array cannot be decoded.
        """
        if self.search == ESPNET:
            return super().batch_decode(speech, speech_lengths)
        if isinstance(speech, (list, tuple)):
            return self._decode_list(speech)
        if speech_lengths is None:
            raise ValueError("speech_lengths is required for a padded array")
        for i, (wave, n_samples) in enumerate(zip(speech, speech_lengths)):
            check_audio(wave[:n_samples], f"utterance {i} of the batch")
        with short_audio_named(int(min(speech_lengths))):
            return super().batch_decode(speech, speech_lengths)

    def _decode_list(self, speech: Sequence[Audio]) -> list[Any]:
        """Decode a list; see :meth:`batch_decode`."""
        if not speech:
            return []
        waves = [_finite_or_empty(wave, i) for i, wave in enumerate(speech)]
        try:
            with short_audio_named(min(map(len, waves))):
                return super().batch_decode(waves)
        except AudioError:  # there are encoders that take no batch with such audio
            pass
        return [self._decode_or_nothing(wave, i) for i, wave in enumerate(waves)]

    def _decode_or_nothing(self, wave: Audio, place: int) -> Any:
        """Decode an utterance of a list; the empty text if there is nothing to decode."""
        try:
            return self(wave)
        except AudioError as e:
            logger.warning(f"utterance {place} of the list: {e}; its text is empty")
            return self._decode_single_sample(torch.zeros(0, 1))


def _verified(
    search: str, conf: Mapping[str, Any], args: tuple, kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Verify all options, before any model is loaded; return those of ESPnet's."""
    espnets = inspect.signature(espnet_asr.Speech2Text)
    check_keywords(kwargs, [*espnets.parameters, "search", "search_conf"])
    given = espnets.bind_partial(*args, **kwargs)
    check_search_conf(search, conf)
    check_espnet_options(search, given.arguments)
    check_nbest(conf, given.arguments)
    return given


def _check_ctc(search: Any) -> None:
    """Verify that there is a CTC if it is asked for: a model may be trained without."""
    scorer = getattr(search, "scorers", {}).get("ctc")
    if isinstance(scorer, CTCPrefixScorer) and scorer.ctc is None:
        raise OptionError(
            f"ctc_weight is {search.weights['ctc']}, and the model has no CTC: set "
            "ctc_weight: 0.0"
        )


def _finite_or_empty(wave: Audio, place: int) -> Audio:
    """Return the audio of an utterance of a list; no samples if it has broken ones."""
    if is_finite(wave):
        return wave
    logger.warning(
        f"utterance {place} of the list: the audio holds NaN or infinity; its text is "
        "empty"
    )
    return wave[:0]


def _label_synchronous_search(model: Any, name: str) -> BeamSearch:
    """Return the model's search if another one can take its place."""
    if not hasattr(model, "beam_search"):
        raise TypeError(
            "use_search takes an inference object such as "
            f"espnet2.bin.asr_inference.Speech2Text, not {type(model).__name__}"
        )
    search = model.beam_search
    swapped = getattr(model, "search", ESPNET) != ESPNET
    if type(search) in (BeamSearch, BatchBeamSearch) or swapped:
        return search
    if getattr(model, "beam_search_transducer", None) is not None:
        what = "it is a transducer"
    elif getattr(model, "hugging_face_model", None) is not None:
        what = "it decodes with Hugging Face generation (hugging_face_decoder)"
    elif search is None:
        what = "it has no beam search"
    else:
        what = (
            f"its search is {type(search).__name__}; build the model without "
            "streaming, time_sync and partial_ar"
        )
    raise OptionError(
        f"search: {name} takes the place of ESPnet's label-synchronous beam search, and "
        f"this {type(model).__name__} has another one: {what}; search: espnet keeps it"
    )


def _allow_batches(model: Any) -> None:
    """Let ESPnet hand this search whole batches.

    ESPnet asks ``_can_batch_decode``, which knows only the type of its own search.
    """
    vars(model).pop("_can_batch_decode", None)
    one_speaker = not (
        getattr(model, "enh_s2t_task", False) or getattr(model, "multi_asr", False)
    )
    takes_batches = (
        "x_lengths" in inspect.signature(model.beam_search.forward).parameters
    )
    if hasattr(model, "_can_batch_decode") and one_speaker and takes_batches:
        model._can_batch_decode = _yes


def _yes() -> bool:
    return True
