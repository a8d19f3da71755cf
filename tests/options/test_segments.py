"""Kaldi's `segments`: what is read, and what is refused by name."""

from argparse import Namespace

import numpy as np
import pytest
import soundfile

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.data_files import utterances
from espnet_lenbias.options.segments import (
    Segment,
    cut_lines,
    read_segments,
    segments_of,
)

RATE = 8000


@pytest.fixture
def recordings(tmp_path):
    """Two recordings, of 4 s and of 2 s; and two that are none."""
    files = {name: str(tmp_path / f"{name}.wav") for name in ("r1", "r2", "gone")}
    for name, seconds in (("r1", 4), ("r2", 2)):
        soundfile.write(files[name], np.zeros(seconds * RATE), RATE)
    return files | {"pipe": "sox x.wav -t wav - |"}


def _read(tmp_path, recordings, *lines):
    path = tmp_path / "segments"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_segments(path, recordings)


def test_what_is_read(tmp_path, recordings):
    """An end of -1 is that of the file, and so is one up to half a second beyond it."""
    found = _read(
        tmp_path,
        recordings,
        "a r1 0 1.5",
        "b r1 1.25 4.5",
        "c r2 0.5 -1",
        "d gone 3 5",
    )
    assert found == {
        "a": Segment("r1", recordings["r1"], 0.0, 1.5),
        "b": Segment("r1", recordings["r1"], 1.25, 4.0),
        "c": Segment("r2", recordings["r2"], 0.5, 2.0),
        "d": Segment("gone", recordings["gone"], 3.0, 5.0),
    }
    assert found["b"].seconds == 2.75


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a r3 0 1", "a is a piece of r3, and wav.scp has no such recording"),
        ("a r1 2 2", "a ends at 2 s, which is not after its start, 2 s"),
        ("a r1 -0.5 2", "a starts at -0.5 s"),
        ("a r1 1 4.6", "4.00 s: no piece goes beyond its recording"),
        ("a r2 2 2.3", "2.00 s: no piece goes beyond its recording"),
        ("a r1 1", "a has 'r1 1' behind it: write recording, start and end"),
        ("a r1 0 1 A", "a has 'r1 0 1 A' behind it"),
        ("a r1 zero 1", "a has 'r1 zero 1' behind it"),
        ("a r1 0 nan", "a has 'r1 0 nan' behind it"),
        ("a r1 0 1_0", "a has 'r1 0 1_0' behind it"),
        ("a pipe 0 1", "a command: write what it gives into a file"),
    ],
)
def test_what_is_wrong_is_named(line, message, tmp_path, recordings):
    with pytest.raises(OptionError) as raised:
        _read(tmp_path, recordings, "x r1 0 1", line)
    assert message in str(raised.value)
    assert f"{tmp_path / 'segments'}, line 2: a " in str(raised.value)


def _options(tmp_path, recordings, kind="sound"):
    scp = tmp_path / "wav.scp"
    scp.write_text("".join(f"{k} {file}\n" for k, file in recordings.items()))
    data = [(str(scp), "speech", kind)]
    segments = str(tmp_path / "segments")
    return Namespace(data_path_and_name_and_type=data, key_file=None, segments=segments)


def test_the_pieces_are_the_utterances(tmp_path, recordings):
    """Each is known by its own line: another end makes it another one."""
    args = _options(tmp_path, recordings)
    (tmp_path / "segments").write_text("a r1 0 1\nb r1 1 2\n")
    before = utterances(args, cut_lines(args, segments_of(args)))
    assert list(before) == list(segments_of(args)) == ["a", "b"]
    (tmp_path / "segments").write_text("a r1 0 1.5\nb r1 1 2\n")
    after = utterances(args, cut_lines(args, segments_of(args)))
    assert before["a"] != after["a"]
    assert before["b"] == after["b"]


def test_without_segments_the_files_are_the_utterances(tmp_path, recordings):
    args = _options(tmp_path, recordings)
    args.segments = None
    assert segments_of(args) == {}
    assert list(utterances(args, cut_lines(args, segments_of(args)))) == list(
        recordings
    )


def test_data_that_cannot_be_cut(tmp_path, recordings):
    args = _options(tmp_path, recordings, kind="kaldi_ark")
    (tmp_path / "segments").write_text("a r1 0 1\n")
    with pytest.raises(OptionError, match="segments: .* of the type sound"):
        cut_lines(args, segments_of(args))
