"""Standard output whose reader may go before all is written: a pipe into ``head``."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# As shells report a program that a reader who has gone has ended.
READER_GONE = 141


@contextmanager
def reader_may_go() -> Iterator[None]:
    """End with that status, and quietly, once nobody reads what is written."""
    open_closed_streams()
    try:
        try:
            yield
        finally:
            with suppress(AttributeError):  # there may be no standard output at all
                sys.stdout.flush()  # here, where a reader who has gone is no surprise
    except BrokenPipeError:
        # What is left to write, at exit, has nowhere to go either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(READER_GONE) from None


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
