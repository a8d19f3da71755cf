"""A folder of decodings in ESPnet's form, read together with its references.

What was made of a set is in ``DIR/<tag>/<set>/text``, where asr.sh joins its jobs, or in
``DIR/<tag>/<set>/1best_recog/text``, as the inference tool writes it, with `score`,
`original_score`, `steps`, `stopped`, `token_int`, `word_confidence` and `word_times` beside
it where there are such files. How it was decoded, its system, the journal of the run says;
ESPnet's own tool leaves none, and then ``DIR/<tag>/decode.yaml`` counts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from espnet_lenbias.options.run_journal import JOURNAL, check_regular
from espnet_lenbias.options.values import score_number
from espnet_lenbias.report.ran import (
    config_that_ran,
    contradictions,
    model_that_ran,
    translated,
)
from espnet_lenbias.report.result_files import files, journals, lacking, read_values
from espnet_lenbias.report.result_values import (
    check_words,
    shares,
    times,
    words_said,
)
from espnet_lenbias.report.scoring import read_text
from espnet_lenbias.report.systems import (
    System,
    read_system,
    system_of,
    with_defaults,
)
from espnet_lenbias.report.trn import usual_speaker
from espnet_lenbias.search.loops import loops

T = TypeVar("T")

# In which asr.sh, asked for it (`--eval_valid_set true`), puts the validation set.
_NESTED = "org"

CONFIG = "decode.yaml"

_REMEDY = "the command that decoded it writes it anew when it is started again"

_NOTHING = "there is no <tag>/<set>/text nor <tag>/<set>/1best_recog/text in it"


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
    stopped: Mapping[str, str]  # why the search did
    labels: Mapping[str, int]  # of the hypothesis, the end label counted
    loops: Collection[str]  # the utterances whose labels loop; words, without labels
    # a number for each word
    word_confidence: Mapping[str, Sequence[float]] = field(default_factory=dict)
    # start and end of each word, in seconds
    word_times: Mapping[str, Sequence[tuple[float, float]]] = field(
        default_factory=dict
    )
    translates: bool = False  # whether it is in another language than what was decoded


@dataclass(frozen=True)
class Found:
    """What a folder holds."""

    systems: Sequence[System]  # baselines first
    decodings: Sequence[Decoding]  # in the order of systems, then of names of sets
    skipped: Sequence[str]  # what cannot be reported, and why
    contradicted: Sequence[str]  # decode configs that are not of what ran
    incomplete: Sequence[str]  # result files that lack what has been decoded
    mixed: Sequence[str]  # rows whose sets were decoded with different models


@dataclass
class _Reading:
    """What has been found so far."""

    sets: dict[Path, System] = field(default_factory=dict)  # by the folder of the set
    systems: list[System] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)


def read_decodings(folder: Path, data: Path) -> Found:
    """Read all systems of a folder and what they have decoded so far.

    Args:
        folder: Holds ``<tag>/<set>/`` and, beside the sets, ``<tag>/decode.yaml``.
        data: Holds ``<set>/text`` and, where speakers are known, ``<set>/utt2spk``.

    Raises:
        OSError: Says which file is missing.
        ValueError: Says which file is wrong and why.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    if (folder / CONFIG).is_file():
        raise ValueError(
            f"{folder} is the folder of one system: name the one above it, which holds "
            f"the systems to compare, each with its {CONFIG}"
        )
    found = _Reading()
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        _read_tag(path, found)
    _tell_apart(folder, found.systems)
    references: dict[str, ReferenceSet] = {}
    decodings = []
    for path, system in found.sets.items():
        if path.name not in references:
            references[path.name] = _read_references(data, path.name)
        decodings.append(_read_decoding(path, system, references[path.name]))
    if not decodings:
        raise FileNotFoundError(
            f"{folder} holds no decodings that can be reported: "
            + ("; ".join(found.skipped) or _NOTHING)
        )
    decodings.sort(key=lambda d: (d.system.order, d.system.tag, d.references.name))
    systems = sorted(found.systems, key=lambda system: (system.order, system.tag))
    return Found(
        systems,
        decodings,
        found.skipped,
        found.contradicted,
        found.incomplete,
        found.mixed,
    )


def _read_tag(tag: Path, found: _Reading) -> None:
    """Add the systems of a folder: one, unless its sets were decoded differently."""
    path, config = tag / CONFIG, None
    if path.is_file():
        config = read_system(path)
    # With the first set of each, and the model that it was decoded with.
    systems: dict[System, tuple[str, Mapping[str, str]]] = {}
    for folder in sorted(p for p in tag.iterdir() if p.is_dir()):
        what = list(lacking(folder))
        if files(folder, "text"):
            found.incomplete += what
        else:
            found.skipped += [f"{line}: {_REMEDY}" for line in what]
    if (tag / _NESTED).is_dir():
        found.skipped += [
            f"`{tag.name}`, {_NESTED}/{folder.name}: sets within another folder are not "
            f"read: link it as {tag.name}/{folder.name}, and its references likewise"
            for folder in _set_folders(tag / _NESTED)
        ]
    for folder in _set_folders(tag):
        try:
            ran = _config_that_ran(folder)
        except ValueError as e:
            found.skipped.append(f"`{tag.name}`, {folder.name}: {e}")
            continue
        if ran is None and config is None:
            found.skipped.append(
                f"`{tag.name}`, {folder.name}: there is neither a journal ({JOURNAL}) of "
                f"the run nor a {CONFIG}: copy the decode config there that it was "
                "decoded with"
            )
            continue
        if ran is not None and config is not None:
            wrong = list(contradictions(config, ran))
            if wrong:
                found.contradicted.append(
                    f"`{tag.name}/{CONFIG}` says {', '.join(wrong)} in {folder.name}"
                )
        if ran is None:
            ran = with_defaults(config or {})
        row = {"row": config["row"]} if config and "row" in config else {}
        system = _system(path, {**ran, **row})
        model = _model_that_ran(folder)
        first, other = systems.setdefault(system, (folder.name, model))
        differ = _differences(other, model)
        if differ:
            found.mixed.append(
                f"`{tag.name}`: {first} and {folder.name} differ in {', '.join(differ)}"
            )
        found.sets[folder] = system
    if not systems and config is not None and not _set_folders(tag):
        # one that has decoded nothing yet
        systems[_system(path, with_defaults(config))] = (tag.name, {})
    found.systems += systems


