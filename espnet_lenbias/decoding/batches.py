"""Which utterances are decoded together.

The search of a batch finds what the searches of its utterances find, so batches are free
to be made of utterances that are about equally long, whatever their place in the data.
"""

import argparse
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from espnet_lenbias.espnet_compat import decodes_batches
from espnet_lenbias.options.audio_files import seconds_of
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.precision import multiplies_integers
from espnet_lenbias.options.registry import ESPNET

# Hypotheses times seconds: at beam 20, sixteen utterances of 16 s. With more of them a CPU
# gains little.
DEFAULT_BINS = 5120

# At least so many batches, if there are as many utterances: enough for several workers,
# and however many they are, the batches are the same.
FEWEST_BATCHES = 8

# Files that data preparation, ESPnet's or Kaldi's, leaves beside the data, with what
# they count in a second.
_LENGTH_FILES = {"utt2num_samples": 16000, "utt2num_frames": 100}

_UNKNOWN_SECONDS = 15.0  # of a command, or a place in an archive


def choose_batches(
    tool: Tool, args: argparse.Namespace, keys: Sequence[str]
) -> list[Sequence[str]]:
    """Return the batches that a run's options ask for, of all its utterances.

    Args:
        tool: Which tool decodes.
        args: Its options; `batch_size` and `batch_bins` are None where nothing is said.
        keys: Of the utterances, in the order of the data.
    """
    size, bins = args.batch_size, args.batch_bins
    together = takes_bins(tool, args)
    if bins is None and (size is not None or not together):
        most, limit = size or 1, math.inf
    else:
        most = size if size is not None and size > 1 else len(keys) // FEWEST_BATCHES
        limit = (bins or DEFAULT_BINS) / args.beam_size
    if most <= 1 or not together:
        step = max(1, most)
        return [keys[i : i + step] for i in range(0, len(keys), step)]
    if tool.window_seconds:
        seconds: Mapping[str, float] = dict.fromkeys(keys, tool.window_seconds)
    else:
        seconds = source_lengths(tool, args)
    return bounded(by_length(keys, seconds), seconds, limit, most)


def takes_bins(tool: Tool, args: argparse.Namespace) -> bool:
    """Tell whether a search finds in a batch, of whatever utterances, what it should."""
    if args.search == ESPNET or multiplies_integers(vars(args)):
        return False
    return tool.batches and decodes_batches()


def bounded(
    keys: Sequence[str], seconds: Mapping[str, float], limit: float, most: int
) -> list[Sequence[str]]:
    """Cut utterances, the longest first, into batches.

    Args:
        keys: Of the utterances.
        seconds: The length of each; those not in it are of some usual length.
        limit: Utterances of a batch times its longest; a single one may exceed it.
        most: Utterances of a batch.
    """
    batches: list[Sequence[str]] = []
    start = 0
    while start < len(keys):
        longest = seconds.get(keys[start], _UNKNOWN_SECONDS)
        size = int(max(1, min(most, limit / max(longest, 0.01))))
        batches.append(keys[start : start + size])
        start += size
    return batches


def by_length(keys: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Sort utterances, the longest first, equally long ones in the order of the data."""
    return sorted(keys, key=lambda key: -seconds.get(key, _UNKNOWN_SECONDS))


def source_lengths(tool: Tool, args: argparse.Namespace) -> Mapping[str, float]:
    """Return about how long what is decoded is, of those where it can be told.

    Args:
        tool: Which tool decodes.
        args: Its options, with the pieces of recordings as `pieces`, if any.

    Returns:
        Seconds of audio, or signs of a text.
    """
    if args.pieces:
        pieces = args.pieces.items()
        return {key: piece.seconds for key, piece in pieces if piece.seconds > 0}
    data = args.data_path_and_name_and_type
    named = (path for path, name, _ in data if name == tool.source)
    path = Path(next(named, data[0][0]))
    if tool.source == tool.text:
        return {key: float(len(value)) for key, value in _columns(path)}
    return utterance_seconds(path)


def utterance_seconds(data_file: Path) -> Mapping[str, float]:
    """Return about how long utterances are, of those where it can be told.

    Args:
        data_file: A ``wav.scp`` or the like.

    Returns:
        By what data preparation has left beside the file; else by its audio files.
    """
    for name, in_a_second in _LENGTH_FILES.items():
        path = data_file.with_name(name)
        if path.is_file():
            return {
                key: int(value) / in_a_second
                for key, value in _columns(path)
                if value.isdigit()
            }
    stat = data_file.stat()
    return _audio_seconds(data_file.absolute(), stat.st_mtime_ns, stat.st_size)


# All files are opened, for the batches, and for the order in which workers get these.
@functools.lru_cache(maxsize=1)
def _audio_seconds(data_file: Path, changed: int, size: int) -> Mapping[str, float]:
    """Return the lengths of the audio files in a list of this date and size."""
    seconds = {}
    for key, value in _columns(data_file):
        with suppress(OSError, ValueError):  # no file, or a broken one
            seconds[key] = seconds_of(Path(value))
    return seconds


def _columns(path: Path) -> Iterator[list[str]]:
    """Yield key and value of each line of a Kaldi-style file."""
    with path.open(encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            columns = line.split(maxsplit=1)
            if len(columns) == 2:
                yield [columns[0], columns[1].strip()]
