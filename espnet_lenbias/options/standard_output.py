"""Standard output that cannot be written: its reader has gone, or the disk is full."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# As shells report a program that a reader who has gone has ended.
READER_GONE = 141


@contextmanager
def reader_may_go() -> Iterator[None]:
    """End with that status, and quietly, once nobody reads what is written.

    Where it cannot be written for another reason, such as a full disk, say so and end
    with status 2.
    """
    open_closed_streams()
    try:
        try:
            yield
        finally:
            with suppress(AttributeError):  # there may be no standard output at all
                sys.stdout.flush()  # here, where a reader who has gone is no surprise
    except BrokenPipeError:
        _give_up()
        raise SystemExit(READER_GONE) from None
    except OSError as e:
        if e.filename is not None or not _fails():
            raise
        _give_up()
        print(f"standard output cannot be written: {e.strerror}", file=sys.stderr)
        raise SystemExit(2) from None


def _fails() -> bool:
    """Tell whether standard output, which keeps what it could not write, fails again."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def _give_up() -> None:
    """Have what is left to write, at exit, go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def open_closed_streams() -> None:
    """Put the null device in the place of standard streams that are closed.

    Else the next file that is opened, of results maybe, gets the number of one, and with
    it what libraries write there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # it gets the lowest that is free
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))
