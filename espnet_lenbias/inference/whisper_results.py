"""Models of OpenAI's Whisper that are built: set up, and what they give made plain."""

import logging
from typing import Any

import torch

from espnet_lenbias.espnet_compat import (
    OpenAIWhisperEncoder,
    OpenAIWhisperTokenIDConverter,
    WhisperFrontend,
)
from espnet_lenbias.inference.model_checks import network_of
from espnet_lenbias.options.audio_files import WHISPER_RATE, WHISPER_WINDOW
from espnet_lenbias.search.primers import primer_length

logger = logging.getLogger(__name__)


def set_up_whisper(model: Any) -> None:
    """Finish a Whisper model that ESPnet has built, and warn of what it leaves out.

    Args:
        model: An inference object of ESPnet's or ours. One without Whisper stays as it
            is, and so does one that has been set up.
    """
    network = network_of(model)
    encoder = getattr(network, "encoder", None)
    frontend = getattr(network, "frontend", None)
    if isinstance(frontend, WhisperFrontend):
        frontend.n_mels = frontend.whisper.dims.n_mels
    if not isinstance(encoder, OpenAIWhisperEncoder) or hasattr(model, "long_audio"):
        return
    encoder.n_mels = encoder.encoders.conv1.in_channels  # 128 since large-v3
    if not encoder.do_pad_trim:
        logger.warning(
            "this Whisper model hears audio without padding (do_pad_trim is false), and "
            "OpenAI's were trained on 30 s: unless it was trained so afterwards, its "
            "texts can be loops and the search slow. Set do_pad_trim: true under "
            "encoder_conf in the config of the model (asr_train_config)"
        )
    model.long_audio = encoder.register_forward_pre_hook(
        _warn_if_long, with_kwargs=True
    )


def leave_long_audio(model: Any) -> None:
    """Have a model not warn of long audio, where who reads it does, by name."""
    hook = getattr(model, "long_audio", None)
    if hook is not None:
        hook.remove()


def _warn_if_long(
    _: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    speech = kwargs["xs_pad"] if "xs_pad" in kwargs else args[0]
    n_samples = speech.size(1)
    if n_samples > WHISPER_WINDOW:
        logger.warning(
            f"the audio has {n_samples / WHISPER_RATE:.2f} s, and Whisper hears no more "
            f"than {WHISPER_WINDOW // WHISPER_RATE} s at once: the rest is left out; cut "
            "it into pieces"
        )


def without_primer(model: Any, results: Any, drop_blank: bool = False) -> Any:
    """Return results of a Whisper model whose labels are those of the text alone.

    ESPnet has the prompt, time stamps and other special symbols in `token_int` and not
    in `token`, and takes label 0 for a blank, which is Whisper's exclamation mark.

    Args:
        model: The inference object. Results of one without Whisper stay as they are.
        results: (text, tokens, token ids, hypothesis), or what holds such.
        drop_blank: Whether label 0 is left out, so that the text is ESPnet's.
    """
    if not isinstance(model.converter, OpenAIWhisperTokenIDConverter):
        return results
    if isinstance(results, list):
        return [without_primer(model, result, drop_blank) for result in results]
    *_, hypothesis = results
    if not hasattr(hypothesis, "yseq"):  # with what the encoder foresees
        return (without_primer(model, results[0], drop_blank), *results[1:])
    yseq = [int(label) for label in hypothesis.yseq]
    labels = yseq[primer_length(model.beam_search.hyp_primer, yseq) : -1]
    if drop_blank:
        labels = [label for label in labels if label != 0]
    ids = [label for label in labels if model.converter.ids2tokens([label])]
    tokens = model.converter.ids2tokens(ids)
    text = results[0]
    if model.tokenizer is not None:
        text = model.tokenizer.tokens2text(tokens)
    return (text, tokens, ids, hypothesis)
