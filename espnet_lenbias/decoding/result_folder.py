"""The result files of a decoding run, complete and in order whatever happened.

Results are appended as they come, so that they can be watched; a journal beside them
holds one line for each finished utterance. From it an interrupted run goes on, and the
files are written anew, in the order of the keys, at the end.
"""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from espnet_lenbias.decoding.join_pieces import RECORDINGS
from espnet_lenbias.decoding.journal import (
    Entry,
    ResultRow,
    entry_line,
    options_line,
    read_journal,
)
from espnet_lenbias.decoding.older_results import remove_other_results
from espnet_lenbias.decoding.plain_files import (
    naming,
    open_plain,
    remove_drafts,
    replace_file,
)
from espnet_lenbias.options.run_journal import JOURNAL, read_run_options

# What stands for a hypothesis that is not there, beside the empty text and labels.
_EMPTY = {"score": "nan", "original_score": "nan", "steps": "0"}

_ON_ONE_LINE = str.maketrans("\r\n", "  ")

# The key of an utterance with its row, or with the reason why it has none.
Outcome = tuple[str, ResultRow | str]


class ResultFolder:
    """Result files ``<folder>/<n>best_recog/<name>``, a line ``key value`` each.

    Args:
        folder: The output folder, which must be there; see
            :func:`espnet_lenbias.decoding.folder_lock.locked`.
        data: The keys of the utterances that get a line in every file, in this order;
            with each what tells its data from any other.
        options: What else decides the results; see
            :func:`espnet_lenbias.options.run_options.run_options`.

    Raises:
        OSError: Names a file that cannot be read or written.
        OtherRunError: Says which options differ from those of the results found there.

    """

    def __init__(
        self, folder: Path, data: Mapping[str, str], options: Mapping[str, str]
    ):
        self.folder = folder
        self.keys = list(data)
        self._data = data
        # Also of utterances that are not asked for now, or had other data then: who
        # lists them again, as they were, has their results.
        self._entries = read_journal(folder / JOURNAL, options)
        if not self._entries and _journal_is_lost(folder):
            logging.warning(
                f"output_dir {folder} holds result files and no journal ({JOURNAL}) of "
                "what they are results of: all utterances are decoded anew"
            )
        changed = sum(key in self._entries and key not in self for key in self.keys)
        if changed:
            logging.warning(
                f"{changed} utterances have other audio, or other data, than what the "
                f"results in {folder} are of: they are decoded again"
            )
        remove_drafts(folder)
        # Written anew: a run that was killed may have left half a line anywhere.
        lines = [entry_line(key, entry) for key, entry in self._entries.items()]
        replace_file(folder, JOURNAL, [options_line(options), *lines])
        self._journal = open_plain(folder / JOURNAL, "a")
        self._written = self._write_files([key for key in self.keys if key in self])

    def __contains__(self, key: str) -> bool:
        """Whether there is a result for the data of this utterance."""
        entry = self._entries.get(key)
        return entry is not None and entry.data == self._data.get(key)

    def rows(self, keys: Sequence[str]) -> dict[str, ResultRow]:
        """Return what each of these keys has in the files: {} without a result."""
        return {key: self._entries[key].row if key in self else {} for key in keys}

    def pending(self, batches: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """Return those of the batches that hold an utterance without a result.

        Whole: an utterance has the batch mates, and so the padding, that it has in an
        unbroken run.
        """
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
        """Write the result of one utterance.

        Raises:
            OSError: Names the file that could not be written.
        """
        row = {name: value.translate(_ON_ONE_LINE) for name, value in row.items()}
        entry = self._entries[key] = Entry(row, self._data[key])
        self._note(entry_line(key, entry))
        for name, value in row.items():
            line = f"{key} {value}\n"
            if name in self._written:
                path = self.folder / name
                with naming(path), open_plain(path, "a") as f:
                    f.write(line)
            else:  # what some other tool has left there does not count
                replace_file(self.folder, name, [line])
                self._written.add(name)

    def _note(self, line: str) -> None:
        """Write a line of the journal."""
        try:
            with naming(self.folder / JOURNAL):
                self._journal.write(line)
                self._journal.flush()
        except OSError:
            with suppress(OSError):  # it would try again
                self._journal.close()
            raise

    def finish(self, nbest: int, usual: Sequence[str]) -> None:
        """Give every key its line in every file, in order: empty without a result.

        Files of other results go: those of a journal that is lost, or of another tool.

        Args:
            nbest: How many ranks there are.
            usual: The files of each rank, for a run without any result.
        """
        self._journal.close()
        files = [f"{n}best_recog/{name}" for n in range(1, nbest + 1) for name in usual]
        remove_other_results(self.folder, self._write_files(self.keys, files))

    def _write_files(self, keys: Sequence[str], usual: Sequence[str] = ()) -> set[str]:
        """Write all files with a line for each of these keys; return their names."""
        rows = self.rows(keys)
        names = {name for row in rows.values() for name in row} or set(usual)
        for name in names:
            empty = empty_value(Path(name).name)
            replace_file(
                self.folder,
                name,
                (f"{key} {row.get(name, empty)}\n" for key, row in rows.items()),
            )
        return names


def _journal_is_lost(folder: Path) -> bool:
    """Tell whether there are result files without a journal that has begun."""
    places = ("*best_recog/*", f"{RECORDINGS}/*best_recog/*")
    if not any(any(folder.glob(place)) for place in places):
        return False
    path = folder / JOURNAL
    return not path.exists() or read_run_options(path) is None


def empty_value(name: str) -> str:
    """Return what a result file of this name holds where there is no hypothesis."""
    return _EMPTY.get(name.removeprefix("asr_").split("_spk")[0], "")
