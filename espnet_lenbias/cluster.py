"""Workers to decode with, started or found by Dask.

They run on this machine, as jobs of a job queue, or belong to a scheduler that is
running already. Dask is an extra of this package, imported where workers are wanted.
"""

import asyncio
import importlib
import inspect
import logging
import multiprocessing
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import yaml

from espnet_lenbias.registry import nearest

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"

# Job queue -> the class of dask_jobqueue that submits to it.
JOB_QUEUES = {
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "slurm": "SLURMCluster",
}

# What a cluster config can override. A job is one worker. Local workers have one thread
# each and all of the machine's memory: Dask would give them equal shares, and kill what
# outgrows its own. The port of Dask's web page is any free one: runs share machines.
_LOCAL_DEFAULTS = {
    "threads_per_worker": 1,
    "memory_limit": 0,
    "dashboard_address": "127.0.0.1:0",
    "silence_logs": logging.ERROR,  # as for jobs
}
_JOB_DEFAULTS = {
    "cores": 1,
    "processes": 1,
    "scheduler_options": {"dashboard_address": ":0"},
}

# Keyword arguments that are not the user's to give.
_OURS = {"asynchronous", "job_cls", "loop", "n_workers", "scheduler", "self"}

# How often the workers of a task may die before Dask gives it up. Queued tasks are
# blamed too, so being given up means little: see :mod:`espnet_lenbias.share_out`.
_ALLOWED_FAILURES = 1

# How long processes of a busy machine may take to answer one another.
_CONNECT_TIMEOUT = "120s"

# Seconds without a worker after which that is reported, again and again.
_PATIENCE = 60


class ClusterError(ValueError):
    """No workers can be had in the way that was asked for."""


@dataclass(frozen=True)
class Workers:
    """Workers that were asked for."""

    # One of LOCAL, JOB_QUEUES, or the address of a scheduler.
    where: str
    # How many; None: those that the scheduler has.
    number: int | None = None
    # Keyword arguments of Dask's cluster class.
    config: Mapping[str, Any] = field(default_factory=dict)


def choose_workers(
    nj: int | None, cluster: str | None, cluster_config: str | None
) -> Workers | None:
    """Verify the options that ask for workers.

    Args:
        nj: How many.
        cluster: A kind of cluster, or the address of a scheduler.
        cluster_config: A yaml file with keyword arguments of Dask's cluster class.

    Returns:
        None where this process is to decode.

    Raises:
        ClusterError: Names the option that is wrong.
    """
    if nj is not None and nj < 1:
        raise ClusterError(f"nj: {nj} workers cannot decode; give 1 or more")
    if cluster is None and nj in (None, 1):
        if cluster_config is not None:
            raise ClusterError("cluster_config: name the cluster with --cluster")
        return None
    where = cluster or LOCAL
    if where == LOCAL or where in JOB_QUEUES:
        config = _read_config(cluster_config, where) if cluster_config else {}
        _check_submit_command(where)
        return Workers(where, nj or 1, config)
    if ":" not in where:
        names = [LOCAL, *JOB_QUEUES]
        raise ClusterError(
            f"cluster: there is no {where!r}{nearest(where, names)} (one of: "
            f"{', '.join(names)}, or the address HOST:PORT of a running Dask scheduler)"
        )
    if nj is not None or cluster_config is not None:
        raise ClusterError(
            f"cluster: {where} has its workers already; leave out nj and cluster_config"
        )
    _import("distributed")
    return Workers(where)


@contextmanager
def start(workers: Workers) -> Iterator["Client"]:
    """Start or find the workers; those that were started end with the context.

    Raises:
        ClusterError: Dask or the job queue has refused.
    """
    distributed = _import("distributed")
    with ExitStack() as stack:
        try:
            if workers.number is None:
                client = stack.enter_context(distributed.Client(workers.where))
            else:
                client = stack.enter_context(_cluster(workers))
        except (OSError, RuntimeError, TypeError, ValueError) as e:
            raise ClusterError(f"cluster: {workers.where}: {e}") from e
        _wait_for_one(client)
        yield client


def _wait_for_one(client: "Client") -> None:
    """Wait for the first worker: jobs can be long in the queue."""
    while True:
        try:
            return client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            logging.info("no worker has started yet; their jobs may have to wait")


