"""What becomes of memory that is free again; no torch in here.

A step of the search makes arrays of hypotheses x labels and lets them go. From some
megabytes on the C library gives such memory back to the system each time, which then
fills it with zeros anew, page by page: with Whisper's 51864 labels that is a fifth of a
step at beam 64.
"""

import ctypes
import sys
from contextlib import suppress

# glibc's mallopt: up to how much that is free at the end stays, and from which size on
# memory is asked of the system by itself, which has no larger value than this.
_TRIM_THRESHOLD, _KEPT = -1, 2**28
_MMAP_THRESHOLD, _LARGEST = -3, 2**25


def keep_freed_memory() -> None:
    """Have this process keep what is free again, up to 256 MB, where it can be told so."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError):  # of another C library
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
