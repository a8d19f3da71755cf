"""The files that decoding has left for a set: where they are, what they hold or lack."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from espnet_lenbias.options.run_journal import JOURNAL, read_rows
from espnet_lenbias.report.scoring import read_text

# Where a set's files are; asr.sh leaves those that it does not know in the last place.
_PLACES = ("{}", "1best_recog/{}", "logdir/output.*/1best_recog/{}")

_BEST = "1best_recog/"  # where the results are that are reported

T = TypeVar("T")


def files(folder: Path, name: str) -> Sequence[Path]:
    """Return the files of that name that a set's folder has, all in one of the places."""
    found = (sorted(folder.glob(place.format(name))) for place in _PLACES)
    return next((paths for paths in found if paths), [])


def read_values(folder: Path, name: str, parse: Callable[[str], T]) -> Mapping[str, T]:
    """Read a result file of a set, empty if there is none."""
    values = {}
    for path in files(folder, name):
        for key, value in read_text(path).items():
            try:
                values[key] = parse(value)
            except ValueError as e:
                raise ValueError(f"{path}: {key} has no {name} but {value!r}") from e
    return values


def journals(folder: Path) -> Sequence[Path]:
    """Return the journals of the run that a set's folder is of."""
    # Beside asr.sh's joined text are its jobs; a journal above them is older.
    of_jobs = sorted(folder.glob(f"logdir/output.*/{JOURNAL}"))
    of_all = sorted(folder.glob(JOURNAL))
    is_joined = (folder / "text").is_file()
    return (of_jobs or of_all) if is_joined else (of_all or of_jobs)


def lacking(folder: Path) -> Iterator[str]:
    """Yield the result files of a set that are gone, cut, or not what was decoded.

    The journal says which files there are and what is in them; not of which utterances,
    for it keeps those, too, that are no longer listed.
    """
    rows: dict[str, dict[str, str]] = {}
    for path in journals(folder):
        rows |= read_rows(path)
    names = dict.fromkeys(name for row in rows.values() for name in row)
    of_best = [n.removeprefix(_BEST) for n in names if n.startswith(_BEST)]
    values = {name: read_values(folder, name, str) for name in of_best}
    every = set[str]().union(*values.values())
    # with new data; what the journal holds is of the data before
    failed = {
        key
        for name, found in values.items()
        for key, value in found.items()
        if name.startswith("score") and value == "nan"
    }
    for name, found in values.items():
        missing = every - found.keys()
        other = [
            key
            for key, value in found.items()
            if key not in failed
            and _words(rows.get(key, {}).get(f"{_BEST}{name}", value)) != _words(value)
        ]
        where = f"`{folder.parent.name}`, {folder.name}: the file `{name}`"
        if not files(folder, name):
            yield f"{where} is gone"
        elif missing:
            yield f"{where} lacks {len(missing)} of {len(every)} utterances, e.g. " + (
                min(missing)
            )
        elif other:
            yield (
                f"{where} was cut or changed: that is not what was decoded of "
                f"{len(other)} utterances, e.g. {min(other)}"
            )


def _words(value: str) -> list[str]:
    """Return a value without what reading a file loses of white space."""
    return value.split()
