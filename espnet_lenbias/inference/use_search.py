"""Replacing the search of an inference object that ESPnet has built."""

import inspect
import logging
from typing import Any

import torch

from espnet_lenbias.errors import OptionError
from espnet_lenbias.espnet_compat import BatchBeamSearch, BeamSearch
from espnet_lenbias.inference.ctc_checks import check_ctc, check_ctc_precision
from espnet_lenbias.inference.model_checks import has_source_search, network_of
from espnet_lenbias.inference.nbest import keep_what_is_needed, options_of
from espnet_lenbias.inference.whisper_results import set_up_whisper
from espnet_lenbias.options.espnet_checks import check_espnet_options
from espnet_lenbias.options.precision import check_decoder_dtype
from espnet_lenbias.options.registry import (
    ESPNET,
    build_search,
    check_search_conf,
    search_options,
)
from espnet_lenbias.options.values import count
from espnet_lenbias.scorers.precision import has_bfloat16_products
from espnet_lenbias.search.label_synchronous import LabelSynchronousSearch
from espnet_lenbias.search.online import build_online_search, is_online

logger = logging.getLogger(__name__)


def use_search(
    model: Any,
    name: str,
    *,
    beam_size: int | None = None,
    decoder_dtype: str | None = None,
    **conf: Any,
) -> Any:
    """Give an inference object of ESPnet another search, in place.

    Scorers, weights, primers and all that ESPnet has set up stay as they are. Lists of
    utterances are decoded as real batches where the object and the search take batches.
    A translator with an extra decoder of the source text (`md_encoder` in its training)
    has two searches, and both become this one, each with its own beam size and weights.

    Args:
        model: Of ``espnet2.bin.asr_inference``, ``st_inference``, ``mt_inference``,
            ``s2t_inference``, ``slu_inference``, ``asr_inference_streaming`` or
            ``st_inference_streaming``.
        name: One of :func:`espnet_lenbias.available_searches`.
        beam_size: Another beam size; None: that of the search which the model has now.
        decoder_dtype: "bfloat16": copies of decoder and language model compute in it,
            while encoder, CTC and the search itself stay as they are; None or
            "float32": all is as the model has it.
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
    conf = check_search_conf(name, conf)
    if beam_size is not None:
        beam_size = count("beam_size", beam_size)
    old = _label_synchronous_search(model, name)
    check_espnet_options(name, {"normalize_length": old.normalize_length})
    if name == "explicit_length" and old.weights.get("length_bonus"):
        logger.warning(
            "penalty adds the same to all hypotheses of a position, so it changes no text "
            "with search: explicit_length: leave it out"
        )
    check_decoder_dtype(name, decoder_dtype, {})
    check_ctc(model)
    set_up_whisper(model)
    if is_online(old):
        _check_between_streams(model)
        if name != ESPNET:
            _check_streams(model, name)
    nbest, of_source, takes_nbest = model.nbest, conf, "nbest" in search_options(name)
    if takes_nbest:
        nbest = max(nbest, conf.get("nbest") or 1)
        k = old.beam_size if beam_size is None else beam_size
        conf = {"nbest": options_of(model).n_compared(name, k, nbest), **conf}
    search = _built(model, name, old, beam_size, conf)
    lower_precision(search, decoder_dtype, model)
    searches = {"beam_search": search}
    if has_source_search(model):
        if takes_nbest:
            of_source = {**of_source, "nbest": model.asr_nbest}
        # what it finds is encoded once more, as the model is: in the model's dtype
        searches["asr_beam_search"] = _built(
            model, name, model.asr_beam_search, None, of_source
        )
    # all of it, or where something does not fit nothing
    for attribute, search in searches.items():
        setattr(model, attribute, search)
    model.search, model.decoder_dtype = name, decoder_dtype
    if nbest != model.nbest:
        model.nbest = nbest
    _allow_batches(model)
    return model


def _built(
    model: Any,
    name: str,
    old: Any,
    beam_size: int | None,
    conf: dict[str, Any],
) -> torch.nn.Module:
    """Return a search in the place of another one of a model."""
    build = build_online_search if is_online(old) else build_search
    search: torch.nn.Module = build(name, old, beam_size, **conf)
    if name == ESPNET:
        check_ctc_precision(search, model.dtype)
        check_beam(search)
    if isinstance(search, LabelSynchronousSearch):
        search.setup()  # what the scorers lack that its options want is told here
    keep_what_is_needed(model, name, search)
    dtype: torch.dtype = getattr(torch, model.dtype)
    return search.to(model.device, dtype).eval()


def _check_between_streams(model: Any) -> None:
    """Verify that no audio is waiting, which another search knows nothing of."""
    if getattr(model, "frontend_states", None) is not None:
        raise OptionError(
            "use_search: the object is in the middle of a stream: hand over the last "
            "chunk with is_final=True, or call reset(), before the search is another one"
        )


def _check_streams(model: Any, name: str) -> None:
    """Verify that each chunk brings new frames, and that all is made of them.

    ESPnet's streaming translator also takes other models, of which it searches
    something else.
    """
    network = network_of(model)
    kind = type(network.encoder).__name__
    second = [f"{x}_encoder" for x in ("hier", "md") if _has(network, f"{x}_encoder")]
    if kind.startswith("ContextualBlock") and not second:
        return
    what = f"the second encoder, {second[0]}" if second else f"the encoder, {kind}"
    raise OptionError(
        f"search: {name} streams with one encoder, of the kind contextual_block_*, and "
        f"this model has {what}: decode whole utterances, or say search: {ESPNET}"
    )


def _has(network: Any, part: str) -> bool:
    return getattr(network, part, None) is not None


def lower_precision(search: Any, decoder_dtype: str | None, model: Any) -> None:
    """Have a search's decoder and language model compute in another dtype.

    Args:
        search: It is on its device.
        decoder_dtype: Its name; None: that of the model.
        model: Whose search it is.

    Raises:
        ValueError: The search, or its decoder, cannot.
    """
    if decoder_dtype in (None, model.dtype):
        return
    if not hasattr(search, "compute_in"):
        raise ValueError(f"decoder_dtype: {type(search).__name__} does not take it")
    names = search.compute_in(getattr(torch, str(decoder_dtype)))
    if not names:
        kinds = {name: type(s).__name__ for name, s in search.scorers.items()}
        raise ValueError(
            f"decoder_dtype: none of the scorers {kinds} is a decoder or a language "
            "model that can compute in another dtype: leave decoder_dtype out"
        )
    device = torch.device(model.device)
    if decoder_dtype == "bfloat16" and not has_bfloat16_products(device):
        logger.warning(
            "decoder_dtype: this processor does not multiply bfloat16 faster than "
            "float32, so decoding can be slower with it than without"
        )
    logger.info(f"{' and '.join(names)} compute in {decoder_dtype}")


def _label_synchronous_search(model: Any, name: str) -> BeamSearch:
    """Return the model's search if another one can take its place."""
    search = getattr(model, "beam_search", None)
    if isinstance(model, BeamSearch):
        raise TypeError(
            "use_search takes the inference object, such as Speech2Text, in which the "
            f"search is to be another one, not its beam_search ({type(model).__name__})"
        )
    replaced = getattr(model, "search", ESPNET) != ESPNET
    if type(search) in (BeamSearch, BatchBeamSearch) or replaced or is_online(search):
        return search
    raise OptionError(
        f"search: {name} takes the place of ESPnet's label-synchronous beam search, "
        f"and this {type(model).__name__} has another one: {_other_search(model)}; "
        "search: espnet keeps it"
    )


