"""ESPnet's data set as the options of a run name it, and its batches."""

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing.connection import wait
from typing import Any

import torch

from espnet_lenbias.decoding.pieces import PieceReader
from espnet_lenbias.decoding.preprocessing import build_preprocessing, check_transcript
from espnet_lenbias.decoding.sound_reader import SoundReader
from espnet_lenbias.decoding.utterances import (
    Batch,
    Read,
    Unreadable,
    Utterances,
    reason,
)
from espnet_lenbias.errors import OptionError
from espnet_lenbias.espnet_compat import ESPnetDataset
from espnet_lenbias.options.data_files import DATA, SOUND, check_texts
from espnet_lenbias.options.segments import Segment, cut_data
from espnet_lenbias.options.train_config import check_hears

# What is said where a worker was killed: by torch, and by the pipe that it wrote into.
_WORKER_DIED = re.compile(
    "DataLoader worker .* (exited unexpectedly|is killed by)|got end of file"
)


class _WorkerDiedError(Exception):
    """A worker was killed while it read."""


def build_dataset(
    data_path_and_name_and_type: Sequence[tuple[str, str, str]],
    task: Any,
    train_args: Any,
    dtype: str,
    where: str = "the training config",
    segments: Mapping[str, Segment] | None = None,
) -> Utterances:
    """Build ESPnet's data set with the preprocessing of a model of that task.

    Args:
        data_path_and_name_and_type: The data.
        task: ESPnet's class of the task.
        train_args: The options of the model's training.
        dtype: Of floats.
        where: What a message calls the file of `train_args`.
        segments: The utterances, where they are pieces of audio files.

    Raises:
        OptionError: The model's config describes no preprocessing that ESPnet knows, the
            data are not what it takes, or cannot be read.
    """
    if any(kind in SOUND for *_, kind in data_path_and_name_and_type):
        check_hears(where, vars(train_args))
    preprocess = build_preprocessing(task, train_args, where)
    if preprocess is not None:
        check_texts(data_path_and_name_and_type)
        names = [name for _, name, _ in data_path_and_name_and_type]
        check_transcript(names, train_args)
    build = partial(
        ESPnetDataset,
        float_dtype=dtype,
        preprocess=preprocess,
        allow_multi_rates=True,  # as ESPnet's inference, which reads file by file
    )
    try:
        dataset = build(data_path_and_name_and_type)
    except Exception as e:  # of every kind: each type has a reader of its own
        raise _unreadable(data_path_and_name_and_type, build) from e
    for _, name, kind in data_path_and_name_and_type:
        if kind == "sound":
            adapter = dataset.loader_dict[name]
            adapter.loader = SoundReader(adapter.loader)
    if segments:
        _, name = cut_data(data_path_and_name_and_type)
        dataset.loader_dict[name].loader = PieceReader(segments, dtype)
    return Utterances(dataset, vars(train_args))


def _unreadable(
    data: Sequence[tuple[str, str, str]], build: Callable[[Any], ESPnetDataset]
) -> OptionError:
    """Return which of the data cannot be read as being of their type, and why."""
    for entry in data:
        try:
            build([entry])
        except Exception as e:
            path, _, kind = entry
            return OptionError(
                f"{DATA}: {','.join(entry)}: {path} cannot be read as {kind} "
                f"({reason(e)})"
            )
    return OptionError(f"{DATA}: the data cannot be read together")


def read_batches(
    dataset: Utterances, batches: Sequence[Sequence[str]], num_workers: int
) -> Generator[Batch, None, None]:
    """Read batches of utterances in order, ahead of time by workers, until closed.

    An utterance whose reading kills a worker is unreadable, and costs no other.
    """
    done = 0
    while done < len(batches):
        try:
            for batch in _read(dataset, batches[done:], num_workers):
                done += 1
                yield batch
        except _WorkerDiedError:
            # which one it was at, nobody knows
            yield [_read_alone(dataset, key) for key in batches[done]]
            done += 1


def _read_alone(dataset: Utterances, key: str) -> Read:
    """Read an utterance by a worker of its own."""
    try:
        [[read]] = _read(dataset, [[key]], 1)
    except _WorkerDiedError:
        return Read(
            key,
            Unreadable("the process that read it was killed: was there enough memory?"),
        )
    return read


def _read(
    dataset: Utterances, batches: Sequence[Sequence[str]], num_workers: int
) -> Iterator[Batch]:
    """Read batches by workers.

    Raises:
        _WorkerDiedError: One of them was killed; it shows at the next batch.
    """
    before = signal.getsignal(signal.SIGCHLD)
    batches_read = iter(
        torch.utils.data.DataLoader(
            dataset,
            batch_sampler=map(list, batches),
            num_workers=num_workers,
            collate_fn=list,
            worker_init_fn=_end_with_parent,
        )
    )
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and before is not None:
        # torch's own would raise in the midst of whatever is decoded just then
        signal.signal(signal.SIGCHLD, before)
    if num_workers:
        _end_together(batches_read)
    try:
        yield from batches_read
    except (RuntimeError, OSError, EOFError) as e:
        if isinstance(e, EOFError) or _WORKER_DIED.search(str(e)):
            raise _WorkerDiedError from e
        raise


def _end_together(reader: Any) -> None:
    """Have what one of torch's workers has left half written end the waiting for it.

    Who reads a pipe waits for the rest of a message as long as anybody can write it: this
    process itself, and the other workers, who wait for the one that has died.
    """
    reader._worker_result_queue._writer.close()
    running = {worker.sentinel: worker for worker in reader._workers}

    def watch() -> None:
        while running:
            for sentinel in wait(list(running)):
                ended = running.pop(sentinel)
                ended.join()  # its pipe is closed a moment before it has ended
                if ended.exitcode:
                    for worker in running.values():
                        worker.kill()

    threading.Thread(target=watch, daemon=True).start()


def _end_with_parent(_: int) -> None:
    """Have a worker end when the process that has started it is killed.

    torch's own check does not help one that waits for somebody to take what it has read.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None  # a worker has one

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
