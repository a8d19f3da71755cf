"""The pages of Ogg files, whatever is in them. No torch here.

Of a damaged page libsndfile says nothing: what is in it, or behind it, is missing.
"""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_BEGINNING = b"OggS"
# Of a page: its beginning, type, place, stream, number, checksum, and number of parts.
_HEADER = struct.Struct("<4sxBqIIIB")
_CHECKSUM = slice(22, 26)  # of a page's bytes

_LONGEST = 65307  # bytes of a page

# Bits of a page's type: it is the first of its stream, or the last.
_FIRST = 2
_LAST = 4

_AT_ONCE = 512  # pages, whose checksums are worked out side by side


def begins_as_ogg(path: Path) -> bool:
    """Tell whether a file begins with a page."""
    with path.open("rb") as f:
        return f.read(len(_BEGINNING)) == _BEGINNING


def ends_with_last_page(path: Path) -> bool:
    """Tell whether a file ends with the page that is marked as its last."""
    with path.open("rb") as f:
        f.seek(max(0, os.fstat(f.fileno()).st_size - _LONGEST))
        tail = f.read()
    page = tail.rfind(_BEGINNING)
    return page >= 0 and len(tail) > page + 5 and bool(tail[page + 5] & _LAST)


def damaged_at(path: Path) -> int | None:
    """Return the byte where the first damaged page begins; None if all are whole.

    A page is damaged that is not where the one before it ends, that does not have the
    number behind that of the one before it, or that is not what its checksum says.
    """
    data = path.read_bytes()
    spans, missing = _page_spans(data)
    for n in range(0, len(spans), _AT_ONCE):
        some = spans[n : n + _AT_ONCE]
        pages = [data[start:end] for start, end in some]
        said = [struct.unpack("<I", page[_CHECKSUM])[0] for page in pages]
        wrong = np.flatnonzero(checksums(pages) != np.array(said, dtype=np.uint32))
        if len(wrong):
            return some[int(wrong[0])][0]
    return missing


def _page_spans(data: bytes) -> tuple[list[tuple[int, int]], int | None]:
    """Return where pages begin and end, one behind the other.

    Returns:
        The spans, and the byte at which a page is missing; None if none is. Behind the
        last one there may be something else, such as a tag.
    """
    spans: list[tuple[int, int]] = []
    place, kind = 0, 0
    next_number: dict[int, int] = {}
    while place < len(data):
        head = data[place : place + _HEADER.size]
        if len(head) < _HEADER.size or not head.startswith(_BEGINNING):
            return spans, None if kind & _LAST else place
        _, kind, _, stream, number, _, n_parts = _HEADER.unpack(head)
        body = place + _HEADER.size + n_parts
        end = body + sum(data[place + _HEADER.size : body])
        follows = kind & _FIRST or number == next_number.get(stream, number)
        if end > len(data) or not follows:
            return spans, place
        next_number[stream] = number + 1
        spans.append((place, end))
        place = end
    return spans, None


def checksums(pages: Sequence[bytes]) -> np.ndarray:
    """Return the checksum of each page, its own bytes of it taken as zeros.

    It is the remainder of 32 bits by the polynomial 0x04c11db7, from 0 on, nothing
    reversed. So zeros before a page change nothing, and pages of all lengths are read side
    by side, aligned at their ends.
    """
    longest = max(map(len, pages), default=0)
    held = np.zeros((longest, len(pages)), dtype=np.uint8)
    for n, page in enumerate(pages):
        held[longest - len(page) :, n] = np.frombuffer(page, dtype=np.uint8)
        held[longest - len(page) :, n][_CHECKSUM] = 0
    sums = np.zeros(len(pages), dtype=np.uint32)
    for column in held:
        sums = (sums << np.uint32(8)) ^ _TABLE[(sums >> np.uint32(24)) ^ column]
    return sums


def _table() -> np.ndarray:
    """Return the remainder of each byte, followed by 32 zero bits."""
    sums = np.arange(256, dtype=np.uint32) << np.uint32(24)
    for _ in range(8):
        carry = np.where(sums >> np.uint32(31), np.uint32(0x04C11DB7), np.uint32(0))
        sums = (sums << np.uint32(1)) ^ carry
    return sums


_TABLE = _table()