def check_beam(search: Any) -> None:
    """Verify that ESPnet's own search finds as many labels as its beam has places.

    Raises:
        OptionError: Its first step would fail.
    """
    if isinstance(search, BeamSearch) and search.beam_size > search.n_vocab:
        raise OptionError(
            f"beam_size is {search.beam_size}: ESPnet's own search takes at most as many "
            f"as the model has labels, {search.n_vocab}: set a smaller beam_size, or say "
            "search: explicit_length"
        )


def check_has_nbest(model: Any) -> None:
    """Verify that ESPnet's own search of a model gives hypotheses to choose from.

    Raises:
        OptionError: It does not search label by label.
    """
    search = getattr(model, "beam_search", None)
    if not isinstance(search, BeamSearch):
        raise OptionError(
            f"decide, confidence and times: this {type(model).__name__} does not decode "
            f"with label-synchronous beam search: {_other_search(model)}: leave them out"
        )


def _other_search(model: Any) -> str:
    """Say how a model decodes that does not search label by label.

    Raises:
        TypeError: It is no inference object.
    """
    search = getattr(model, "beam_search", None)
    kind = type(search).__name__
    transducer = getattr(model, "beam_search_transducer", None) is not None
    if transducer or kind.startswith("BeamSearchTransducer"):
        return "it is a transducer"
    if getattr(model, "hugging_face_model", None) is not None:
        return "it decodes with Hugging Face generation (hugging_face_decoder)"
    if type(getattr(model, "s2t", None)).__name__ == "MaskCTCInference":
        return "it refines the output of CTC (mask-CTC)"
    if not hasattr(model, "beam_search"):
        raise TypeError(
            "use_search takes an inference object such as "
            f"espnet2.bin.asr_inference.Speech2Text, not {type(model).__name__}"
        )
    if search is None:
        return "it has no beam search"
    return (
        f"its search is {kind}; build the model without streaming, time_sync and "
        "partial_ar"
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
