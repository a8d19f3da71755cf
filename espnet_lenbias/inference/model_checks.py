"""Do the files that a model is made of belong together, and can it be computed here?

ESPnet leaves what a checkpoint does not hold as it was initialised, and lets an LM of
another vocabulary fail in the search, or score other labels than it was trained on.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from espnet_lenbias.errors import OptionError
from espnet_lenbias.inference.ctc_checks import train_config

# Inference option of a checkpoint -> the attribute that holds the model made of it.
_MODELS = {
    "asr_model_file": "asr_model",
    "mt_model_file": "mt_model",
    "s2t_model_file": "s2t_model",
    "slu_model_file": "asr_model",
    "st_model_file": "st_model",
}

# Inference option of an LM's checkpoint -> the search that it is a scorer of.
_LMS = {"lm_file": "beam_search", "src_lm_file": "asr_beam_search"}

_SHOWN = 3  # parameters that a message names


def check_parameters(inference: Any, options: Mapping[str, Any]) -> None:
    """Verify that every parameter of the models was in its checkpoint.

    Args:
        inference: The inference object, its models loaded.
        options: Its constructor's.

    Raises:
        OptionError: Counts and names the parameters that are missing.
    """
    for option, attribute in _MODELS.items():
        model = getattr(inference, attribute, None)
        if model is None or _is_partly_saved(train_args_of(inference)):
            continue
        if options.get(option) is not None:
            _check(option, options[option], model, "")
    for option, search in _LMS.items():
        scorers = getattr(getattr(inference, search, None), "scorers", {})
        if options.get(option) is not None and "lm" in scorers:
            _check(option, options[option], scorers["lm"], "lm.")


def train_args_of(inference: Any) -> Any:
    """Return the options of the training of an inference object's model."""
    names = [name for name in vars(inference) if name.endswith("_train_args")]
    return getattr(inference, names[0]) if names else None


def _is_partly_saved(train_args: Any) -> bool:
    """Tell whether a training saves a part of its model: the rest comes from elsewhere."""
    strategy = getattr(train_args, "save_strategy", "all")
    return strategy != "all" or bool(getattr(train_args, "use_adapter", False))


def _check(option: str, file: Any, model: torch.nn.Module, prefix: str) -> None:
    saved = saved_parameters(file)
    if saved is None:
        return
    parameters = {f"{prefix}{name}": p for name, p in model.named_parameters()}
    names = parameters.keys()
    missing = sorted(names - saved.keys())
    if missing:
        unknown = sorted(
            saved.keys() - {f"{prefix}{name}" for name in model.state_dict()}
        )
        also = f"; it holds {len(unknown)} others ({_some(unknown)})" if unknown else ""
        raise OptionError(
            f"{option}: {file} is not the checkpoint of this model: of its {len(names)} "
            f"parameters {len(missing)} are missing there ({_some(missing)}){also}. Name "
            "the config and the checkpoint of one training"
        )
    others = sorted(
        name
        for name, p in parameters.items()
        if p.is_floating_point() and not saved[name].is_floating_point
    )
    if others:
        raise OptionError(
            f"{option}: {file} is damaged, or the checkpoint of a quantised model: of its "
            f"{len(names)} parameters {len(others)} are no floats ({_some(others)}, of "
            f"{saved[others[0]]}): give the checkpoint as ESPnet has saved it"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])


def saved_parameters(file: Any) -> dict[str, torch.dtype] | None:
    """Return the names and types of the tensors in a checkpoint, without reading them.

    Returns:
        None if only ESPnet knows how to read it.
    """
    try:
        saved = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
    except Exception:  # an older format, say: ESPnet has read it
        return None
    for wrapper in ("module", "state_dict"):  # of DeepSpeed and of Lightning
        if isinstance(saved, dict) and wrapper in saved:
            saved = saved[wrapper]
    if not isinstance(saved, dict):
        return None
    # as ESPnet renames those of older releases
    old, new = "frontend.upstream.model", "frontend.upstream.upstream.model"
    found = {str(k): v.dtype for k, v in saved.items() if isinstance(v, torch.Tensor)}
    return found | {name.replace(old, new): dtype for name, dtype in found.items()}


def check_labels(options: Mapping[str, Any]) -> None:
    """Verify that a language model was trained with the labels of the model.

    Args:
        options: An inference class's, their defaults filled in.

    Raises:
        OptionError: Names both configs, and in what the labels differ.
    """
    if not options.get("lm_weight") or not _names_a_model(options, "lm"):
        return
    lm_tokens = train_config(options, "lm").get("token_list")
    for tool in ("asr", "mt", "s2t", "slu", "st"):
        tokens = train_config(options, tool).get("token_list")
        if isinstance(tokens, list) and isinstance(lm_tokens, list):
            difference = _difference(tokens, lm_tokens)
            if difference:
                raise OptionError(
                    f"lm_train_config: {options.get('lm_train_config')} is of a language "
                    f"model with other labels than {tool}_train_config "
                    f"{options.get(f'{tool}_train_config')}: {difference}. Give an LM "
                    "that was trained with the model's token list, or lm_weight: 0.0"
                )


def _names_a_model(options: Mapping[str, Any], tool: str) -> bool:
    return any(options.get(f"{tool}_{what}") for what in ("file", "train_config"))


def _difference(tokens: Sequence[str], others: Sequence[str]) -> str:
    """Say in what two token lists differ; "" if in nothing but names of special tokens."""
    if len(tokens) != len(others):
        return f"{len(others)} labels, not {len(tokens)}"
    for i, (token, other) in enumerate(zip(tokens, others)):
        if token != other and not _are_special((token, other)):
            return f"label {i} is {other!r}, not {token!r}"
    return ""


def _are_special(tokens: Iterable[str]) -> bool:
    return all(str(t).startswith("<") and str(t).endswith(">") for t in tokens)


def check_quantisation(options: Mapping[str, Any]) -> None:
    """Verify what of a model is to be quantised, and to what.

    Args:
        options: An inference class's, their defaults filled in.

    Raises:
        OptionError: Names the option and what is possible.
    """
    names = options.get("quantize_modules", [])
    if not isinstance(names, list | tuple):
        raise OptionError(f"quantize_modules must be a list of names, not {names!r}")
    for name in names:
        kind = getattr(torch.nn, name, None) if isinstance(name, str) else None
        if not isinstance(kind, type) or not issubclass(kind, torch.nn.Module):
            raise OptionError(
                f"quantize_modules: torch.nn has no module {name!r}: name such as "
                "Linear, LSTM"
            )
    dtype = options.get("quantize_dtype", "qint8")
    if dtype not in ("qint8", "float16"):
        raise OptionError(f"quantize_dtype must be qint8 or float16, not {dtype!r}")


def check_place(options: Mapping[str, Any]) -> None:
    """Verify the device that a model is to be computed on.

    Args:
        options: An inference class's, their defaults filled in.

    Raises:
        OptionError: Names the option and what is possible.
    """
    device = options.get("device", "cpu")
    try:
        usable = isinstance(device, str) and torch.device(device).type != "meta"
        why = "" if usable else "a text that names one is wanted"
        if usable:
            torch.empty(0, device=device)
    except Exception as e:  # of another kind for each device
        why = str(e).strip().partition("\n")[0]
    if why:
        gpus = [f"'cuda:{i}'" for i in range(torch.cuda.device_count())]
        here = ", ".join(["'cpu'", *gpus])
        raise OptionError(
            f"device {device!r} cannot be used here, but one of {here} ({why})"
        )
