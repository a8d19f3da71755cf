"""ESPnet's inference objects with another search."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from espnet2.bin import asr_inference as espnet_asr

from espnet_lenbias.espnet_compat import BatchBeamSearch, BeamSearch
from espnet_lenbias.pretrained import model_files
from espnet_lenbias.registry import (
    ESPNET,
    build_search,
    check_espnet_options,
    check_search_conf,
    search_options,
)


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
            is the model's unless given.

    Returns:
        The model.

    Raises:
        ValueError: No such search or option, or one that the model's do not go with.
        TypeError: The model does not decode with label-synchronous beam search.
    """
    check_search_conf(name, conf)
    old = _label_synchronous_search(model, name)
    check_espnet_options(name, {"normalize_length": old.normalize_length})
    if "nbest" in search_options(name):
        conf = {"nbest": model.nbest, **conf}

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
        conf = dict(search_conf or {})
        given = inspect.signature(super().__init__).bind_partial(*args, **kwargs)
        check_search_conf(search, conf)
        check_espnet_options(search, given.arguments)
        batch_size = given.arguments.get("batch_size", 1)
        if search != ESPNET and batch_size > 1:
            # ESPnet refuses scorers that its own search cannot batch.
            given.arguments["batch_size"] = 1
        super().__init__(*given.args, **given.kwargs)
        self.search = search
        self.batch_size = batch_size
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
        files = model_files(model_tag) if model_tag is not None else {}
        return cls(**{**kwargs, **files})


def _label_synchronous_search(model: Any, name: str) -> BeamSearch:
    """Return the model's search if another one can take its place."""
    search = getattr(model, "beam_search", None)
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
    raise TypeError(
        f"{type(model).__name__} cannot use search: {name}, which needs ESPnet's "
        f"label-synchronous BeamSearch or BatchBeamSearch: {what}, or keep ESPnet's "
        "own with search: espnet"
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
