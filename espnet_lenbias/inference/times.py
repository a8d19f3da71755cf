"""When the words of results are said: by CTC, or by the attention of the decoder."""

import logging
from collections.abc import Sequence
from typing import Any

import torch

from espnet_lenbias.alignment.attention import attention_spans
from espnet_lenbias.alignment.ctc import ctc_spans
from espnet_lenbias.alignment.spans import (
    FrameRate,
    NotAlignedError,
    Span,
    filled,
    frame_rate,
    word_spans,
)
from espnet_lenbias.errors import OptionError
from espnet_lenbias.espnet_compat import OpenAIWhisperEncoder
from espnet_lenbias.inference.decoder_attention import (
    attention_along,
    has_known_attention,
)
from espnet_lenbias.inference.heard import Heard
from espnet_lenbias.inference.model_checks import (
    has_source_search,
    network_of,
    train_args_of,
)
from espnet_lenbias.options.audio_files import (
    WHISPER_RATE,
    WHISPER_WINDOW,
    model_rate,
)
from espnet_lenbias.options.formats import LEAVE_TIMES_OUT
from espnet_lenbias.options.posteriors import ATTENTION, CTC
from espnet_lenbias.options.train_config import feature_size
from espnet_lenbias.posteriors.labels import (
    label_positions,
    labels_that_say,
    words_of_labels,
)
from espnet_lenbias.posteriors.results import Result

logger = logging.getLogger(__name__)


def check_can_tell_times(model: Any, times: bool | str) -> None:
    """Verify that words of a model's results can have times.

    Args:
        model: An inference object, its search in place.
        times: The option.

    Raises:
        OptionError: Says what it lacks.
    """
    if not times:
        return
    asked = f"times: {str(times).lower()}"
    if has_source_search(model):
        raise OptionError(
            f"{asked}: this model translates what it has recognised, not audio (it has "
            f"an md_encoder): {LEAVE_TIMES_OUT}"
        )
    if getattr(network_of(model), "postdecoder", None) is not None:
        raise OptionError(
            f"{asked}: behind the frames of the audio this model has those of a text (it "
            f"has a postdecoder), so none of them have a time: {LEAVE_TIMES_OUT}"
        )
    if feature_size(vars(train_args_of(model))) is not None:
        raise OptionError(
            f"{asked}: this model takes features, and nobody knows how long one of them "
            f"lasts: {LEAVE_TIMES_OUT}"
        )
    if times == CTC and ctc_of(model) is None:
        raise OptionError(f"{asked}: the model has no CTC: say times: {ATTENTION}")
    decoder = _decoder(model)
    if times == ATTENTION and decoder is None:
        raise OptionError(f"{asked}: the model has no decoder: say times: {CTC}")
    if times == ATTENTION and not has_known_attention(decoder):
        raise OptionError(
            f"{asked}: of the attention of a {type(decoder).__name__} nothing is known: "
            f"say times: {CTC} if the model has CTC, or {LEAVE_TIMES_OUT}"
        )
    if times is True and not _methods(model, times):
        raise OptionError(
            f"{asked}: the model has neither CTC nor a decoder whose attention is known "
            f"(it has a {type(decoder).__name__}): {LEAVE_TIMES_OUT}"
        )


def ctc_of(model: Any) -> Any:
    """Return the CTC of a model for what it puts out; None: it has none."""
    network = network_of(model)
    return getattr(network, "st_ctc" if hasattr(model, "st_model") else "ctc", None)


def _decoder(model: Any) -> Any:
    return getattr(network_of(model), "decoder", None)


def _methods(model: Any, times: bool | str) -> list[str]:
    """Return how times are found: the first way, and that if it fails."""
    can = {
        CTC: ctc_of(model) is not None,
        ATTENTION: has_known_attention(_decoder(model)),
    }
    return [
        name for name, possible in can.items() if possible and times in (True, name)
    ]


