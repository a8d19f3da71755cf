"""The pages that people read, and the fenced blocks in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
]

_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    place: str  # file:line
    language: str  # "" if none is named
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    for match in _FENCED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Block(f"{page.relative_to(ROOT)}:{line}", match[1], match[2])


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCED.sub("", page.read_text("utf-8"))


def make_targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
