"""``espnet-lenbias decode``: one decoding run on several workers.

Options, output folder and files are those of ``espnet_lenbias.bin.asr_inference``, or of
the tool that ``--tool`` or the model says. Only this process writes them, so an
interrupted run goes on, on as many workers as are there then. With one worker, and no
cluster named, it is that tool.
"""

import argparse
import logging
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from espnet_lenbias.decoding.batches import source_lengths
from espnet_lenbias.decoding.cluster.workers import start
from espnet_lenbias.decoding.drop_in import run
from espnet_lenbias.decoding.result_folder import Outcome, ResultFolder
from espnet_lenbias.errors import ClusterError, OptionError
from espnet_lenbias.options.cluster import JOB_QUEUES, LOCAL, Workers, choose_workers
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.options.tool_choice import (
    add_tool_option,
    check_tool,
    choose_tool,
)

if TYPE_CHECKING:
    from espnet_lenbias.decoding.cluster.worker import Decoded

_PROG = "espnet-lenbias decode"

# Seconds between two reports of progress in a log.
_REPORT_INTERVAL = 60

_WORKERS_DIED = (
    "workers died while they decoded it (out of memory?); lower beam_size, or give the "
    "workers more memory"
)


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    cmd = sys.argv[1:] if cmd is None else cmd
    try:
        tool = choose_tool(cmd)
    except OptionError as e:
        print(f"{_PROG}: error: {e}", file=sys.stderr)
        raise SystemExit(2) from None
    parser = get_parser(tool.module)
    parser.prog = _PROG
    parser.description = (
        f"Decode as `python -m {tool.drop_in}` does, with all its options, and share "
        "the utterances out over several workers."
    )
    _add_worker_options(parser)
    args = parse(parser, cmd)
    del args.tool
    try:
        workers = choose_workers(args.nj, args.cluster, args.cluster_config)
        del args.nj, args.cluster, args.cluster_config
        decode = partial(_decode, tool, workers) if workers else None
        return run(tool, parser, args, decode)
    except ClusterError as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")


def _add_worker_options(parser: argparse.ArgumentParser) -> None:
    """Add --tool, and what :func:`choose_workers` takes."""
    add_tool_option(parser)
    group = parser.add_argument_group(
        "The workers",
        "A worker is a process that loads the model once and reads its audio itself, "
        "so --num_workers has no effect. The files are those of one process with "
        "OMP_NUM_THREADS=1; more threads a worker change last digits of the scores.",
    )
    group.add_argument(
        "--nj", type=int, help="How many workers; without it, one: this process"
    )
    group.add_argument(
        "--cluster",
        help=f"Where they run: {LOCAL} (this machine, the default), a job queue ("
        f"{', '.join(JOB_QUEUES)}), or the address HOST:PORT of a running Dask "
        "scheduler, whose workers are taken",
    )
    group.add_argument(
        "--cluster_config",
        help="A yaml file with keyword arguments of Dask's cluster class, e.g. for "
        "slurm, where each worker is a job, `queue: main`, `memory: 8GB`, "
        "`walltime: '24:00:00'`, `log_directory: exp/log`, `cores: 4` (threads), "
        "`job_extra_directives: ['--gres=gpu:1']` (with --ngpu 1); for a running "
        "scheduler with `tls_ca_file`, `tls_client_cert`, `tls_client_key`, "
        "`require_encryption`",
    )


def _decode(
    tool: Tool,
    workers: Workers,
    args: argparse.Namespace,
    folder: ResultFolder,
    batches: Sequence[Sequence[str]],
) -> dict[str, str]:
    """Decode batches into the folder; return why utterances have no result."""
    batches = starting_order(batches, source_lengths(tool, args))
    if args.model_tag is not None:
        # once, before all workers ask for it
        check_tool(tool, args.model_tag, model_files(args.model_tag))
    if workers.number is not None and workers.number > len(batches):
        workers = replace(workers, number=len(batches))  # more would have no work
    total = sum(map(len, batches))
    logging.info(f"{total} utterances, the longest first, on workers: {workers.where}")
    with start(workers) as client:
        # Here, not above: this needs Dask.
        from espnet_lenbias.decoding.cluster.share_out import share_out
        from espnet_lenbias.decoding.cluster.worker import decoder

        with decoder(client, tool, args) as decode_batch:
            results = share_out(client, decode_batch, batches)
            return folder.collect(_watched(_outcomes(results), total))


def starting_order(
    batches: Iterable[Sequence[str]], lengths: Mapping[str, float]
) -> list[Sequence[str]]:
    """Sort batches by their longest utterance: what is started last is short.

    Only the shortest batch comes before all: it tells whether workers work. Batches
    stay as they are, for with other batch mates an utterance has another padding.
    """
    order = sorted(batches, key=lambda batch: max(lengths.get(key, 0) for key in batch))
    return order[:1] + order[:0:-1]


def _outcomes(
    results: Iterable[tuple[Sequence[str], "Decoded | None"]],
) -> Iterator[Outcome]:
    """Yield the outcomes of batches, and log what the workers have logged."""
    for batch, decoded in results:
        if decoded is None:
            yield from ((key, _WORKERS_DIED) for key in batch)
            continue
        outcomes, records = decoded
        for record in records:
            logging.getLogger(record.name).handle(record)
        yield from outcomes


def _watched(outcomes: Iterable[Outcome], total: int) -> Generator[Outcome, None, None]:
    """Report progress: a bar to a person, a line now and then to a log."""
    from tqdm import tqdm
    from tqdm.contrib.logging import logging_redirect_tqdm

    if sys.stderr.isatty():
        with logging_redirect_tqdm():
            yield from tqdm(outcomes, total=total, unit="utterance")
    else:
        yield from tqdm(
            outcomes,
            total=total,
            unit="utterance",
            file=_Log(),
            mininterval=_REPORT_INTERVAL,
            bar_format="{n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}]",
        )


class _Log:
    """A file, for tqdm, whose lines are log records."""

    def write(self, text: str) -> None:
        if text.strip():
            logging.info(f"progress: {text.strip()}")

    def flush(self) -> None:
        pass
