"""Drop-ins for the inference tools of ESPnet, with a choice of searches.

They take every option of ESPnet's tool, ``--search`` and ``--search_conf``, write the
same files, and give every utterance its line in each of them, whatever happens to it.
Started again after an interruption they decode what is missing. Exit status: 0; 1 if
utterances failed; 2 for a mistake in the options.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from espnet_lenbias.decoding.batches import choose_batches, takes_bins
from espnet_lenbias.decoding.folder_lock import locked
from espnet_lenbias.decoding.format_files import named_speakers, write_formats
from espnet_lenbias.decoding.join_pieces import join_pieces
from espnet_lenbias.decoding.journal import ResultRow
from espnet_lenbias.decoding.log_markers import utterance_warnings
from espnet_lenbias.decoding.log_repeats import repeats_said_once
from espnet_lenbias.decoding.older_results import remove_derived
from espnet_lenbias.decoding.result_folder import ResultFolder
from espnet_lenbias.decoding.run_log import kept_markers, log_kept, log_to_terminal
from espnet_lenbias.errors import OptionError, OtherRunError
from espnet_lenbias.espnet_compat import commandline, decodes_batches
from espnet_lenbias.options.data_files import data_taken, utterances
from espnet_lenbias.options.decoding import get_parser, parse, refuse, show_cause
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.interrupts import interrupted
from espnet_lenbias.options.output_folder import NO_ROOM
from espnet_lenbias.options.posteriors import check_times
from espnet_lenbias.options.precision import multiplies_integers
from espnet_lenbias.options.run_options import run_options
from espnet_lenbias.options.segments import cut_lines, segments_of
from espnet_lenbias.options.standard_output import reader_may_go
from espnet_lenbias.options.threads import wait_passively

# Decodes batches of utterances into the folder; returns why utterances have no result.
Decode = Callable[
    [argparse.Namespace, ResultFolder, Sequence[Sequence[str]]], dict[str, str]
]


@reader_may_go()
def main(tool: Tool, cmd: Sequence[str] | None = None) -> int:
    """Run the drop-in of a tool; return its exit status."""
    parser = get_parser(tool.module)
    try:
        return run(tool, parser, parse(parser, cmd))
    except KeyboardInterrupt as e:
        return interrupted(e, goes_on=True)


def run(
    tool: Tool,
    parser: argparse.ArgumentParser,
    args: argparse.Namespace,
    decode: Decode | None = None,
    finished: Callable[[Mapping[str, ResultRow]], None] | None = None,
    lock: Callable[[Path], AbstractContextManager[None]] = locked,
) -> int:
    """Decode what the options name; return the exit status.

    Args:
        tool: Which tool's place is taken.
        parser: Reports mistakes.
        args: The tool's options.
        decode: How; in this process unless given.
        finished: Gets what there is of each utterance in the end, once that is written;
            the options hold the pieces of recordings then.
        lock: Of the output folder; another one where it is locked already.
    """
    wait_passively()
    log_to_terminal(args.log_level)
    folder = Path(args.output_dir)
    try:
        _check_implemented(tool, args)
        args.data_path_and_name_and_type = data_taken(
            args.data_path_and_name_and_type, tool, args.allow_variable_data_keys
        )
        # read once: whatever needs the pieces from here on finds them in the options
        args.pieces = segments_of(args)
        data = utterances(args, cut_lines(args, args.pieces))
        named_speakers(args)  # a mistake there shows now, not when all is decoded
        with lock(folder):
            results = ResultFolder(folder, data, run_options(args))
            print(commandline(), file=sys.stderr)
            with repeats_said_once(), utterance_warnings() as warnings:
                failures = _decode_pending(tool, args, results, decode)
            join_pieces(folder, args.pieces, list(data), args.recordings)
            rows = results.rows(results.keys)
            write_formats(folder, args, rows)
    except (OptionError, OtherRunError) as e:
        show_cause(args.log_level)
        refuse(parser, args, e)
    except OSError as e:
        parser.exit(2, f"{parser.prog}: error: {_what_failed(e)}\n")
    for line in warnings.summary(len(data)):
        logging.warning(line)
    status = _report(failures, len(data))
    if finished is not None:
        finished(rows)  # last: that nobody reads it is no fault of the results'
    return status


def _decode_pending(
    tool: Tool, args: argparse.Namespace, folder: ResultFolder, decode: Decode | None
) -> dict[str, str]:
    """Decode what has no result yet; return why utterances have none."""
    done = sum(key in folder for key in folder.keys)
    if done:
        logging.info(f"{done} of {len(folder.keys)} utterances are decoded already")
    pending = folder.pending(choose_batches(tool, args, folder.keys))
    failures = {}
    if pending:
        remove_derived(folder.folder)
        decode = decode or partial(decode_here, tool)
        with log_kept(folder.folder):
            failures = decode(args, folder, pending)
    else:
        logging.info("nothing is left to decode")
        if logging.root.isEnabledFor(logging.INFO):
            # From their times ESPnet's scripts tell the real-time factor.
            print(*kept_markers(folder.folder), sep="", end="", file=sys.stderr)
    folder.finish(args.nbest, tool.files)
    return failures


def _what_failed(error: OSError) -> str:
    """Return what happened to a file as one line, with what can be done."""
    if error.filename is None:
        return str(error) or type(error).__name__
    remedy = ""
    if error.errno in NO_ROOM:
        remedy = "; make room, and the same command goes on where it has stopped"
    return f"{error.filename}: {error.strerror}{remedy}"


def _check_implemented(tool: Tool, args: argparse.Namespace) -> None:
    """Refuse what ESPnet's tool has an option for and does not implement."""
    files = [key for key in vars(args) if key.endswith("_model_file")]
    if args.model_tag is None and not any(getattr(args, key) for key in files):
        raise OptionError(
            f"no model is named: give --{files[0]} and its --"
            f"{files[0].replace('_model_file', '_train_config')}, or --model_tag"
        )
    check_times(args.times, tool.streams, tool.source == "speech")
    if args.word_lm_train_config is not None:
        raise OptionError("word_lm_train_config: there is no decoding with a word LM")
    if args.ngpu > 1:
        raise OptionError(f"ngpu is {args.ngpu}, and a process decodes on one GPU")
    if (args.batch_size or 1) > 1 and not (tool.batches and decodes_batches()):
        raise OptionError(
            f"batch_size is {args.batch_size}, and {tool.name} of ESPnet "
            f"{version('espnet')} decodes one utterance at a time: set batch_size to 1"
        )
    if args.batch_bins is not None and not takes_bins(tool, args):
        if multiplies_integers(vars(args)):
            raise OptionError(
                f"batch_bins is {args.batch_bins}, and a model of 8-bit integers finds in "
                "a batch what depends on the other utterances there: leave it out"
            )
        raise OptionError(
            f"batch_bins is {args.batch_bins}, and {tool.name} with search: "
            f"{args.search} of ESPnet {version('espnet')} makes no batches by length: "
            "leave it out"
        )


