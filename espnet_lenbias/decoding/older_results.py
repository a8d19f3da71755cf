"""Files of an output folder that tell of older results, taken away."""

from collections.abc import Container
from pathlib import Path

from espnet_lenbias.decoding.format_list import (
    LIST,
    noted_files,
    remove_files,
    set_aside,
)
from espnet_lenbias.decoding.join_pieces import RECORDINGS
from espnet_lenbias.decoding.journal import is_result_file
from espnet_lenbias.decoding.plain_files import is_own, is_own_folder, remove


def remove_derived(folder: Path) -> None:
    """Remove what is written at the end of a run, from all of its results.

    Until then it would tell of the results before: other formats, texts of recordings.
    What a person has changed of it gets another name.

    Raises:
        OSError: Names a file that cannot be removed.
    """
    of_recordings = folder / RECORDINGS / "1best_recog"
    texts = []
    if is_own_folder(of_recordings.parent) and is_own_folder(of_recordings):
        texts = [p for p in of_recordings.glob("text*") if is_own(p) and not p.suffix]
    remove(texts)
    noted = noted_files(folder)
    set_aside(folder, noted, noted)
    remove_files(folder, noted)
    remove(filter(is_own, [folder / LIST]))


def remove_results(folder: Path) -> None:
    """Remove all results, of a folder for which there is nothing to decode any more.

    The journal stays: what is listed again has its results again.

    Args:
        folder: The output folder, which is locked.

    Raises:
        OSError: Names a file that cannot be removed.
    """
    remove_derived(folder)
    remove_other_results(folder, ())


def remove_other_results(folder: Path, names: Container[str]) -> None:
    """Remove the result files that are none of these, such as those of older options.

    Args:
        folder: The output folder.
        names: Of the files that stay, below the folder.

    Raises:
        OSError: Names a file that cannot be removed.
    """
    for rank in filter(is_own_folder, folder.glob("*best_recog")):
        found = {f"{rank.name}/{p.name}": p for p in rank.iterdir() if is_own(p)}
        remove(p for n, p in found.items() if is_result_file(n) and n not in names)