def _config_that_ran(folder: Path) -> dict[str, Any] | None:
    """Return the decode config of the run that a set's folder is of; None: not known.

    Raises:
        ValueError: The jobs of the run do not agree, or a journal is no journal.
    """
    configs = [config_that_ran(journal) for journal in journals(folder)]
    for config in configs[1:]:
        wrong = list(contradictions(config, configs[0]))
        if wrong:
            raise ValueError(f"its jobs differ: {', '.join(wrong)}")
    return configs[0] if configs else None


def _model_that_ran(folder: Path) -> Mapping[str, str]:
    """Return the model of the run that a set's folder is of; {}: not known."""
    return next((model_that_ran(journal) for journal in journals(folder)), {})


def _differences(one: Mapping[str, str], two: Mapping[str, str]) -> list[str]:
    """Return the options of two models that differ, where both are known."""
    keys = one.keys() | two.keys() if one and two else ()
    return sorted(key for key in keys if one.get(key) != two.get(key))


def _system(path: Path, config: Any) -> System:
    """Return the system of a decode config.

    Args:
        path: Where the config is, or would be.
        config: What it holds.
    """
    try:
        return system_of(path.parent.name, config)
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from e


def _tell_apart(folder: Path, systems: Sequence[System]) -> None:
    """Verify that tables can tell the systems of a folder apart."""
    rows: dict[tuple[tuple[str, float], int], System] = {}
    for system in systems:
        same = rows.setdefault((system.row, system.beam_size), system)
        if same is not system:
            raise ValueError(
                f"{same.tag} and {system.tag} in {folder} are both {system.label}, "
                f"beam {system.beam_size}: give each a `row:` with a name of its own, in "
                f"its {CONFIG} (a file beside the sets, which can hold this line alone)"
            )


def _set_folders(tag: Path) -> list[Path]:
    """Return the folders of a system that hold a decoded set."""
    return [p for p in sorted(tag.iterdir()) if p.is_dir() and files(p, "text")]


def _read_references(data: Path, name: str) -> ReferenceSet:
    path = data / name / "text"
    check_regular(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"there are no references {path} for the decoded set {name}: the folder to "
            "name with --data is the one that holds <set>/text"
        )
    texts = read_text(path)
    if not texts:
        raise ValueError(f"{path} holds no references")
    speakers = {key: usual_speaker(key) for key in texts}
    if (data / name / "utt2spk").is_file():
        speakers |= read_text(data / name / "utt2spk")
    return ReferenceSet(name, dict(sorted(texts.items())), speakers)


def _of_said_words(
    values: Mapping[str, Sequence[T]],
    whole: Mapping[str, str],
    texts: Mapping[str, str],
) -> dict[str, Sequence[T]]:
    """Return what a result file of OWSM tells of the words that are said.

    Args:
        values: Of each word, those that are symbols among them, by utterance.
        whole: The texts with the symbols.
        texts: Without.
    """
    said: dict[str, Sequence[T]] = {}
    for key in values.keys() & whole.keys():
        places = words_said(whole[key], texts.get(key, ""))
        if places is not None:
            said[key] = [values[key][i] for i in places]
    return said


def _read_decoding(folder: Path, system: System, references: ReferenceSet) -> Decoding:
    # OWSM's `text` holds the symbols of its language and task, too.
    plain = files(folder, "text_nospecial")
    texts = read_values(folder, "text_nospecial" if plain else "text", str)
    strangers = texts.keys() - references.texts.keys()
    if strangers:
        raise ValueError(
            f"{folder} has {len(strangers)} of {len(texts)} hypotheses without a "
            f"reference, e.g. {min(strangers)}: --data is of other utterances"
        )
    labels = read_values(folder, "token_int", str.split)
    whole = read_values(folder, "text", str) if plain else texts
    word_confidence: Mapping[str, Sequence[float]]
    word_times: Mapping[str, Sequence[tuple[float, float]]]
    word_confidence = read_values(folder, "word_confidence", shares)
    # those of a text that could not be aligned are not known: an empty line
    found = read_values(folder, "word_times", times)
    word_times = {key: spans for key, spans in found.items() if spans}
    check_words(folder, whole, "word_confidence", word_confidence)
    check_words(folder, whole, "word_times", word_times)
    if plain:
        word_confidence = _of_said_words(word_confidence, whole, texts)
        word_times = _of_said_words(word_times, whole, texts)
    return Decoding(
        system=system,
        references=references,
        texts=texts,
        score=read_values(folder, "score", score_number),
        original_score=read_values(folder, "original_score", score_number),
        steps=read_values(folder, "steps", int),
        stopped=read_values(folder, "stopped", str),
        labels={key: len(ids) + 1 for key, ids in labels.items()},
        loops={k for k, text in texts.items() if loops(labels.get(k, text.split()))},
        word_confidence=word_confidence,
        word_times=word_times,
        translates=any(map(translated, journals(folder))),
    )
