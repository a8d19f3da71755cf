"""The result files of a decoding run, complete and in order whatever happened.

Results are appended as they come, so that they can be watched; a journal beside them
holds one line for each finished utterance. From it an interrupted run goes on, and the
files are written anew, in the order of the keys, at the end.
"""

import json
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from espnet_lenbias.errors import OtherRunError

# Where the journal lies in the output folder. Its first line holds the run's options,
# each further line one utterance: [key, {file: value}].
JOURNAL = "decoding.jsonl"

# What stands for a hypothesis that is not there, beside the empty text and labels.
_EMPTY = {"score": "nan", "original_score": "nan", "steps": "0"}

# File below the output folder -> an utterance's value in it, e.g. 1best_recog/text.
ResultRow = Mapping[str, str]

# The key of an utterance with its row, or with the reason why it has none.
Outcome = tuple[str, ResultRow | str]


class ResultFolder:
    """Result files ``<folder>/<n>best_recog/<name>``, a line ``key value`` each.

    Args:
        folder: The output folder; made if need be.
        keys: The utterances that get a line in every file, in this order.
        options: What decides the results; see :func:`decode_options.run_options`.

    Raises:
        OtherRunError: Says which options differ from those of the results found there.

    """

    def __init__(self, folder: Path, keys: Sequence[str], options: Mapping[str, str]):
        self.folder = folder
        self.keys = keys
        journal = folder / JOURNAL
        self._rows = _read_journal(journal, options) if journal.exists() else {}
        folder.mkdir(parents=True, exist_ok=True)
        # Written anew: a run that was killed may have left half a line anywhere.
        _replace(folder, JOURNAL, _journal_lines(options, self._rows))
        self._journal = journal.open("a", encoding="utf-8")
        self._written = self._write_files([key for key in keys if key in self._rows])

    def __contains__(self, key: str) -> bool:
        """Whether there is a result for this utterance."""
        return key in self._rows

    def pending(self, batch_size: int) -> list[Sequence[str]]:
        """Return the batches that hold an utterance without a result, in order.

        They are cut from all keys: an utterance has the batch mates, and so the
        padding, that it has in an unbroken run.
        """
        starts = range(0, len(self.keys), batch_size)
        batches = [self.keys[i : i + batch_size] for i in starts]
        return [batch for batch in batches if any(key not in self for key in batch)]

    def collect(self, outcomes: Generator[Outcome, None, None]) -> dict[str, str]:
        """Write the results of utterances, each as soon as it is there.

        Args:
            outcomes: Closed at the end, whatever ends this: a generator that is only
                dropped has its last word, e.g. on progress, behind that of the run.

        Returns:
            Why an utterance has no result, for each that has none.
        """
        failures: dict[str, str] = {}
        with closing(outcomes):
            for key, outcome in outcomes:
                if isinstance(outcome, str):
                    failures[key] = outcome
                elif key not in self:
                    self.add(key, outcome)
        # An earlier run may have decoded a batch mate, which is here for the padding.
        return {key: why for key, why in failures.items() if key not in self}

    def add(self, key: str, row: ResultRow) -> None:
        """Write the result of one utterance."""
        row = {name: value.replace("\n", " ") for name, value in row.items()}
        self._rows[key] = row
        self._journal.write(_journal_line(key, row))
        self._journal.flush()
        for name, value in row.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            # What some other tool has left there does not count.
            mode = "a" if name in self._written else "w"
            with path.open(mode, encoding="utf-8") as f:
                f.write(f"{key} {value}\n")
            self._written.add(name)

    def finish(self, nbest: int, usual: Sequence[str]) -> None:
        """Give every key its line in every file, in order: empty without a result.

        Args:
            nbest: How many ranks there are.
            usual: The files of each rank, for a run without any result.
        """
        self._journal.close()
        files = [f"{n}best_recog/{name}" for n in range(1, nbest + 1) for name in usual]
        self._write_files(self.keys, files)

    def _write_files(self, keys: Sequence[str], usual: Sequence[str] = ()) -> set[str]:
        """Write all files with a line for each of these keys; return their names."""
        names = {name for key in keys for name in self._rows.get(key, ())}
        names = names or set(usual)
        for name in names:
            empty = empty_value(Path(name).name)
            _replace(
                self.folder,
                name,
                (f"{key} {self._rows.get(key, {}).get(name, empty)}\n" for key in keys),
            )
        return names


def empty_value(name: str) -> str:
    """Return what a result file of this name holds where there is no hypothesis."""
    return _EMPTY.get(name.removeprefix("asr_").split("_spk")[0], "")


def read_keys(path: Path) -> list[str]:
    """Return the first column of a Kaldi-style file, in order.

    Raises:
        ValueError: There is none, or one twice.
    """
    try:
        with path.open(encoding="utf-8") as f:
            lines = list(f)
    except UnicodeDecodeError as e:
        raise ValueError(f"{path} is no text file of lines `key value`") from e
    first_lines: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ValueError(f"{path}, line {number} is empty: remove it")
        key = line.split(maxsplit=1)[0]
        first = first_lines.setdefault(key, number)
        if first != number:
            raise ValueError(
                f"{path}, lines {first} and {number} have the same key {key}: give "
                "each utterance a key of its own"
            )
    if not first_lines:
        raise ValueError(f"{path} holds no utterance keys")
    return list(first_lines)


def _journal_lines(
    options: Mapping[str, str], rows: Mapping[str, ResultRow]
) -> Iterable[str]:
    yield json.dumps(dict(options)) + "\n"
    for key, row in rows.items():
        yield _journal_line(key, row)


def _journal_line(key: str, row: ResultRow) -> str:
    return json.dumps([key, dict(row)]) + "\n"


def _read_journal(path: Path, options: Mapping[str, str]) -> dict[str, ResultRow]:
    """Return the rows of the utterances that an earlier run has finished."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    del lines[-1]  # empty, or what was being written when the run was killed
    if len(lines) < 2:
        return {}  # no result that could be another run's
    _check_options(path.parent, json.loads(lines[0]), options)
    return dict(json.loads(line) for line in lines[1:])


def _check_options(
    folder: Path, old: Mapping[str, str], new: Mapping[str, str]
) -> None:
    changes = [
        f"{key} was {old.get(key)}, is {new.get(key)}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    if changes:
        raise OtherRunError(
            f"output_dir {folder} holds results of a run with other options "
            f"({'; '.join(changes)}). Give the same options to go on with that run; to "
            f"decode anew, remove the folder (rm -r {folder}) or name another"
        )


def _replace(folder: Path, name: str, lines: Iterable[str]) -> None:
    """Write a file below the folder, whole or not at all."""
    draft = folder / ".draft"
    with draft.open("w", encoding="utf-8") as f:
        f.writelines(lines)
    (folder / name).parent.mkdir(exist_ok=True)
    os.replace(draft, folder / name)