def decode_here(
    tool: Tool,
    args: argparse.Namespace,
    folder: ResultFolder,
    batches: Sequence[Sequence[str]],
    wrap: Callable[[Any], Any] = lambda model: model,
) -> dict[str, str]:
    """Decode batches into the folder, in this process; return why some have no result.

    Args:
        tool: Whose inference object decodes.
        args: The tool's options.
        folder: Gets the results.
        batches: Keys of utterances.
        wrap: Makes of the inference object what takes whole utterances.
    """
    # Here, not above: these load torch and ESPnet.
    from tqdm import tqdm

    from espnet_lenbias.decoding.dataset import read_batches
    from espnet_lenbias.decoding.decode import decode
    from espnet_lenbias.decoding.loading import load

    model, dataset, collate = load(args, tool)
    # Both end here, whatever ends this: else the bar is drawn again, and readers end,
    # behind the last word of the run.
    with (
        closing(read_batches(dataset, batches, args.num_workers)) as read,
        tqdm(
            read, total=len(batches), unit="batch", disable=not sys.stderr.isatty()
        ) as loader,
    ):
        return folder.collect(decode(wrap(model), loader, collate))


def _report(failures: dict[str, str], total: int) -> int:
    """Say which utterances failed and why; return the exit status."""
    if not failures:
        return 0
    logging.error(
        f"{len(failures)} of {total} utterances failed; their lines are empty. "
        "The same command tries them again."
    )
    for key, why in failures.items():
        logging.error(f"failed: {key}: {why}")
    return 1
