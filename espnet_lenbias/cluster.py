"""Workers to decode with, started or found by Dask.

They run on this machine, as jobs of a job queue, or belong to a scheduler that is
running already. Dask is an extra of this package, imported where workers are wanted.
"""

import importlib
import inspect
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
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
    # A terminal sends an interrupt to all processes: it is for the one that started them.
    "preload": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
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
            address = workers.where
            if workers.number is not None:
                address = stack.enter_context(_cluster(workers))
            client = stack.enter_context(distributed.Client(address))
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
def _cluster(workers: Workers) -> Iterator[Any]:
    """Start a cluster that replaces the workers, or jobs, which it loses."""
    import dask

    defaults = _LOCAL_DEFAULTS if workers.where == LOCAL else _JOB_DEFAULTS
    options = {**defaults, **workers.config, "n_workers": 0}
    settings = {
        "distributed.scheduler.allowed-failures": _ALLOWED_FAILURES,
        "distributed.comm.timeouts.connect": _CONNECT_TIMEOUT,
    }
    with dask.config.set(settings), _cluster_class(workers.where)(**options) as cluster:
        problem = cluster.sync(_start_workers, cluster, workers.number)
        if problem is None:
            number = len(cluster.plan)  # all processes of the last job
            cluster.adapt(minimum=number, maximum=number)
            yield cluster
            return
    raise ClusterError(problem)


async def _start_workers(cluster: Any, number: int) -> str | None:
    """Start workers or submit their jobs; return what went wrong.

    Not by way of ``cluster.scale``, which only logs what goes wrong.
    """
    from distributed import Status

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


def _cluster_class(where: str) -> type:
    if where == LOCAL:
        return _import("distributed").LocalCluster
    return getattr(_import("dask_jobqueue"), JOB_QUEUES[where])


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