def tell_times(model: Any, result: Result, n_samples: int, times: bool | str) -> None:
    """Give a hypothesis `word_times` and `label_times`; None where they are not known.

    Args:
        model: The inference object.
        result: One line of an n-best list, its hypothesis with what it was made of.
        n_samples: Of the audio.
        times: The option.
    """
    text, tokens, token_ids, *_, hypothesis = result
    # taken off it: a hypothesis that is kept should not keep the frames; one of audio that
    # could not be decoded has none
    heard: Heard | None = getattr(hypothesis, "heard", None)
    if heard is not None:
        del hypothesis.heard
    hypothesis.label_times = None if token_ids else []
    if text is not None:
        hypothesis.word_times = None if token_ids else []
    if not token_ids or heard is None:
        return
    rate = _rate(model, n_samples, len(heard.frames))
    spans = _label_spans(model, result, heard, rate, times)
    if spans is None:
        return
    hypothesis.label_times = rate.times(spans)
    if text is None:
        return
    n_words, text_of = len(text.split()), model.tokenizer.tokens2text
    places = words_of_labels(tokens, n_words, text_of)
    if places is None or len(places) != len(spans):
        logger.warning(f"no times of words: the labels of {text!r} make no words")
        return
    # a space between words is of neither
    says = labels_that_say(tokens, text_of)
    of_words = [
        (span, place) for span, place, is_word in zip(spans, places, says) if is_word
    ]
    hypothesis.word_times = rate.times(word_spans(of_words, n_words))


def _rate(model: Any, n_samples: int, n_frames: int) -> FrameRate:
    """Return how the frames of an utterance go with its audio."""
    options = vars(train_args_of(model))
    rate = model_rate(options.get("frontend_conf")) or WHISPER_RATE
    window = 0.0
    encoder = network_of(model).encoder
    if isinstance(encoder, OpenAIWhisperEncoder) and encoder.do_pad_trim:
        window = WHISPER_WINDOW / WHISPER_RATE
    if hasattr(model, "s2t_model"):
        window = float(options["preprocessor_conf"]["speech_length"])
    return frame_rate(n_samples / rate, window, n_frames)


def _label_spans(
    model: Any, result: Result, heard: Heard, rate: FrameRate, times: bool | str
) -> list[Span] | None:
    """Return the span of each label of a result in frames; None: none can be found."""
    text, tokens = result[:2]
    unknown = f"no times of {' '.join(tokens) if text is None else text!r}"
    whys = []
    for method in _methods(model, times):
        find = _by_ctc if method == CTC else _by_attention
        try:
            spans = find(model, result, heard, rate)
        except NotAlignedError as e:
            whys.append(f"by {method} ({e})")
        else:
            if whys:
                logger.warning(f"{unknown} {whys[0]}: found by {method}")
            return filled(spans)
    logger.warning(f"{unknown} {', nor '.join(whys)}")
    return None


def _by_ctc(
    model: Any, result: Result, heard: Heard, rate: FrameRate
) -> list[Span | None]:
    """Align a result with CTC; labels that CTC does not know have no span."""
    _, tokens, token_ids, *_, hypothesis = result
    said = _said(model, tokens, token_ids, hypothesis, heard.n_primer)
    labels = [label for label, is_said in zip(token_ids, said) if is_said]
    if not labels:
        return [None] * len(token_ids)
    with torch.no_grad():
        frames = heard.frames[: rate.n_heard].unsqueeze(0)
        log_probs = ctc_of(model).log_softmax(frames)[0]
    # a translator's is the first label
    blank = getattr(network_of(model), "blank_id", 0)
    spans = iter(ctc_spans(log_probs, labels, blank, rate.seconds))
    return [next(spans) if is_said else None for is_said in said]


def _by_attention(
    model: Any, result: Result, heard: Heard, rate: FrameRate
) -> list[Span | None]:
    """Align a result with what the decoder attends to; given labels have no span."""
    _, tokens, token_ids, *_, hypothesis = result
    decoder = _decoder(model)
    conf = getattr(train_args_of(model), "decoder_conf", None) or {}
    yseq = [int(label) for label in hypothesis.yseq]
    attention = attention_along(
        decoder, heard.frames, yseq[:-1], str(conf.get("whisper_model", ""))
    )
    # from the first label that was not given to the end label, which takes what is
    # behind the last one
    own = attention[:, heard.n_primer - 1 :, : rate.n_heard]
    spans = attention_spans(own, rate.seconds)
    places = label_positions(yseq, token_ids)
    said = _said(model, tokens, token_ids, hypothesis, heard.n_primer)
    return [
        spans[place - heard.n_primer] if is_said else None
        for place, is_said in zip(places, said)
    ]


def _said(
    model: Any,
    tokens: Sequence[str],
    token_ids: Sequence[int],
    hypothesis: Any,
    n_primer: int,
) -> list[bool]:
    """Return which labels of a result stand for something that is said.

    Those of the primer were given. In the results of OWSM there are symbols of language,
    task and time, in angle brackets.
    """
    yseq = [int(label) for label in hypothesis.yseq]
    said = [place >= n_primer for place in label_positions(yseq, token_ids)]
    if hasattr(model, "s2t_model"):
        return [
            is_said and not (token.startswith("<") and token.endswith(">"))
            for token, is_said in zip(tokens, said)
        ]
    return said
