"""One run at a time in an output folder."""

import fcntl
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from espnet_lenbias.decoding.plain_files import naming, open_number
from espnet_lenbias.errors import OtherRunError
from espnet_lenbias.options.output_folder import make_output_dir

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make an output folder and hold its lock, which goes with the process.

    It is a POSIX record lock: it ends with this process, however that ends, whatever
    becomes of processes that it has started. File servers know it too. Where a file
    system has none, a warning says so and the run goes on.

    Raises:
        OptionError: The folder cannot be made or written.
        OSError: Names a file that cannot be written.
        OtherRunError: Another run holds the lock; says which.
    """
    make_output_dir(folder)
    lock = open_number(folder / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: it is held
            raise OtherRunError(
                f"output_dir {folder} is in use by another run ({_holder(lock)}): wait "
                "for it, or name another folder"
            ) from None
        except OSError as e:
            logging.warning(
                f"output_dir {folder}: its file system has no locks ({e.strerror}), so "
                "nothing keeps a second run from writing there: start none"
            )
        if os.fstat(lock).st_nlink == 1:  # else another name of it would change, too
            with naming(folder / LOCK):
                _sign(lock)
        yield
    finally:
        os.close(lock)  # and with it the lock goes


def _sign(lock: int) -> None:
    """Write down who holds the lock."""
    who = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "program": Path(sys.argv[0]).name,
    }
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(who).encode(), 0)


def _holder(lock: int) -> str:
    """Return who holds a lock, as they wrote it down."""
    try:
        who = json.loads(os.pread(lock, 4096, 0))
        return (
            f"{who['program']}, process {who['pid']} on {who['host']}, since "
            f"{who['since']}"
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return "which has not said who it is"
