"""Decoding a data set: batches in, result rows out; a failure costs one utterance."""

import argparse
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from espnet_lenbias.decoding.dataset import build_dataset
from espnet_lenbias.decoding.journal import ResultRow
from espnet_lenbias.decoding.log_markers import AUDIO_WARNINGS, paired_markers
from espnet_lenbias.decoding.preprocessing import of_one
from espnet_lenbias.decoding.result_folder import Outcome, empty_value
from espnet_lenbias.decoding.search_threads import choose_threads
from espnet_lenbias.decoding.utterances import Batch, Unreadable, Utterances, reason
from espnet_lenbias.errors import OptionError
from espnet_lenbias.espnet_compat import set_all_random_seed
from espnet_lenbias.inference.whisper_results import leave_long_audio
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.freed_memory import keep_freed_memory
from espnet_lenbias.options.posteriors import POSTERIOR_OPTIONS
from espnet_lenbias.options.train_config import train_config_file
from espnet_lenbias.search.hypotheses import Hypothesis, RatedHypothesis

# (key, data) of utterances that could be read.
Readable = Sequence[tuple[str, dict[str, np.ndarray]]]

# ESPnet's result for one utterance, best first: (text, tokens, token ids, hypothesis),
# or of s2t (text, tokens, token ids, text without special symbols, hypothesis).
NBest = Sequence[tuple[Any, ...]]

Collate = Callable[[Readable], tuple[list[str], dict[str, torch.Tensor]]]

# A model, a data set, and the padding of its utterances.
Loaded = tuple[Any, Utterances, Collate]


