"""A folder of decodings in ESPnet's form, read together with its references.

``DIR/<tag>/decode.yaml`` describes a system. What it made of a set is in
``DIR/<tag>/<set>/text``, where asr.sh joins its jobs, or in
``DIR/<tag>/<set>/1best_recog/text``, as the inference tool writes it, with `score`,
`original_score`, `steps` and `token_int` beside it where there are such files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from espnet_lenbias.report.scoring import read_text
from espnet_lenbias.report.systems import System, read_system

CONFIG = "decode.yaml"

# Where a set's files are; asr.sh leaves those that it does not know in the last place.
_PLACES = ("{}", "1best_recog/{}", "logdir/output.*/1best_recog/{}")

T = TypeVar("T")


@dataclass(frozen=True)
class ReferenceSet:
    """What was said in a set."""

    name: str
    texts: Mapping[str, str]  # utterance id -> text
    speakers: Mapping[str, str]  # utterance id -> speaker

    @property
    def mean_words(self) -> float:
        """Words per utterance."""
        return sum(len(t.split()) for t in self.texts.values()) / len(self.texts)


@dataclass(frozen=True)
class Decoding:
    """What a system made of a set; by utterance, empty where there is no such file."""

    system: System
    references: ReferenceSet
    texts: Mapping[str, str]
    score: Mapping[str, float]  # what the search ranks by
    original_score: Mapping[str, float]  # q
    steps: Mapping[str, int]  # positions searched
    labels: Mapping[str, int]  # of the hypothesis, the end label counted


def read_decodings(folder: Path, data: Path) -> tuple[list[System], list[Decoding]]:
    """Read all systems of a folder and what they have decoded so far.

    Args:
        folder: Holds ``<tag>/decode.yaml`` and ``<tag>/<set>/``.
        data: Holds ``<set>/text`` and, where speakers are known, ``<set>/utt2spk``.

    Returns:
        The systems, baselines first, and their decodings, in the order of systems and
        then of the names of the sets.

    Raises:
        OSError: Says which file is missing.
        ValueError: Says which file is wrong and why.
    """
    systems = _read_systems(folder)
    sets: dict[str, ReferenceSet] = {}
    decodings = []
    for system in systems:
        for path in _set_folders(folder / system.tag):
            if path.name not in sets:
                sets[path.name] = _read_references(data, path.name)
            decodings.append(_read_decoding(path, system, sets[path.name]))
    if not decodings:
        raise FileNotFoundError(
            f"{folder} holds no decodings: there is no <tag>/<set>/text nor "
            "<tag>/<set>/1best_recog/text in it"
        )
    return systems, decodings


def _read_systems(folder: Path) -> list[System]:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    if (folder / CONFIG).is_file():
        raise ValueError(
            f"{folder} is the folder of one system: name the one above it, which holds "
            f"the systems to compare, each with its {CONFIG}"
        )
    systems: dict[tuple[tuple[str, float], int], System] = {}
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        if (path / CONFIG).is_file():
            system = read_system(path / CONFIG)
            same = systems.setdefault((system.row, system.beam_size), system)
            if same is not system:
                raise ValueError(
                    f"{same.tag} and {system.tag} in {folder} are both {system.label}, "
                    f"beam {system.beam_size}: give each {CONFIG} a `row:` with a name "
                    "of its own"
                )
        elif _set_folders(path):
            raise FileNotFoundError(
                f"{path} has decodings and no {CONFIG}: copy the decode config there "
                "that it was decoded with"
            )
    return sorted(systems.values(), key=lambda system: system.order)


def _set_folders(tag: Path) -> list[Path]:
    """Return the folders of a system that hold a decoded set."""
    return [p for p in sorted(tag.iterdir()) if p.is_dir() and _files(p, "text")]


def _files(folder: Path, name: str) -> Sequence[Path]:
    """Return the files of that name that a set's folder has, all in one of the places."""
    found = (sorted(folder.glob(place.format(name))) for place in _PLACES)
    return next((paths for paths in found if paths), [])


def _read_references(data: Path, name: str) -> ReferenceSet:
    path = data / name / "text"
    if not path.is_file():
        raise FileNotFoundError(
            f"there are no references {path} for the decoded set {name}: the folder to "
            "name with --data is the one that holds <set>/text"
        )
    texts = read_text(path)
    if not texts:
        raise ValueError(f"{path} holds no references")
    speakers = {key: key.partition("-")[0] for key in texts}
    if (data / name / "utt2spk").is_file():
        speakers |= read_text(data / name / "utt2spk")
    return ReferenceSet(name, dict(sorted(texts.items())), speakers)


def _read_decoding(folder: Path, system: System, references: ReferenceSet) -> Decoding:
    texts = _read_values(folder, "text", str)
    strangers = texts.keys() - references.texts.keys()
    if strangers:
        raise ValueError(
            f"{folder} has {len(strangers)} of {len(texts)} hypotheses without a "
            f"reference, e.g. {min(strangers)}: --data is of other utterances"
        )
    return Decoding(
        system=system,
        references=references,
        texts=texts,
        score=_read_values(folder, "score", _score),
        original_score=_read_values(folder, "original_score", _score),
        steps=_read_values(folder, "steps", int),
        labels=_read_values(folder, "token_int", lambda ids: len(ids.split()) + 1),
    )


def _read_values(folder: Path, name: str, parse: Callable[[str], T]) -> Mapping[str, T]:
    """Read a result file of a set, empty if there is none."""
    values = {}
    for path in _files(folder, name):
        for key, value in read_text(path).items():
            try:
                values[key] = parse(value)
            except ValueError as e:
                raise ValueError(f"{path}: {key} has no {name} but {value!r}") from e
    return values


def _score(value: str) -> float:
    """Read a score as ESPnet writes it: ``-1.5`` or ``tensor(-1.5, device='cuda:0')``."""
    return float(value.removeprefix("tensor(").partition(",")[0].removesuffix(")"))
