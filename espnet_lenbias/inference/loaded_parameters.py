"""What a model takes from its checkpoint, and what is missing there or left over.

ESPnet loads with ``strict=False`` and drops what torch says then. A model keeps what a
checkpoint does not hold as it was initialised, and leaves aside what it has no place for.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from espnet_lenbias.espnet_compat import AbsESPnetModel, older_name

logger = logging.getLogger(__name__)

_SHOWN = 3  # parameters that a message names

# The parts of ESPnet's models that everything decoded passes, where there are any. Other
# parts serve the training, or a search may do without: `ctc`, second decoders, and the
# decoder that a model trained with CTC alone has not.
_PASSED = (
    *("frontend", "normalize", "preencoder", "encoder", "postencoder"),
    *("hier_encoder", "md_encoder", "deliberationencoder", "postdecoder"),
    "promptencoder",
)

# Whose modules have today the parameters that they had when a model was trained: those of
# s3prl, fairseq and Hugging Face have come and gone with their releases.
_LASTING = ("espnet", "espnet2", "espnet_lenbias", "torch", "whisper")

# How the parameters of a model of s3prl's begin in older checkpoints, and in newer ones.
_UPSTREAM = ("frontend.upstream.model", "frontend.upstream.upstream.model")

# Models can be built in several threads, and what loads them is exchanged for all.
_LOADING = threading.RLock()


class CheckpointError(ValueError):
    """A checkpoint is not that of the model that it is loaded into; says why."""


def is_partly_saved(train_config: Mapping[str, Any]) -> bool:
    """Tell whether a training saves a part of its model: the rest comes from elsewhere."""
    strategy = train_config.get("save_strategy", "all")
    return strategy != "all" or bool(train_config.get("use_adapter", False))


def unwrapped(saved: Any) -> Any:
    """Return the parameters that a checkpoint holds, as a trainer may wrap them."""
    for wrapper in ("module", "state_dict"):  # of DeepSpeed and of Lightning
        if isinstance(saved, Mapping) and wrapper in saved:
            saved = saved[wrapper]
    return saved


@contextmanager
def loading_checked(
    train_config: Mapping[str, Any], lm_is_used: bool
) -> Iterator[None]:
    """Verify every checkpoint that ESPnet loads into a model within the context.

    Args:
        train_config: Options of the training of the model.
        lm_is_used: Whether the language model, which may be loaded beside it, has a
            weight.

    Raises:
        CheckpointError: Parameters are missing in a checkpoint, are no numbers, or are left
            over of a part of the model that is used in decoding.
    """
    partly = is_partly_saved(train_config)

    def load(
        model: torch.nn.Module, saved: Mapping[str, Any], *args: Any, **options: Any
    ) -> Any:
        saved = _as_named_now(saved, model)
        result = torch.nn.Module.load_state_dict(model, saved, *args, **options)
        is_lm = hasattr(model, "lm")
        if is_lm and not lm_is_used:
            return result
        if is_lm or not partly:
            _check_missing(model, saved, *result)
        _check_numbers(model)
        _check_left_over(model, saved, result.unexpected_keys)
        return result

    with _LOADING:
        before = AbsESPnetModel.load_state_dict
        AbsESPnetModel.load_state_dict = load
        try:
            yield
        finally:
            AbsESPnetModel.load_state_dict = before


def _as_named_now(
    saved: Mapping[str, Any], model: torch.nn.Module
) -> Mapping[str, Any]:
    """Give parameters of other releases the names that they have in a model here."""
    here = model.state_dict().keys()

    def name_now(name: str) -> str:
        if name in here:
            return name
        # ESPnet renames the second kind too, where the first attempt to load has failed
        others = (older_name(name), name.replace(*_UPSTREAM))
        return next((other for other in others if other in here), name)

    named = {name_now(name): value for name, value in saved.items()}
    # as it is where it can be: torch has noted the releases of its modules on it
    return saved if named.keys() == saved.keys() else named


def _check_missing(
    model: torch.nn.Module,
    saved: Mapping[str, Any],
    missing: Sequence[str],
    left_over: Sequence[str],
) -> None:
    """Verify that every parameter of a model was in its checkpoint, and is one."""
    parameters = dict(model.named_parameters())
    n_all = len(parameters)
    absent = sorted(parameters.keys() & set(missing))
    if absent:
        others = sorted(left_over)
        also = f"; it holds {len(others)} others ({_some(others)})" if others else ""
        raise CheckpointError(
            f"is not the checkpoint of this model: of its {n_all} parameters "
            f"{len(absent)} are missing there ({_some(absent)}){also}. Name the config "
            "and the checkpoint of one training"
        )
    integers = sorted(
        name
        for name, parameter in parameters.items()
        if parameter.is_floating_point()
        and isinstance(saved.get(name), torch.Tensor)
        and not saved[name].is_floating_point()
    )
    if integers:
        raise CheckpointError(
            "is damaged, or the checkpoint of a quantised model: of its "
            f"{n_all} parameters {len(integers)} are no floats ({_some(integers)}, of "
            f"{saved[integers[0]].dtype}): give the checkpoint as ESPnet has saved it"
        )


def _check_numbers(model: torch.nn.Module) -> None:
    """Verify that the parameters of a model are numbers."""
    none = sorted(
        name
        for name, parameter in model.named_parameters()
        if parameter.is_floating_point() and not bool(parameter.isfinite().all())
    )
    if none:
        raise CheckpointError(
            f"is damaged, or of a training that has failed: {len(none)} of its "
            f"parameters hold NaN or infinity ({_some(none)}): take another one of the "
            "training"
        )


def _check_left_over(
    model: torch.nn.Module, saved: Mapping[str, Any], names: Sequence[str]
) -> None:
    """Verify that nothing of a checkpoint is left over that the training decoded with."""
    left_over = sorted(names)
    used = [name for name in left_over if _is_used(model, name, saved.get(name))]
    if used:
        parts = ", ".join(dict.fromkeys(name.partition(".")[0] for name in used))
        raise CheckpointError(
            f"is not the checkpoint of this model, which has no place for {len(used)} of "
            f"the parameters there ({_some(used)}). In its training the model had more: "
            f"see {parts} in the config. Name the config and the checkpoint of one "
            "training"
        )
    if left_over:
        logger.warning(
            f"the checkpoint of the {type(model).__name__} holds {len(left_over)} "
            f"parameters that are left out, of nothing that the model decodes with "
            f"({_some(left_over)})"
        )


def _is_used(model: torch.nn.Module, name: str, value: Any) -> bool:
    """Tell whether something left over belongs to a part that is used in decoding.

    Args:
        model: That has no place for it.
        name: Of the parameter.
        value: What is left over; None: ESPnet has given it this name while it loaded.
    """
    is_number = isinstance(value, torch.Tensor) and value.is_floating_point()
    if value is not None and not is_number:
        return False  # a mask, a count
    part, *_ = path = name.split(".")
    module = dict(model.named_children()).get(part)
    if module is None or not module.state_dict():
        return part in _PASSED
    for child in path[1:]:
        if type(module).__module__.partition(".")[0] not in _LASTING:
            return False
        module = dict(module.named_children()).get(child)
        if module is None:
            break
    return True


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])
