"""Audio that is named, or found in folders, and what is left out."""

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from espnet_lenbias.decoding.found_audio import left_out, named_audio
from espnet_lenbias.decoding.plain_audio import plain_audio
from espnet_lenbias.errors import AudioError, OptionError
from espnet_lenbias.options.run_journal import JOURNAL

OUT = Path("transcripts")
# as copies in the folder `audio` of an output folder are called; a person's own
LIKE_COPY = "interview-20240115.flac"


def test_names(tmp_path):
    paths = [
        tmp_path / name
        for name in ("a b.wav", "in/a.mp3", "in/a.wav", "one/x.WAV", "two/x.WAV")
    ]
    for path in (*paths, tmp_path / "in" / "text"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    prefix = "-".join(tmp_path.parts[1:])
    names = {
        "a-b": paths[0],
        "a.mp3": paths[1],
        "a.wav": paths[2],
        f"{prefix}-one-x.WAV": paths[3],
        f"{prefix}-two-x.WAV": paths[4],
    }
    assert named_audio([tmp_path], OUT) == names
    assert named_audio([*paths[::-1], tmp_path / "in"], OUT) == names
    # a file that is named itself can end in anything
    assert named_audio([tmp_path / "in" / "text"], OUT) == {
        "text": tmp_path / "in" / "text"
    }


@pytest.fixture
def as_another():
    """Return a folder, and what has this process be nobody in particular for a while."""

    @contextlib.contextmanager
    def as_another():
        user = os.geteuid()
        if user == 0:  # who may read everything
            try:
                os.seteuid(65534)
            except OSError:
                pytest.skip("there is no other user in this container")
        try:
            yield
        finally:
            os.seteuid(user)

    folder = Path(tempfile.mkdtemp())  # that of pytest is its user's alone
    folder.chmod(0o755)
    yield folder, as_another
    shutil.rmtree(folder)


def test_what_may_not_be_read_is_named(as_another):
    """A file, a folder, and what lies in a folder that may not be entered."""
    folder, as_another = as_another
    soundfile.write(folder / "a.wav", np.zeros(800), 8000)
    for name in ("shut.wav", "closed/b.wav", "listed/c.wav"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / "a.wav", folder / name)
    modes = {"shut.wav": 0o000, "closed": 0o300, "listed": 0o444}
    for name, mode in modes.items():
        (folder / name).chmod(mode)
    with as_another():
        found = named_audio([folder], OUT)
        assert not left_out([folder], OUT)
        for name, path in found.items():
            if name == "a":
                assert plain_audio(path, 8000, folder, "x") == (path, "")
            else:
                message = f"{path} cannot be read: Permission denied"
                with pytest.raises(AudioError, match=message):
                    plain_audio(path, 8000, folder, "x")
        with pytest.raises(OptionError, match="listed/c.wav cannot be read: Perm"):
            named_audio([folder / "listed" / "c.wav"], OUT)
    assert list(found) == ["a", "c", "closed", "shut"]
    for name in modes:
        (folder / name).chmod(0o700)


def write_copy(folder, tmp_path):
    """Write a copy, as a run does that writes into this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 8000)
    plain_audio(tmp_path / "a.wav", 16000, folder, "audio/a")


def test_copies_of_an_earlier_run_are_no_audio(tmp_path):
    for name in ("a.m4a", f"out/audio/{LIKE_COPY}", "other/out/b.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    write_copy(tmp_path / "out", tmp_path)
    (tmp_path / "a.wav").unlink()
    found = named_audio([tmp_path], tmp_path / "out")
    assert set(found) == {"a", "b", LIKE_COPY.removesuffix(".flac")}
    assert found["a"] == tmp_path / "a.m4a"


def test_results_of_other_runs_are_no_audio_of_a_folder(tmp_path):
    write_copy(tmp_path / "old", tmp_path)
    for name in ("a.wav", "old/1best_recog/b.flac", "music/a.flac"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "old" / JOURNAL).touch()
    found = named_audio([tmp_path], tmp_path / "new")
    assert set(found.values()) == {tmp_path / "a.wav", tmp_path / "music" / "a.flac"}


@pytest.mark.parametrize("results", [".", "day2", "new"])
def test_own_audio_in_an_output_folder_is_transcribed(results, tmp_path):
    own = ["a.wav", "day2/b.wav", "audio/c.wav", "recordings/d.wav", "audio/e-12.flac"]
    out = tmp_path / results
    own.append(f"audio/{LIKE_COPY}")
    written = ["decoding.jsonl", "decoding.log", "decoding.formats"]
    written += ["transcribe.scp", "transcribe.segments"]
    written += ["1best_recog/text.trn", "recordings/1best_recog/text"]
    for path in (*(tmp_path / name for name in own), *(out / name for name in written)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    write_copy(out, tmp_path)
    found = named_audio([tmp_path], out)
    assert set(found.values()) == {tmp_path / name for name in own}
    assert left_out([tmp_path], out) == {}


def test_names_of_white_space(tmp_path):
    names = (" .flac", "\u3000.wav", "a.wav")
    for name in names:
        (tmp_path / name).touch()
    found = named_audio([tmp_path], OUT)
    assert found == {
        ".flac": tmp_path / names[0],
        ".wav": tmp_path / names[1],
        "a": tmp_path / names[2],
    }


def test_a_name_in_another_encoding(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    path.touch()
    assert named_audio([path], OUT) == {"caf?": path}


def test_what_a_folder_holds_beside_audio_is_counted(tmp_path):
    folder, results = tmp_path / "folder", tmp_path / "folder" / "out"
    results.mkdir(parents=True)
    for name in (
        "a.wav",
        "b.WEBM",
        "c.txt",
        "d.TXT",
        "e",
        ".hidden",
        "._a.wav",
        "out/transcribe.scp",
    ):
        (folder / name).touch()
    (tmp_path / "named.xyz").touch()
    named = [folder, tmp_path / "named.xyz"]
    one, all_but_one = folder / "c.txt", {".txt": 1, "without an ending": 1}
    assert left_out([*named, one], results) == all_but_one
    assert left_out(named, results) == {".txt": 2, "without an ending": 1}
    assert {file.name for file in named_audio(named, results).values()} == {
        *("a.wav", "b.WEBM", "named.xyz")
    }


def test_whole_paths_that_are_alike_as_names(tmp_path):
    """A number tells them apart, the same whatever else is named."""
    paths = [tmp_path / name for name in ("a b.wav", "a-b.wav", "c.wav")]
    for path in paths:
        path.touch()
    found = named_audio([tmp_path], OUT)
    assert sorted(found.values()) == paths
    by_path = {path: name for name, path in found.items()}
    prefix = "-".join(tmp_path.parts[1:])
    for path in paths[:2]:
        assert re.fullmatch(f"{prefix}-a-b.wav-[0-9a-f]{{8}}", by_path[path])
    assert named_audio(paths[1::-1], OUT).items() <= found.items()


def test_folders_that_are_linked_to_are_searched_once(tmp_path):
    """A link may lead in a circle, or to a folder that is there already."""
    folder, elsewhere = tmp_path / "in", tmp_path / "talks"
    (folder / "day1").mkdir(parents=True)
    elsewhere.mkdir()
    for path in (folder / "day1" / "a.wav", elsewhere / "b.wav"):
        path.touch()
    (folder / "talks").symlink_to(elsewhere)
    (folder / "again").symlink_to(folder / "day1")
    (elsewhere / "back").symlink_to(folder)
    found = named_audio([folder], OUT)
    assert sorted(path.name for path in found.values()) == ["a.wav", "b.wav"]
