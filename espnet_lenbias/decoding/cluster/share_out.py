"""Batches shared out over Dask workers, each decoded once whatever becomes of workers.

When a worker dies, Dask gives its batches to others. A batch that kills its worker, for
example because it needs more memory than there is, must not fail other batches; but
Dask blames all that were waiting for that worker. So a batch that Dask gives up is a
suspect only. Once everything else is decoded, the suspects are tried one at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from distributed import CancelledError, Client, Future, KilledWorker, as_completed
from distributed.client import ClosedClientError

from espnet_lenbias.errors import ClusterError

Batch = Sequence[str]
T = TypeVar("T")

# More than the threads of any cluster, so that Dask keeps what is not being decoded in
# its own queue, in order, and few enough to hold in memory.
_IN_FLIGHT = 4096

# Once so many batches are given up and none is decoded, the cause is not the batches.
_HOPELESS = 10


def share_out(
    client: Client, decode: Callable[[Batch], T], batches: Iterable[Batch]
) -> Iterator[tuple[Batch, T | None]]:
    """Decode batches on the workers of a cluster.

    Args:
        client: Of the cluster.
        decode: Decodes a batch, on a worker.
        batches: In the order in which they are to be started, an easy one first.

    Yields:
        Each batch with its result, or, for a single utterance that workers died of,
        with None; in the order in which they are done.

    Raises:
        ClusterError: Workers die whatever they decode; the scheduler is lost.
    """
    suspects = []
    any_decoded = False
    for batch, future in _completed(client, decode, batches):
        try:
            yield batch, _result(future)
            any_decoded = True
        except KilledWorker:
            suspects.append(batch)
        if len(suspects) == _HOPELESS and not any_decoded:
            raise ClusterError(
                f"workers died of the first {_HOPELESS} batches; give them more memory "
                "in the cluster_config, or see their logs for the reason"
            )
    for batch in suspects:
        yield from _alone(client, decode, batch)


def _alone(
    client: Client, decode: Callable[[Batch], T], batch: Batch
) -> Iterator[tuple[Batch, T | None]]:
    """Decode a batch with nothing else on the workers; if it kills, its utterances."""
    try:
        yield batch, _result(_submit(client, decode, batch))
    except KilledWorker:
        if len(batch) == 1:
            yield batch, None
        else:
            for key in batch:
                yield from _alone(client, decode, [key])


def _completed(
    client: Client, decode: Callable[[Batch], T], batches: Iterable[Batch]
) -> Iterator[tuple[Batch, Future[T]]]:
    """Yield each batch with its future when that is done."""
    waiting = iter(batches)
    submitted: dict[Any, Batch] = {}

    def submit(n: int) -> list[Future[T]]:
        futures = []
        for batch in islice(waiting, n):
            future = _submit(client, decode, batch)
            submitted[future.key] = batch
            futures.append(future)
        return futures

    completed = as_completed(submit(_IN_FLIGHT))
    for future in completed:
        yield submitted.pop(future.key), future
        completed.update(submit(1))


def _result(future: Future[T]) -> T:
    """Return the result of a batch; raise what it has raised.

    Raises:
        ClusterError: The scheduler is lost, which cancels all that it was to do.
        KilledWorker: Workers died of the batch.
    """
    try:
        return future.result()
    except CancelledError as e:
        raise _lost() from e


def _submit(client: Client, decode: Callable[[Batch], T], batch: Batch) -> Future[T]:
    try:
        # fifo_timeout: first in, first out, however fast they come
        return client.submit(decode, batch, pure=False, fifo_timeout=0)
    except ClosedClientError as e:  # Dask has given up to find the scheduler again
        raise _lost() from e


def _lost() -> ClusterError:
    return ClusterError(
        "cluster: the scheduler is lost, or has cancelled the work: the same command "
        "decodes the rest once there is one again"
    )
