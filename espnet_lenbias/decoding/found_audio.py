"""Audio files that a person names, by themselves or by a folder; no torch here."""

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import soundfile

from espnet_lenbias.decoding.format_list import LIST
from espnet_lenbias.decoding.join_pieces import RECORDINGS
from espnet_lenbias.decoding.plain_audio import COPIES, MARKED, is_copy
from espnet_lenbias.decoding.run_log import LOG
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.options.train_config import why_no_file

# What names of audio files in a folder end in: what soundfile reads, and beside it what
# people have that ffmpeg reads. A file that is named itself can end in anything.
_OF_SOUNDFILE = {"." + name.lower() for name in soundfile.available_formats()} | {
    *(".aif", ".aifc", ".bwf", ".oga", ".opus", ".snd", ".sph", ".wave")
} - {".raw", ".mat4", ".mat5"}
_OF_FFMPEG = {
    *(".3g2", ".3gp", ".aac", ".ac3", ".amr", ".ape", ".asf", ".avi", ".dsf", ".dts"),
    *(".eac3", ".flv", ".gsm", ".m2ts", ".m4a", ".m4b", ".m4r", ".m4v", ".mka", ".mkv"),
    *(".mov", ".mp2", ".mp4", ".mpc", ".mpeg", ".mpg", ".mpga", ".oma", ".ogv"),
    *(".ogx", ".ra", ".rm", ".shn", ".spx", ".tak", ".tta", ".vob", ".webm"),
    *(".weba", ".wma", ".wmv", ".wv"),
}
SUFFIXES = _OF_SOUNDFILE | _OF_FFMPEG

_DIGITS = 8  # of the number that tells a file from others

# What macOS leaves beside a file on disks of others begins its name so; it is no audio.
_BESIDE = "._"

# What `transcribe` decodes, in its output folder, where a person's own `wav.scp` may be.
SCP = "transcribe.scp"
SEGMENTS = "transcribe.segments"

# What a run writes below its output folder.
_COPY = f"{COPIES}/*-{MARKED}"
_WRITTEN = (
    *(JOURNAL, LOG, LIST, SCP, SEGMENTS, _COPY),
    *("[1-9]*best_recog/*", f"{RECORDINGS}/[1-9]*best_recog/*"),
)


def named_audio(paths: Sequence[Path], results: Path) -> dict[str, Path]:
    """Return the audio files that are named, each with a name for its transcript.

    A file is called by its name without the ending; where two would be called alike, by
    the whole name, and then by the whole path, at last with a number that tells it from
    others.

    Args:
        paths: Files, and folders that are searched recursively.
        results: The output folder: what a run has written there, or in another one, is
            none of the audio of a folder.

    Raises:
        OptionError: There is no such file, or a folder holds no audio.
    """
    files = list(dict.fromkeys(file.absolute() for file in _files(paths, results)))
    names: dict[str, Path] = {}
    for name_of in (_stem, _name, _whole_path, _numbered_path):
        called: dict[str, list[Path]] = {}
        for file in files:
            called.setdefault(name_of(file), []).append(file)
        # what is called alike is named anew, all of it, whatever the order; and what is
        # called nothing, by a name of white space
        alike = [
            group
            for n, group in called.items()
            if len(group) > 1 or n in names or not n
        ]
        names |= {n: g[0] for n, g in called.items() if g not in alike}
        files = [file for group in alike for file in group]
    return dict(sorted(names.items()))


def audio_in(folder: Path, results: Path | None = None) -> list[Path]:
    """Return the audio files below a folder, and folders that may not be read, sorted.

    Args:
        folder: It is searched recursively.
        results: An output folder: what a run has written there, or in another one, is
            none.
    """
    return [
        file
        for file in _files_in(folder, results)
        if os.path.isdir(file)
        or (file.suffix.lower() in SUFFIXES and not file.name.startswith(_BESIDE))
    ]


def left_out(paths: Sequence[Path], results: Path) -> dict[str, int]:
    """Count the files of folders whose names are none of audio, by how they end.

    Args:
        paths: See :func:`named_audio`; files that are named themselves do not count,
            in whatever folder they are.
        results: See there.
    """
    named = {path.absolute() for path in paths}
    others = Counter(
        file.suffix.lower() or "without an ending"
        for path in paths
        if path.is_dir()
        for file in _files_in(path, results)
        if file.suffix.lower() not in SUFFIXES
        and not file.name.startswith(".")
        and not os.path.isdir(file)
        and file.absolute() not in named
    )
    return dict(others.most_common())


def _files_in(folder: Path, results: Path | None) -> list[Path]:
    """Return the files below a folder, sorted; see :func:`audio_in`."""
    below = list(_below(folder))
    runs = {_place(file.parent) for file in below if file.name == JOURNAL}
    if results is not None:
        runs.add(_place(results))
    return sorted(
        file
        for file in below
        if not _is_written(_place(file), runs) and _is_to_be_read(file)
    )


def _below(folder: Path) -> Iterator[Path]:
    """Yield all that lies below a folder; links to folders are followed.

    Of folders, those that may not be read.
    """
    seen: set[str] = set()
    closed: list[OSError] = []
    walk = os.walk(folder, onerror=closed.append, followlinks=True)
    for place, folders, files in walk:
        real = os.path.realpath(place)
        if real in seen:  # it has been here by another link, or in a circle
            folders.clear()
            continue
        seen.add(real)
        # links last, so that what is found does not hang on the order of the disk
        folders.sort(key=lambda name: (os.path.islink(os.path.join(place, name)), name))
        yield from (Path(place) / name for name in files)
    yield from (Path(error.filename) for error in closed)


def _is_written(place: Path, runs: Collection[Path]) -> bool:
    """Tell whether a run has written a file; others are a person's own."""
    return any(
        fnmatchcase(str(place.relative_to(run)), pattern)
        and (pattern != _COPY or is_copy(place))
        for run in runs
        if run in place.parents
        for pattern in _WRITTEN
    )


def _place(path: Path) -> Path:
    """Return where a path leads; one that leads in a circle stays as it is."""
    return Path(os.path.realpath(path))


def _is_to_be_read(path: Path) -> bool:
    """Tell whether this is a file, or to be named as bad files are.

    As a link to nothing is, a folder that may not be read, and what lies in one that may
    not be entered.
    """
    try:
        kind = os.stat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(kind) or stat.S_ISDIR(kind)


def _files(paths: Sequence[Path], results: Path) -> Iterator[Path]:
    for path in paths:
        if os.path.isdir(path):  # a Path raises for a name that is too long
            found = audio_in(path, results)
            if not found:
                raise OptionError(
                    f"FILE: there is no audio in the folder {path}: name files, or "
                    "another folder"
                )
            yield from found
        elif os.path.isfile(path):
            yield path
        else:
            raise OptionError(f"FILE: {why_no_file(path, 'file or folder')}")


def _stem(path: Path) -> str:
    return _as_key(path.stem)


def _name(path: Path) -> str:
    return _as_key(path.name)


def _whole_path(path: Path) -> str:
    return _as_key("-".join(path.parts[1:]))


def _numbered_path(path: Path) -> str:
    """Return the path as a name, told from `a-b` where it is `a b`."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()
    return f"{_whole_path(path)}-{digest[:_DIGITS]}"


def _as_key(name: str) -> str:
    """Return a name as that of an utterance: text in UTF-8, without white space."""
    return "-".join(name.encode(errors="replace").decode().split())
