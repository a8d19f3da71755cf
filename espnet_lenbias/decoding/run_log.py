"""The log of the runs that have decoded, kept in the output folder.

ESPnet's scripts overwrite theirs when a finished run is started again, and would then
tell no real-time factor.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from espnet_lenbias.decoding.log_markers import paired
from espnet_lenbias.decoding.plain_files import open_plain
from espnet_lenbias.errors import shown

LOG = "decoding.log"

_FORMAT = "%(asctime)s (%(module)s:%(lineno)d) %(levelname)s: %(message)s"

# A whole line that marks a start or an end; what a killed run has cut is none.
_MARKER = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \([^)]*\) INFO: "
    r"(speech length: \d+|best hypo.*)\n"
)


class _Appended(logging.FileHandler):
    def _open(self) -> Any:
        return open_plain(Path(self.baseFilename), "a")

    def handleError(self, record: logging.LogRecord) -> None:
        """Leave it: a disk that is full ends the run where it writes results."""


class _Shown(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the lines of a message, in which names of files steer no terminal."""
        return "\n".join(map(shown, super().formatMessage(record).split("\n")))


def log_to_terminal(level: str) -> None:
    """Show what is logged, as ESPnet's tools do; where logging is set up, it stays so."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Shown(_FORMAT))
    logging.basicConfig(level=level, handlers=[handler])


@contextmanager
def log_kept(folder: Path) -> Iterator[None]:
    """Append what is logged within the context to the log of an output folder.

    Raises:
        OSError: Names the log, which cannot be written.
    """
    handler = _Appended(folder / LOG)
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


def kept_markers(folder: Path) -> list[str]:
    """Return the lines of starts and ends in the log of an output folder, in pairs."""
    try:
        with open_plain(folder / LOG, "r") as f:
            found = [match for line in f if (match := _MARKER.fullmatch(line))]
    except FileNotFoundError:
        return []
    is_kept = paired([match[1] for match in found])
    return [match[0] for match, kept in zip(found, is_kept) if kept]
