"""Do the files that a model is made of belong together, and can it be computed here?

ESPnet lets an LM of another vocabulary fail in the search, or score other labels than it
was trained on.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.precision import is_quantised, multiplies_integers
from espnet_lenbias.options.train_config import letters_of, train_config

logger = logging.getLogger(__name__)

# Under which name an inference object has its network.
_NETWORKS = ("asr_model", "st_model", "s2t_model", "mt_model")

# What torch can make integers of, or half precision, without looking at data.
_QUANTISED = (torch.nn.Linear, torch.nn.RNNCellBase, torch.nn.LSTM, torch.nn.GRU)


def network_of(inference: Any) -> Any:
    """Return the ESPnet model that an inference object decodes with; None: it has none."""
    found = (getattr(inference, name, None) for name in _NETWORKS)
    return next((network for network in found if network is not None), None)


def train_args_of(inference: Any) -> Any:
    """Return the options of the training of an inference object's model."""
    names = [name for name in vars(inference) if name.endswith("_train_args")]
    return getattr(inference, names[0]) if names else None


def has_source_search(model: Any) -> bool:
    """Tell whether the source text is searched first.

    Its best hypothesis is translated then. ESPnet gives every translator the search for
    it.
    """
    searches = hasattr(model, "asr_beam_search")  # streaming has no such search
    uses = getattr(getattr(model, "st_model", None), "use_multidecoder", False)
    return searches and bool(uses)


def check_labels(options: Mapping[str, Any]) -> None:
    """Verify that language models were trained with the labels of the model.

    Args:
        options: An inference class's, their defaults filled in.

    Raises:
        OptionError: Names both configs, and in what the labels differ.
    """
    tool = letters_of(options)
    for lm, weight, of_model in (
        ("lm", "lm_weight", "token_list"),
        ("src_lm", "asr_lm_weight", "src_token_list"),  # of the source text
    ):
        if not options.get(weight) or not _names_a_model(options, lm):
            continue
        lm_tokens = train_config(options, lm).get("token_list")
        tokens = train_config(options, tool).get(of_model)
        if not isinstance(tokens, list) or not isinstance(lm_tokens, list):
            continue
        difference = _difference(tokens, lm_tokens)
        if difference:
            raise OptionError(
                f"{lm}_train_config: {options.get(f'{lm}_train_config')} is of a language "
                f"model with other labels than {tool}_train_config "
                f"{options.get(f'{tool}_train_config')}: {difference}. Give an LM that was "
                f"trained with the model's token list, or {weight}: 0.0"
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
        if not issubclass(kind, _QUANTISED):
            raise OptionError(
                f"quantize_modules: torch does not quantise {name} so: name such as "
                "Linear, LSTM"
            )
    if not names and is_quantised(options):
        raise OptionError(
            "quantize_modules is empty, so that nothing would be quantised: name such as "
            "Linear, or leave it out"
        )
    dtype = options.get("quantize_dtype", "qint8")
    if dtype not in ("qint8", "float16"):
        raise OptionError(f"quantize_dtype must be qint8 or float16, not {dtype!r}")


def warn_of_integers(options: Mapping[str, Any]) -> None:
    """Say so where utterances of a batch would change one another's scores.

    Args:
        options: Those that an inference class is given.
    """
    batch_size = options.get("batch_size", 1)
    if multiplies_integers(options) and batch_size not in (0, 1):
        logger.warning(
            f"batch_size is {batch_size}, and the scores of a model of 8-bit integers "
            "depend on what else is in the batch, and now and then the text does: set "
            "batch_size to 1, or quantize_dtype to float16"
        )


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
