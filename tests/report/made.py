"""Folders of decodings written by hand, and cells made of them."""

from pathlib import Path

import yaml

from espnet_lenbias.report.cells import Cell, score
from espnet_lenbias.report.decodings import Decoding, ReferenceSet
from espnet_lenbias.report.systems import System

# Three utterances of 6, 2 and 4 words.
REFERENCES = {
    "s1-u1": "the cat sat on the mat",
    "s1-u2": "oh yes",
    "s2-u3": "a b c d",
}


def write_lines(path: Path, values: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key} {value}\n" for key, value in values.items()))


def write_system(
    folder: Path, tag: str, config: dict, sets: dict, place: str = "1best_recog"
) -> None:
    """Write a row: a decode config, and for each set the files by name."""
    (folder / tag).mkdir(parents=True)
    (folder / tag / "decode.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    for dataset, files in sets.items():
        for name, values in files.items():
            write_lines(folder / tag / dataset / place / name, values)


def system(name: str = "simple", beam: int = 4, **kwargs) -> System:
    """Return a row; `search` is its name unless given."""
    return System(
        **{"tag": f"{name}_{beam}", "name": name, "search": name, "beam_size": beam}
        | kwargs
    )


def cells(
    *rows: tuple[System, dict], dataset: str = "dev", references: dict = REFERENCES
) -> list[Cell]:
    """Score rows of hypotheses of a set, made as (system, {file: {utterance: value}})."""
    speakers = {key: key.partition("-")[0] for key in references}
    of_set = ReferenceSet(dataset, references, speakers)
    return score(_decoding(row, of_set, files) for row, files in rows)


def _decoding(row: System, of_set: ReferenceSet, files: dict) -> Decoding:
    names = ("texts", "score", "original_score", "steps", "stopped", "labels", "loops")
    names += ("word_confidence",)
    return Decoding(row, of_set, **{name: files.get(name, {}) for name in names})
