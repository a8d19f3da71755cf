"""Workers to decode with, started or found by Dask.

:mod:`espnet_lenbias.options.cluster` says which are asked for. The process that starts
them takes Ctrl-C; they never see it. However it is told to end, they end with it.
"""

import asyncio
import logging
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from espnet_lenbias.decoding.cluster.private import private_options
from espnet_lenbias.errors import ClusterError, Terminated
from espnet_lenbias.options.cluster import LOCAL, Workers, cluster_class

if TYPE_CHECKING:
    from distributed import Client

# What a cluster config can override. A job is one worker. Local workers have one thread
# each and all of the machine's memory: Dask would give them equal shares, and kill what
# outgrows its own.
_LOCAL_DEFAULTS = {
    "threads_per_worker": 1,
    "memory_limit": 0,
    "silence_logs": logging.CRITICAL,  # what a worker raises is raised here, too
}
_JOB_DEFAULTS = {"cores": 1, "processes": 1}

# How often the workers of a task may die before Dask gives it up. Queued tasks are
# blamed too, so being given up means little: see
# :mod:`espnet_lenbias.decoding.cluster.share_out`.
_ALLOWED_FAILURES = 1

# How long processes of a busy machine may take to answer one another.
_CONNECT_TIMEOUT = "120s"

# What ends a run: Ctrl-C; `kill`, or a queue whose time is up; a terminal that closes.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Seconds that a scheduler which is running has to answer; Dask itself waits 30 for one.
_ANSWER = 45

# Seconds without a worker after which that is reported, again and again.
_PATIENCE = 60


@contextmanager
def start(workers: Workers) -> Iterator["Client"]:
    """Start or find the workers; those that were started end with the context.

    Raises:
        ClusterError: Dask or the job queue has refused.
    """
    with ExitStack() as stack:
        try:
            client = stack.enter_context(
                _connect(workers)
                if workers.number is None
                else _cluster(workers, workers.number)
            )
        except (OSError, RuntimeError, TypeError, ValueError) as e:
            raise ClusterError(f"cluster: {workers.where}: {e}") from e
        _wait_for_one(client)
        yield client


def _connect(workers: Workers) -> "Client":
    """Connect to a scheduler that is running already."""
    from distributed import Client, Security

    address, security = workers.where, None
    if workers.config:
        security = Security(**workers.config)
        if "://" not in address:
            address = f"tls://{address}"
    asyncio.run(_answered(address, security or Security()))
    client = Client(address, security=security)
    scheduler: Any = client.scheduler
    if scheduler.address.startswith("tcp://"):
        logging.warning(
            f"cluster: {workers.where}: its connections are not encrypted: whoever can "
            "reach it can run programs as you; see docs/clusters.md for certificates"
        )
    return client


async def _answered(address: str, security: Any) -> None:
    """Verify that a scheduler answers, for which Dask's client would wait without end.

    Raises:
        OSError: What listens there does not, or nothing listens.
    """
    from distributed.comm.core import connect

    connecting = connect(address, **security.get_connection_args("client"))
    try:
        comm = await asyncio.wait_for(connecting, _ANSWER)
    except TimeoutError as e:
        raise OSError(
            f"what listens there has not answered for {_ANSWER} s as a scheduler of Dask "
            "does: is the port that of its dashboard, or of another program?"
        ) from e
    await comm.close()


def _wait_for_one(client: "Client") -> None:
    """Wait for the first worker: jobs can be long in the queue."""
    while True:
        try:
            return client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            logging.info("no worker has started yet; their jobs may have to wait")


