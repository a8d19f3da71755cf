"""The pages of Ogg files, Vorbis or Opus. No torch here.

Of a damaged page libsndfile says nothing: what is in it, or behind it, is missing.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

_BEGINNING = b"OggS"
_HEADER = struct.Struct(
    "<4sxBqIIIB"
)  # ..., type, place, stream, number, checksum, parts
_CHECKSUM = slice(22, 26)  # of a page's bytes

_LONGEST = 65307  # bytes of a page

# Bits of a page's type: it is the first of its stream, or the last.
_FIRST = 2
_LAST = 4

_AT_ONCE = 512  # pages, whose checksums are worked out side by side


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
    pages: list[bytes] = []
    places: list[int] = []
    for place, page in _pages(path.read_bytes()):
        if page is None:
            return _first_wrong(places, pages, otherwise=place)
        places.append(place)
        pages.append(page)
        if len(pages) == _AT_ONCE:
            wrong = _first_wrong(places, pages)
            if wrong is not None:
                return wrong
            pages.clear()
            places.clear()
    return _first_wrong(places, pages)


def _pages(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Yield the pages with their places; None where none begins, or one is missing.

    What follows the last one, such as a tag, is none.
    """
    place, kind = 0, 0
    next_number: dict[int, int] = {}
    while place < len(data):
        head = data[place : place + _HEADER.size]
        if len(head) < _HEADER.size or not head.startswith(_BEGINNING):
            if not kind & _LAST:
                yield place, None
            return
        _, kind, _, stream, number, _, n_parts = _HEADER.unpack(head)
        body = place + _HEADER.size + n_parts
        end = body + sum(data[place + _HEADER.size : body])
        follows = kind & _FIRST or number == next_number.get(stream, number)
        if end > len(data) or not follows:
            yield place, None
            return
        next_number[stream] = number + 1
        yield place, data[place:end]
        place = end


def _first_wrong(
    places: Sequence[int], pages: Sequence[bytes], otherwise: int | None = None
) -> int | None:
    """Return where the first page is whose checksum is wrong; `otherwise` if none is."""
    said = [struct.unpack("<I", page[_CHECKSUM])[0] for page in pages]
    wrong = np.flatnonzero(checksums(pages) != np.array(said, dtype=np.uint32))
    return places[wrong[0]] if len(wrong) else otherwise


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