@contextmanager
def _cluster(workers: Workers) -> Iterator["Client"]:
    """Start a cluster that replaces the workers, or jobs, which it loses."""
    import dask
    from distributed import Client
    from distributed.utils import silence_logging_cmgr

    defaults = _LOCAL_DEFAULTS if workers.where == LOCAL else _JOB_DEFAULTS
    options = {**defaults, **workers.config, "n_workers": 0}
    settings = {
        "distributed.scheduler.allowed-failures": _ALLOWED_FAILURES,
        "distributed.comm.timeouts.connect": _CONNECT_TIMEOUT,
    }
    resource_tracker.ensure_running()  # it would undo the block in _start_workers
    with (
        dask.config.set(settings),
        # A cluster lets its last words, of connections closed, through to the log.
        silence_logging_cmgr(logging.ERROR),
        _interrupts_held_back() as let_through,
        _cluster_class(workers.where)(**options) as cluster,
    ):
        # At an interrupt cluster.sync would cancel this, and workers be half started.
        starting = asyncio.run_coroutine_threadsafe(
            _start_workers(cluster, workers.number), cluster.loop.asyncio_loop
        )
        try:
            with Client(cluster) as client, let_through():
                problem = starting.result()
                if problem is None:
                    number = len(cluster.plan)  # all processes of the last job
                    cluster.adapt(minimum=number, maximum=number)
                    yield client
                    return
        except KeyboardInterrupt:
            if workers.where == LOCAL:
                cluster.sync(_kill_workers, cluster, starting)
            raise
    raise ClusterError(problem)


@contextmanager
def _interrupts_held_back() -> Iterator[Callable[[], AbstractContextManager]]:
    """Hold back Ctrl-C but in contexts that this gives.

    Dask cannot be cut off where it starts or closes. What comes after the last of these
    contexts counts for nothing: all is done, or ends because of an earlier one.
    """
    handler = signal.getsignal(signal.SIGINT)
    held_back = []

    def hold_back(*signal_and_frame: Any) -> None:
        held_back.append(signal_and_frame)

    @contextmanager
    def let_through() -> Iterator[None]:
        signal.signal(signal.SIGINT, handler)
        try:
            if held_back:
                signal.raise_signal(signal.SIGINT)
            yield
        finally:
            signal.signal(signal.SIGINT, hold_back)

    signal.signal(signal.SIGINT, hold_back)
    try:
        yield let_through
    finally:
        signal.signal(signal.SIGINT, handler)


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


async def _kill_workers(cluster: Any, starting: Future) -> None:
    """End workers of this machine, which have little time for it: they may be busy."""

    async def end() -> None:
        await asyncio.wrap_future(starting)
        workers = cluster.workers.values()
        await asyncio.gather(*(w.close() for w in workers), return_exceptions=True)

    ending = asyncio.ensure_future(end())
    while not (await asyncio.wait([ending], timeout=0.1))[0]:
        for process in multiprocessing.active_children():
            process.kill()


def _cluster_class(where: str) -> type:
    if where == LOCAL:
        return _import("distributed").LocalCluster
    handler = signal.getsignal(signal.SIGINT)
    module = _import("dask_jobqueue")
    signal.signal(signal.SIGINT, handler)  # with its own, Ctrl-C is a success
    return getattr(module, JOB_QUEUES[where])


def _import(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ClusterError(
            f"decoding with several workers needs {module} ({e}): "
            'pip install "espnet_lenbias[cluster]"'
        ) from e


def _check_submit_command(where: str) -> None:
    """Verify that jobs can be submitted from this machine."""
    job = getattr(_cluster_class(where), "job_cls", None)
    if job is not None and shutil.which(job.submit_command.split()[0]) is None:
        raise ClusterError(
            f"cluster: {where}: there is no command {job.submit_command} on this machine"
        )


def _read_config(path: str, where: str) -> Mapping[str, Any]:
    """Read the keyword arguments of a cluster class, and verify their names."""
    try:
        config = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise ClusterError(f"{path}: not a yaml file: {e}") from e
    if not isinstance(config, dict):
        raise ClusterError(f"{path}: a cluster config holds `option: value` lines")
    valid = _keywords(_cluster_class(where))
    for key in config:
        if key == "n_workers":
            raise ClusterError(f"{path}: n_workers: give the number with --nj")
        if key not in valid:
            raise ClusterError(f"{path}: unknown option {key}{nearest(key, valid)}")
    return config


def _keywords(cluster_class: type) -> set[str]:
    """Return the keyword arguments of a cluster class and of the workers it starts."""
    job = getattr(cluster_class, "job_cls", None)
    takers = [cluster_class, *(job.__mro__ if job else [_import("distributed").Nanny])]
    return {
        name
        for taker in takers
        for name, parameter in inspect.signature(taker.__init__).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    } - _OURS
