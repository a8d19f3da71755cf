"""How a command ends that was interrupted."""

import signal
import sys

from espnet_lenbias.errors import Terminated


def interrupted(error: KeyboardInterrupt, goes_on: bool) -> int:
    """Say that a command was interrupted; return its exit status.

    Args:
        error: What it was interrupted by.
        goes_on: Whether the same command goes on where this one has ended.
    """
    rest = "; the same command decodes the rest" if goes_on else ""
    print(f"interrupted{rest}", file=sys.stderr)
    number: int = error.args[0] if isinstance(error, Terminated) else signal.SIGINT
    return 128 + number  # as shells report a program that a signal has ended