def load(args: argparse.Namespace, tool: Tool) -> Loaded:
    """Return the model, the data set and the padding that a run's options ask for.

    Args:
        args: The options, with the pieces of recordings as `segments`, if any.
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
        args.segments,
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
    for key in tool.symbols:
        options[key] = f"<{options[key].lstrip('<').rstrip('>')}>"
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
        raise OptionError(" ".join(str(e).split())) from e
    refuse_no_frames(model.beam_search)
    choose_threads(model.beam_search)
    # Whoever reads the audio does, with its source.
    model.warns_of_scale = model.warns_of_length = False
    return model


def decode(
    model: Any, batches: Iterable[Batch], collate: Collate
) -> Generator[Outcome, None, None]:
    """Decode batches of utterances.

    Args:
        model: ESPnet's or our inference object.
        batches: See :func:`espnet_lenbias.decoding.dataset.read_batches`.
        collate: ESPnet's, which pads the data of utterances into a batch.

    Yields:
        Every utterance's key with its result row or the reason why it has none, each as
        soon as it is there.
    """
    for batch in batches:
        readable = []
        for key, data, *warnings in batch:
            for kind, warning in zip(AUDIO_WARNINGS, warnings, strict=True):
                if warning:
                    logging.warning(f"Utterance {key}: {warning}", extra={kind: 1})
            if isinstance(data, Unreadable):
                yield key, data.reason
            else:
                readable.append((key, data))
        yield from _recognise(model, readable, collate)


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


def result_row(
    results: Any, nbest: int, multi_speaker: bool = False, source_nbest: int = 1
) -> ResultRow:
    """Return what an utterance's result puts into each file.

    Args:
        results: What ESPnet's inference object returns for it.
        nbest: How many ranks have files.
        multi_speaker: Whether there is an n-best list for each speaker.
        source_nbest: How many ranks of the source text of a translation have files.
    """
    if multi_speaker:
        rows = (
            _nbest_row(nbest_list, nbest, f"_spk{speaker}")
            for speaker, nbest_list in enumerate(results, 1)
        )
        return {name: value for row in rows for name, value in row.items()}
    more: Any = {}
    if isinstance(results, tuple):
        results, more = results
    row = _nbest_row(results, nbest, "")
    if isinstance(more, dict):  # the encoder's intermediate predictions
        for layer, tokens in more.items():
            row[f"1best_recog/encoder_interctc_layer{layer}.txt"] = " ".join(tokens)
    else:
        row |= _source_row(more, source_nbest)
    return row


def _source_row(results: NBest, nbest: int) -> ResultRow:
    """Return the fields of the source text of a translation, where it is searched too.

    Args:
        results: (text, tokens, token ids, hypothesis, hidden states), best first.
        nbest: How many ranks have files.
    """
    row = _nbest_row([result[:4] for result in results], nbest, "")
    return {
        name.replace("best_recog/", "asr_best_recog/asr_"): value
        for name, value in row.items()
    }


def _nbest_row(results: NBest, nbest: int, suffix: str) -> dict[str, str]:
    """Return the fields of ranks 1 to `nbest`, empty ones where hypotheses run out."""
    if not results:
        raise ValueError("the search found no hypothesis; lower minlenratio")
    ranks = [_fields(*result) for result in results[:nbest]]
    blank = {name: empty_value(name) for name in ranks[0]}
    ranks += [blank] * (nbest - len(ranks))
    return {
        f"{n}best_recog/{name}{suffix}": value
        for n, fields in enumerate(ranks, 1)
        for name, value in fields.items()
    }


def _fields(
    text: str | None, tokens: list[str], token_ids: list[int], *more: Any
) -> dict[str, str]:
    """Return the values that ESPnet writes for a hypothesis, and ours if it is ours."""
    *plain_text, hypothesis = more
    fields = {
        "token": " ".join(tokens),
        "token_int": " ".join(map(str, token_ids)),
        "score": str(hypothesis.score),
    }
    if text is not None:
        fields["text"] = text
    if plain_text and plain_text[0] is not None:
        fields["text_nospecial"] = plain_text[0]
    if isinstance(hypothesis, Hypothesis):
        fields["original_score"] = str(hypothesis.original_score)
        fields["steps"] = str(hypothesis.steps)
        fields["stopped"] = hypothesis.stopped
    if isinstance(hypothesis, RatedHypothesis):
        if hypothesis.posterior is not None:
            fields["posterior"] = f"{hypothesis.posterior:.6f}"
        for name in ("word_confidence", "label_confidence"):
            values = getattr(hypothesis, name)
            if values is not None:
                fields[name] = " ".join(f"{value:.6f}" for value in values)
        for name in ("word_times", "label_times"):
            if name in vars(hypothesis):  # asked for: an empty line where not known
                spans = getattr(hypothesis, name) or []
                fields[name] = " ".join(f"{a:.3f}-{b:.3f}" for a, b in spans)
    return fields


def _recognise(model: Any, batch: Readable, collate: Collate) -> Iterator[Outcome]:
    """Yield the key of each utterance with its row, or with the reason of its failure.

    Where a batch fails its utterances are tried one by one.
    """
    if not batch:
        return
    keys = [key for key, _ in batch]
    try:
        with paired_markers(keys):
            results = _call(model, collate(batch)[1], len(batch))
            rows = [_row(model, result) for result in results]
    except Exception as e:  # whatever it is, it is this batch's alone
        why = reason(e)
    else:
        yield from zip(keys, rows, strict=True)
        return
    # Out of the handler, the frames that held the batch's memory are gone.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if len(batch) == 1:
        logging.warning(f"Utterance {keys[0]}: {why}")
        yield keys[0], why
        return
    logging.warning(f"Utterances {keys}: {why}; retrying them one at a time")
    for utterance in batch:
        yield from _recognise(model, [utterance], collate)


def _row(model: Any, result: Any) -> ResultRow:
    """Return what the result of a model puts into each file."""
    several = getattr(model, "enh_s2t_task", False) or getattr(
        model, "multi_asr", False
    )
    return result_row(result, model.nbest, several, getattr(model, "asr_nbest", 1))


def _call(model: Any, batch: dict[str, torch.Tensor], size: int) -> list[Any]:
    """Call the model as ESPnet's own tool does: for one utterance, or for a batch."""
    if model.batch_size > 1 or size > 1:
        results: list[Any] = model.batch_decode(**batch)
        return results
    return [model(**of_one(batch))]