@contextmanager
def _cluster(workers: Workers, number: int) -> Iterator["Client"]:
    """Start a cluster of so many workers, or jobs; it replaces those that it loses."""
    import dask
    from distributed import Client
    from distributed.utils import silence_logging_cmgr

    defaults = _LOCAL_DEFAULTS if workers.where == LOCAL else _JOB_DEFAULTS
    settings = {
        "distributed.scheduler.allowed-failures": _ALLOWED_FAILURES,
        "distributed.comm.timeouts.connect": _CONNECT_TIMEOUT,
    }
    resource_tracker.ensure_running()  # it would undo the block in _start_workers
    with (
        dask.config.set(settings),
        # A cluster that ends logs each connection that it closes.
        silence_logging_cmgr(logging.ERROR),
        _callbacks_silenced(),
        _interrupts_held_back() as let_through,
        private_options(workers.where, workers.config) as private,
        cluster_class(workers.where)(
            **{**defaults, **workers.config, **private, "n_workers": 0}
        ) as cluster,
    ):
        # At an interrupt cluster.sync would cancel this, and workers be half started.
        starting = asyncio.run_coroutine_threadsafe(
            _start_workers(cluster, number), cluster.loop.asyncio_loop
        )
        try:
            with Client(cluster) as client, let_through():
                problem = starting.result()
                if problem is None:
                    planned = len(cluster.plan)  # all processes of the last job
                    cluster.adapt(minimum=planned, maximum=planned)
                    yield client
                    return
        except KeyboardInterrupt:
            if workers.where == LOCAL:
                cluster.sync(_kill_workers, cluster, starting)
            raise
    raise ClusterError(problem)


@contextmanager
def _callbacks_silenced() -> Iterator[None]:
    """Have the loop of Dask's connections not log what one of its callbacks raises.

    What concerns a batch comes back as its error. The rest are commands of a job queue,
    and connections, that an interrupt has cut off.
    """
    logger = logging.getLogger("tornado.application")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _interrupts_held_back() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Hold back what ends a run, Ctrl-C among it, but in contexts that this gives.

    Dask cannot be cut off where it starts or closes. What comes after the last of these
    contexts counts for nothing: all is done, or ends because of an earlier one.
    """
    before = {number: signal.getsignal(number) for number in _ENDING}
    handlers = {
        # As it is, it would end the process, and leave behind what it has started.
        number: _terminate if handler is signal.SIG_DFL else handler
        for number, handler in before.items()
    }
    held_back: list[int] = []

    def hold_back(number: int, _: Any) -> None:
        held_back.append(number)

    def hold_all_back() -> None:
        for number, handler in handlers.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, hold_back)

    @contextmanager
    def let_through() -> Iterator[None]:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        try:
            if held_back:
                signal.raise_signal(held_back[0])
            yield
        finally:
            hold_all_back()

    hold_all_back()
    try:
        yield let_through
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(number: int, _: Any) -> None:
    raise Terminated(number)


async def _start_workers(cluster: Any, number: int) -> str | None:
    """Start workers or submit their jobs; return what went wrong.

    Not by way of ``cluster.scale``, which only logs what goes wrong.
    """
    from distributed import Status

    # A terminal sends Ctrl-C to all processes: it is for the one that started them.
    # Those that this thread starts inherit the block, so it holds from their beginning.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    while len(cluster.plan) < number:
        cluster.worker_spec.update(cluster.new_worker_spec())
    try:
        await cluster
    except (OSError, RuntimeError, ValueError) as e:
        for worker in cluster.workers.values():
            if worker.status == Status.created:  # which the cluster could not close
                worker.status = Status.failed
        return f"{e} ({e.__cause__})" if e.__cause__ else str(e)
    return None


async def _kill_workers(cluster: Any, starting: Future[str | None]) -> None:
    """End workers of this machine, which have little time for it: they may be busy."""

    async def end() -> None:
        await asyncio.wrap_future(starting)
        workers = cluster.workers.values()
        await asyncio.gather(*(w.close() for w in workers), return_exceptions=True)

    ending = asyncio.ensure_future(end())
    while not (await asyncio.wait([ending], timeout=0.1))[0]:
        for process in multiprocessing.active_children():
            if process.pid is not None:
                kill_with_children(process.pid)


def kill_with_children(pid: int) -> None:
    """Kill a process, and what it has started, such as a command of ``wav.scp``.

    A command that waits, e.g. for its input, would be left behind for ever.
    """
    import psutil  # which Dask needs, too

    with suppress(psutil.Error):
        process = psutil.Process(pid)
        process.suspend()  # so that it starts nothing more
        for one in (*process.children(recursive=True), process):
            with suppress(psutil.NoSuchProcess):
                one.kill()
