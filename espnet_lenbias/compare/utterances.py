"""Sets of utterances in LibriSpeech's layout."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from espnet_lenbias.report.scoring import read_text

T = TypeVar("T")


@dataclass(frozen=True)
class Utterance:
    """What is decoded, and what was said."""

    dataset: str
    key: str
    reference: str
    audio: Path


def batches(
    utterances: Sequence[Utterance], batch_size: int
) -> Iterator[Sequence[Utterance]]:
    """Yield so many utterances at a time, the last time those that are left."""
    for start in range(0, len(utterances), batch_size):
        yield utterances[start : start + batch_size]


def spread(items: Sequence[T], count: int) -> Sequence[T]:
    """Return so many of the items, evenly spaced; all for 0, or if there are fewer."""
    if not 0 < count < len(items):
        return items
    return [items[i * len(items) // count] for i in range(count)]


def read_set(root: Path, name: str) -> list[Utterance]:
    """List the utterances of a set in LibriSpeech's layout.

    Raises:
        FileNotFoundError: Says which transcripts or audio are missing.
    """
    utterances = [
        Utterance(name, key, text, path.with_name(f"{key}.flac"))
        for path in sorted((root / name).rglob("*.trans.txt"))
        for key, text in read_text(path).items()
    ]
    if not utterances:
        raise FileNotFoundError(
            f"there are no transcripts {root / name}/<speaker>/<chapter>/*.trans.txt: "
            "the folder to name is the one that holds the sets, in LibriSpeech's layout"
        )
    missing = [u.audio for u in utterances if not os.path.isfile(u.audio)]
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of the {len(utterances)} audio files of {name} are "
            f"missing, e.g. {missing[0]}"
        )
    return utterances
