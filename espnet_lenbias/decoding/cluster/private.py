"""What keeps other users of the machines out of a cluster.

Whoever can connect to a process of Dask's, or write into a folder that it imports from,
can run code as the owner of the process. So the processes of a cluster talk to those
alone that have its certificate, its web pages are off, and its files lie in folders
that nobody else may enter.
"""

import copy
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING, Any

from espnet_lenbias.options.cluster import LOCAL, cluster_class

if TYPE_CHECKING:
    from distributed import Security, Status

_PREFIX = "espnet_lenbias-"

# Dask always listens for its web pages. These are none, at a port of this machine only.
_NO_PAGES = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
_NO_PAGES_OF_WORKER = "--no-dashboard --dashboard-address 127.0.0.1:0"

# Runs a command, in any shell that has single quotes, with a private folder for Dask's
# scratch files. The first argument is where to make it; empty: where TMPDIR says.
# The machine of a job is known only once it runs, so a shell has to do it there.
_WITH_SCRATCH_FOLDER = (
    "/bin/sh -c '"
    'DASK_TEMPORARY_DIRECTORY=$(mktemp -d -p "$0") || exit; '
    "export DASK_TEMPORARY_DIRECTORY; "
    'trap "rm -rf \\"\\$DASK_TEMPORARY_DIRECTORY\\"" EXIT; '
    'trap "exit 143" TERM; '  # else a shell that is told to end cleans up nothing
    'env "$@"\''
)

# Files that a job needs for its connections.
_FILES_OF_JOBS = ("tls_ca_file", "tls_worker_cert", "tls_worker_key")


@contextmanager
def private_options(where: str, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Prepare a cluster that others cannot get at, and clean up after it.

    Args:
        where: The kind of cluster, as in ``Workers``.
        config: Its keyword arguments, from the user.

    Yields:
        Keyword arguments that go before those of the user.

    Raises:
        OSError: A private folder cannot be made.
    """
    import dask
    from distributed import Security

    security = Security.temporary()
    parent = dask.config.get("temporary-directory", None)
    with ExitStack() as stack:
        scratch = stack.enter_context(_private_folder(parent))
        # Also for the scheduler, which takes no such argument.
        stack.enter_context(dask.config.set({"temporary-directory": scratch}))
        pages = "scheduler_kwargs" if where == LOCAL else "scheduler_options"
        given = config.get(pages) or {}
        if "dashboard_address" not in {*config, *given}:
            given = {**_NO_PAGES, **given}
            stack.enter_context(
                dask.config.set({"distributed.scheduler.http.routes": []})
            )
        options = {"security": security, pages: given}
        if where != LOCAL:
            shared = _shared_folder(where, config)
            folder = stack.enter_context(_private_folder(shared, hidden=True))
            jobs: Any = cluster_class(where)
            options["security"] = _written(security, Path(folder))
            options["job_cls"] = type(
                "PrivateJob",
                (_PrivateJob, jobs.job_cls),
                {"folder": scratch, "scratch_parent": parent or ""},
            )
        yield options


def _private_folder(
    parent: str | None, hidden: bool = False
) -> TemporaryDirectory[str]:
    """Return a context with a new folder of mode 0700."""
    prefix = f".{_PREFIX}" if hidden else _PREFIX
    return TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True)


def _shared_folder(where: str, config: Mapping[str, Any]) -> str:
    """Return a folder that jobs see, too: the user's, or that which they work in."""
    import dask

    section = f"jobqueue.{config.get('config_name') or where}"
    folder = config.get("shared_temp_directory") or dask.config.get(
        f"{section}.shared-temp-directory", None
    )
    return os.path.abspath(os.path.expanduser(os.path.expandvars(folder or ".")))


def _written(security: "Security", folder: Path) -> "Security":
    """Return certificates that jobs can read: in files, and only their owner's."""
    security = copy.copy(security)
    for name in _FILES_OF_JOBS:
        path = folder / f"{name}.pem"
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(getattr(security, name))
        setattr(security, name, str(path))
    return security


class _PrivateJob:
    """A mix-in for classes of jobs."""

    folder: str
    scratch_parent: str
    job_script: Callable[[], str]
    _command_template: str
    status: "Status"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["security"] = security = copy.copy(kwargs["security"])
        for name in _FILES_OF_JOBS:  # Dask puts them into a command line as they are
            setattr(security, name, shlex.quote(getattr(security, name)))
        super().__init__(*args, **kwargs)
        command = self._command_template
        if "--dashboard-address" not in command:
            command = f"{command} {_NO_PAGES_OF_WORKER}"
        if "--local-directory" not in command:
            parent = shlex.quote(self.scratch_parent)
            command = f"{_WITH_SCRATCH_FOLDER} {parent} {command}"
        self._command_template = command

    async def close(self) -> None:
        """Cancel the job, and say that it is over, which Dask's own class forgets.

        Dask looks at that where a job has not been collected as garbage.
        """
        from distributed import Status

        await super().close()  # type: ignore[misc]
        self.status = Status.closed

    @contextmanager
    def job_file(self) -> Iterator[str]:
        """Write the script to a file that nobody else can put another in place of."""
        with NamedTemporaryFile("w", suffix=".sh", dir=self.folder) as f:
            f.write(self.job_script())
            f.flush()
            yield f.name
