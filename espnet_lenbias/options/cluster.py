"""Which workers are asked for: the options of a cluster, verified before it is started.

They run on this machine, as jobs of a job queue, or belong to a scheduler that is
running already. Dask is an extra of this package, imported where workers are wanted.
"""

import importlib
import inspect
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from espnet_lenbias.errors import ClusterError, OptionError
from espnet_lenbias.options.fast_yaml import read_config
from espnet_lenbias.options.values import nearest

LOCAL = "local"

# Job queue -> the class of dask_jobqueue that submits to it.
JOB_QUEUES = {
    "lsf": "LSFCluster",
    "oar": "OARCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "slurm": "SLURMCluster",
}

# What a config may hold for a scheduler that is running already, as Dask names it.
_SECURITY = {"require_encryption", "tls_ca_file", "tls_client_cert", "tls_client_key"}

# How processes of a cluster talk, which is the same for all clusters.
_ENCRYPTION = {"protocol", "security"}

# Keyword arguments that hold what is the scheduler's, or the workers', alone.
_OF_SCHEDULER = {"scheduler_kwargs", "scheduler_options"}
_OF_WORKERS = {"extra", "worker_extra_args"}

# Keyword arguments that are not the user's to give.
_OURS = {
    "asynchronous",
    "job_cls",
    "loop",
    "n_workers",
    "scheduler",
    "self",
}


@dataclass(frozen=True)
class Workers:
    """Workers that were asked for."""

    # One of LOCAL, JOB_QUEUES, or the address of a scheduler.
    where: str
    # How many; None: those that the scheduler has.
    number: int | None = None
    # Keyword arguments of Dask's cluster class, or of its ``Security`` for a scheduler.
    config: Mapping[str, Any] = field(default_factory=dict)


def choose_workers(
    nj: int | None, cluster: str | None, cluster_config: str | None
) -> Workers | None:
    """Verify the options that ask for workers.

    Args:
        nj: How many.
        cluster: A kind of cluster, or the address of a scheduler.
        cluster_config: A yaml file with keyword arguments of Dask's cluster class, or
            with the certificates for a scheduler.

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
    where = LOCAL if cluster is None else cluster
    if where == LOCAL or where in JOB_QUEUES:
        config = _read_config(cluster_config, where) if cluster_config else {}
        _check_submit_command(where)
        import_extra("cryptography")  # which makes the certificates
        return Workers(where, nj or 1, config)
    if ":" not in where:
        names = [LOCAL, *JOB_QUEUES]
        raise ClusterError(
            f"cluster: there is no {where!r}{nearest(where, names)} (one of: "
            f"{', '.join(names)}, or the address HOST:PORT of a running Dask scheduler)"
        )
    if nj is not None:
        raise ClusterError(f"cluster: {where} has its workers already; leave out nj")
    import_extra("distributed")
    config = _read_security(cluster_config) if cluster_config else {}
    return Workers(where, config=config)


def cluster_class(where: str) -> type:
    """Return Dask's class of clusters of this machine, or of a job queue."""
    if where == LOCAL:
        local: type = import_extra("distributed").LocalCluster
        return local
    handler = signal.getsignal(signal.SIGINT)
    module = import_extra("dask_jobqueue")
    signal.signal(signal.SIGINT, handler)  # with its own, Ctrl-C is a success
    cluster: type = getattr(module, JOB_QUEUES[where])
    return cluster


def import_extra(module: str) -> ModuleType:
    """Import a module that comes with the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise ClusterError(
            f"decoding with several workers needs {module} ({e}): "
            'pip install "espnet_lenbias[cluster]"'
        ) from e


def _check_submit_command(where: str) -> None:
    """Verify that jobs can be submitted from this machine."""
    job = getattr(cluster_class(where), "job_cls", None)
    if job is not None and shutil.which(job.submit_command.split()[0]) is None:
        raise ClusterError(
            f"cluster: {where}: there is no command {job.submit_command} on this "
            "machine"
        )


def _read_config(path: str, where: str) -> Mapping[str, Any]:
    """Read the keyword arguments of a cluster class, and verify their names."""
    config = _read_yaml(path)
    if "n_workers" in config:
        raise ClusterError(f"{path}: n_workers: give the number with --nj")
    for key in _unencrypted(path, config):
        raise ClusterError(
            f"{path}: {key}: leave it out: runs use TLS, with certificates of their own"
        )
    _check_names(path, config, _keywords(cluster_class(where)))
    return config


def _unencrypted(path: str, config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a config has that would change how processes talk."""
    for key, value in config.items():
        if key in _ENCRYPTION:
            yield key
        elif key == "host" and "://" in str(value).removeprefix("tls://"):
            yield f"{key}: {str(value).partition('://')[0]}://"
        elif key in _OF_SCHEDULER:
            if not isinstance(value, dict):
                raise ClusterError(f"{path}: {key}: it holds `option: value` lines")
            yield from (f"{key}: {inner}" for inner in _unencrypted(path, value))
        elif key in _OF_WORKERS and isinstance(value, list):
            for option in map(str, value):
                if option.startswith(("--protocol", "--tls-")):
                    yield f"{key}: {option.partition('=')[0]}"


def _read_security(path: str) -> Mapping[str, Any]:
    """Read what it takes to connect to a scheduler, and verify it."""
    config = _read_yaml(path)
    _check_names(path, config, _SECURITY)
    for key, value in config.items():
        if key == "require_encryption":
            if not isinstance(value, bool):
                raise ClusterError(
                    f"{path}: {key}: {value!r} is neither true nor false"
                )
        elif not isinstance(value, str) or not os.path.isfile(value):
            raise ClusterError(f"{path}: {key}: there is no file {value}")
    # What is not in this file can be in Dask's own configuration.
    security = import_extra("distributed").Security(**config)
    if not (security.tls_ca_file and security.tls_client_cert):
        raise ClusterError(f"{path}: give both tls_ca_file and tls_client_cert")
    return config


def _read_yaml(path: str) -> dict[str, Any]:
    try:
        config = read_config(path)
    except OptionError as e:
        raise ClusterError(str(e)) from e
    if not isinstance(config, dict):
        raise ClusterError(f"{path}: a cluster config holds `option: value` lines")
    return config


def _check_names(path: str, config: Mapping[str, Any], valid: set[str]) -> None:
    for key in config:
        if key not in valid:
            raise ClusterError(f"{path}: unknown option {key}{nearest(key, valid)}")


def _keywords(of: type) -> set[str]:
    """Return the keyword arguments of a cluster class and of the workers it starts."""
    job = getattr(of, "job_cls", None)
    takers = [of, *(job.__mro__ if job else [import_extra("distributed").Nanny])]
    return {
        name
        for taker in takers
        for name, parameter in inspect.signature(taker.__init__).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    } - (_OURS | _ENCRYPTION)
