"""Warnings that ESPnet repeats for each utterance, said once a run."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

# How they begin. None tells of what was asked for, or of an utterance.
_REPEATED = (
    # which does not hinder decoding: nothing is traced
    "Using make_pad_mask with a list of lengths is not tracable.",
)


class OnceARun(logging.Filter):
    """Lets the first of such warnings through, and everything else."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is to be logged."""
        for beginning in _REPEATED:
            if str(record.msg).startswith(beginning):
                is_first = beginning not in self._said
                self._said.add(beginning)
                return is_first
        return True


@contextmanager
def repeats_said_once() -> Iterator[None]:
    """Have ESPnet's repeated warnings logged once within the context.

    ESPnet logs to the root logger; so do records of workers once they are here.
    """
    once = OnceARun()
    root = logging.getLogger()
    root.addFilter(once)
    try:
        yield
    finally:
        root.removeFilter(once)
