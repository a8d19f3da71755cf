"""What a Dask worker does for a decoding run: load the model once, decode batches."""

import argparse
import gc
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from functools import partial
from logging.handlers import QueueHandler
from queue import Queue
from typing import TYPE_CHECKING
from uuid import uuid4

from distributed import Client, Worker, WorkerPlugin, get_worker

from espnet_lenbias.decoding.result_folder import Outcome
from espnet_lenbias.options.espnet_tools import Tool

if TYPE_CHECKING:
    from espnet_lenbias.decoding.loading import Loaded

# Outcomes of a batch, and the log records that its decoding has left.
Decoded = tuple[list[Outcome], list[logging.LogRecord]]


class Decoder(WorkerPlugin):
    """Decodes with the options of a run; Dask brings it to every worker.

    Args:
        tool: Whose inference object decodes.
        args: The tool's options.

    """

    def __init__(self, tool: Tool, args: argparse.Namespace):
        self.tool = tool
        self.args = args
        self.folder = os.getcwd()  # which file names are relative to
        self.name = f"espnet_lenbias-{uuid4().hex}"  # runs can share a scheduler

    def setup(self, worker: Worker) -> None:
        """Prepare a worker; what takes long waits for the first batch."""
        # A model cannot be moved out of memory: a worker that waits for room waits for
        # ever. Dask still kills workers that outgrow their memory.
        worker.memory_manager.memory_pause_fraction = False
        self._threads = worker.state.nthreads
        self._lock = threading.Lock()
        self._loaded: Loaded | None = None

    def decode(self, keys: Sequence[str]) -> Decoded:
        """Decode a batch of utterances with all threads of the worker."""
        # Here, not above: the main process imports this module, and needs no torch.
        import torch

        from espnet_lenbias.decoding.decode import decode
        from espnet_lenbias.decoding.loading import load

        with self._lock, chdir(self.folder):
            if self._loaded is None:
                torch.set_num_threads(self._threads)
                gc.freeze()  # keep the imports out of it: the process then ends quickly
                self._loaded = load(self.args, self.tool)
            model, utterances, collate = self._loaded
            with log_records(self.args.log_level) as records:
                batch = [utterances[key] for key in keys]
                outcomes = list(decode(model, [batch], collate))
        return outcomes, records


@contextmanager
def decoder(
    client: Client, tool: Tool, args: argparse.Namespace
) -> Iterator[Callable[[Sequence[str]], Decoded]]:
    """Bring a :class:`Decoder` to all workers; give the task that calls it there."""
    plugin = Decoder(tool, args)
    client.register_plugin(plugin)
    try:
        yield partial(_decode, plugin.name)
    finally:
        # Workers of a cluster of this process end with it; Ctrl-C may have ended them. A
        # scheduler that is lost would be waited for.
        if client.cluster is None and client.status == "running":
            client.unregister_worker_plugin(plugin.name)


def _decode(name: str, keys: Sequence[str]) -> Decoded:
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, Decoder)
    return plugin.decode(keys)


@contextmanager
def log_records(level: str) -> Iterator[list[logging.LogRecord]]:
    """Collect what is logged from this level on, ready to be sent."""
    root = logging.getLogger()
    records: list[logging.LogRecord] = []
    old_level, old_handlers = root.level, root.handlers
    root.setLevel(level)
    root.handlers = [_Collector(records)]
    try:
        yield records
    finally:
        root.setLevel(old_level)
        root.handlers = old_handlers


class _Collector(QueueHandler):
    """Prepares records as for a queue, with all arguments filled in."""

    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__(Queue())  # which stays empty
        self.records = records

    def enqueue(self, record: logging.LogRecord) -> None:
        self.records.append(record)
