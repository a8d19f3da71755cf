"""The model and the data of a run, as its options ask for them."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from espnet_lenbias.decoding.dataset import build_dataset
from espnet_lenbias.decoding.search_threads import choose_threads
from espnet_lenbias.decoding.utterances import Utterances
from espnet_lenbias.errors import OptionError, one_line
from espnet_lenbias.espnet_compat import set_all_random_seed
from espnet_lenbias.inference.whisper_results import leave_long_audio
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.freed_memory import keep_freed_memory
from espnet_lenbias.options.posteriors import POSTERIOR_OPTIONS
from espnet_lenbias.options.train_config import train_config_file

# (key, data) of utterances that could be read.
Readable = Sequence[tuple[str, dict[str, np.ndarray]]]

Collate = Callable[[Readable], tuple[list[str], dict[str, torch.Tensor]]]

# A model, a data set, and the padding of its utterances.
Loaded = tuple[Any, Utterances, Collate]


def load(args: argparse.Namespace, tool: Tool) -> Loaded:
    """Return the model, the data set and the padding that a run's options ask for.

    Args:
        args: The options, with the pieces of recordings as `pieces`, if any.
        tool: Whose inference object decodes.
    """
    model = load_model(args, tool)
    leave_long_audio(model)  # of which the data set warns, with the file's name
    train_args = getattr(model, tool.train_args)
    config, file = tool.model_options[0], train_config_file(vars(args), tool.key)
    dataset = build_dataset(
        args.data_path_and_name_and_type,
        tool.task(),
        train_args,
        args.dtype,
        f"{config} {file}" if file is not None else f"model_tag {args.model_tag}",
        args.pieces,
    )
    return model, dataset, tool.task().build_collate_fn(train_args, False)


def load_model(args: argparse.Namespace, tool: Tool) -> Any:
    """Return the model with the search that a run's options ask for.

    Raises:
        OptionError: The model, or this machine, cannot follow them.
    """
    if args.ngpu >= 1 and not torch.cuda.is_available():
        raise OptionError(
            f"ngpu is {args.ngpu}, and torch finds no GPU here: set ngpu to 0 to "
            "decode on the CPU"
        )
    keep_freed_memory()
    set_all_random_seed(args.seed)
    inference_class = tool.inference_class()
    taken = inference_class.espnet_options().parameters
    options = {key: value for key, value in vars(args).items() if key in taken}
    options["batch_size"] = args.batch_size or 1
    try:
        model = inference_class.from_pretrained(
            args.model_tag,
            search=args.search,
            search_conf=args.search_conf,
            decoder_dtype=args.decoder_dtype,
            **{key: getattr(args, key) for key in POSTERIOR_OPTIONS},
            device="cuda" if args.ngpu >= 1 else "cpu",
            **options,
        )
    except OptionError:
        raise
    except ValueError as e:  # of a search, that the model does not go with it
        raise OptionError(one_line(e)) from e
    refuse_no_frames(model.beam_search)
    choose_threads(model.beam_search)
    # Whoever reads the audio does, with its source.
    model.warns_of_scale = model.warns_of_length = False
    return model


def refuse_no_frames(search: torch.nn.Module | None) -> None:
    """Have a search raise for an utterance without frames in a padded batch.

    ESPnet's encoders do so for one utterance alone that is too short for them.
    """
    if search is not None:  # a transducer's, or Hugging Face's, is no such module
        search.register_forward_pre_hook(_refuse_no_frames, with_kwargs=True)


def _refuse_no_frames(
    _: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    if "is_final" in kwargs:  # a block, which may bring no frame
        return
    x = kwargs["x"] if "x" in kwargs else args[0]
    lengths = kwargs.get("x_lengths")
    if x.size(-2) == 0 or (lengths is not None and bool((lengths <= 0).any())):
        raise ValueError("too short: the encoder makes no frame of it")
