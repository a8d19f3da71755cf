"""Result files in a folder that others, or a full disk, may have had a hand in."""

import errno
import json
import os
import resource
from pathlib import Path

import pytest

from espnet_lenbias import cli
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding.folder_lock import LOCK, locked
from espnet_lenbias.decoding.result_folder import ResultFolder
from espnet_lenbias.errors import OtherRunError
from espnet_lenbias.options.run_journal import JOURNAL
from tests.decoding.made import ROW

DATA = {"utt1": "d1", "utt2": "d2"}

DRAFT = ".draft-0123456789abcdef"


def _text(folder: Path) -> str:
    return (folder / "1best_recog" / "text").read_text()


def _made(folder: Path) -> ResultFolder:
    return ResultFolder(folder, DATA, {})


def _fill(folder: Path) -> None:
    results = _made(folder)
    for key in DATA:
        results.add(key, ROW)
    results.finish(1, [])


# --- What is written ------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_a_text_of_two_lines_is_written_on_one(end, tmp_path):
    """Else its second line would be the result of another utterance."""
    results = _made(tmp_path)
    results.add("utt1", ROW | {"1best_recog/text": f"A{end}utt2 B"})
    assert (tmp_path / "1best_recog" / "text").read_bytes() == (
        f"utt1 A{' ' * len(end)}utt2 B\n".encode()
    )
    results.finish(1, [])
    again = _made(tmp_path)
    assert "utt1" in again and "utt2" not in again


def test_a_failure_of_what_an_earlier_run_has_decoded_is_none(tmp_path):
    """It was decoded once more as a batch mate, for the padding alone."""
    _made(tmp_path).add("utt1", ROW)
    outcomes = (o for o in [("utt1", "broken"), ("utt2", ROW)])
    assert _made(tmp_path).collect(outcomes) == {}
    outcomes = (o for o in [("utt1", "broken"), ("utt2", "broken")])
    (tmp_path / JOURNAL).unlink()
    assert _made(tmp_path).collect(outcomes) == {"utt1": "broken", "utt2": "broken"}


# --- Links ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [JOURNAL, "1best_recog/text", "1best_recog", DRAFT, LOCK]
)
def test_no_link_is_followed(name, tmp_path):
    """What another person puts there leads to a file of the one who decodes."""
    folder, target = tmp_path / "out", tmp_path / "target"
    (folder / "1best_recog").mkdir(parents=True)
    if name == "1best_recog":
        (folder / name).rmdir()
        target.mkdir()
    else:
        target.write_text("dear to me")
    (folder / name).symlink_to(target)

    def run() -> None:
        with locked(folder):
            _fill(folder)

    if name == DRAFT:
        run()
        assert not (folder / name).is_symlink()
        assert _text(folder) == "utt1 A\nutt2 A\n"
    else:
        with pytest.raises(OSError, match=f"^{folder / name} is a link"):
            run()
    if target.is_file():
        assert target.read_text() == "dear to me"
    else:
        assert not any(target.iterdir())


def test_a_file_with_a_second_name_is_replaced(tmp_path):
    folder, target = tmp_path / "out", tmp_path / "target"
    (folder / "1best_recog").mkdir(parents=True)
    target.write_text("dear to me")
    os.link(target, folder / "1best_recog" / "text")
    _fill(folder)
    assert target.read_text() == "dear to me"
    assert _text(folder) == "utt1 A\nutt2 A\n"


@pytest.mark.parametrize("name", [JOURNAL, LOCK])
def test_a_pipe_keeps_nobody_waiting(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=f"^{tmp_path / name} is no file"):
        if name == LOCK:
            with locked(tmp_path):
                pass
        else:
            _fill(tmp_path)


@pytest.mark.parametrize("name", [JOURNAL, LOCK, "1best_recog/text"])
def test_a_folder_in_place_of_a_file_is_named(name, tmp_path):
    (tmp_path / name).mkdir(parents=True)
    with (
        pytest.raises(OSError, match=f"^{tmp_path / name} is no file: .*remove it"),
        locked(tmp_path),
    ):
        _fill(tmp_path)
    assert not list(tmp_path.glob(".draft*"))


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "1best_recog").write_text("dear to me")
    with pytest.raises(OSError, match=f"^{tmp_path / '1best_recog'} is a file, where"):
        _fill(tmp_path)
    assert (tmp_path / "1best_recog").read_text() == "dear to me"


def test_a_file_that_cannot_be_put_in_place_is_named(tmp_path, monkeypatch):
    def refuse(draft, path):
        raise PermissionError(13, "Permission denied", draft, 0, path)

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="Permission denied") as e:
        _made(tmp_path)
    assert e.value.filename == str(tmp_path / JOURNAL)


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "big disk").mkdir()
    folder = tmp_path / "out"
    folder.symlink_to(tmp_path / "big disk")
    with locked(folder):
        _fill(folder)
    assert _text(folder) == "utt1 A\nutt2 A\n"


def test_drafts_of_killed_runs_go(tmp_path):
    """What is called otherwise is somebody's own."""
    for name in (DRAFT, ".draft", ".draft-notes"):
        (tmp_path / name).write_text("half")
    _fill(tmp_path)
    own = {".draft", ".draft-notes"}
    assert {p.name for p in tmp_path.iterdir()} == {JOURNAL, "1best_recog", *own}


def test_a_planted_row_writes_nothing(tmp_path):
    """Its utterance is decoded again."""
    folder = tmp_path / "out"
    folder.mkdir()
    _fill(folder)
    options, first, second = (folder / JOURNAL).read_text().splitlines()
    planted = json.loads(second)[:3]  # as before there were checksums
    planted[1]["../planted"] = "A"
    lines = [options, first, json.dumps(planted)]
    (folder / JOURNAL).write_text("\n".join([*lines, ""]))
    results = _made(folder)
    assert "utt1" in results and "utt2" not in results
    assert results.pending([["utt1"], ["utt2"]]) == [["utt2"]]
    results.finish(1, [])
    assert not (tmp_path / "planted").exists()
    assert _text(folder) == "utt1 A\nutt2 \n"


@pytest.mark.parametrize(
    "journal, lost", [(None, True), ("", True), ('{"a', True), ("{}\n", False)]
)
def test_results_without_a_journal_are_said_to_go(journal, lost, tmp_path, caplog):
    _made(tmp_path)
    assert not caplog.messages  # a new folder
    _fill(tmp_path)
    _made(tmp_path)
    assert not caplog.messages  # a finished one
    path = tmp_path / JOURNAL
    path.unlink() if journal is None else path.write_text(journal)
    results = _made(tmp_path)
    assert not any(key in results for key in DATA)
    said = f"output_dir {tmp_path} holds result files and no journal (decoding.jsonl)"
    assert [message.startswith(said) for message in caplog.messages] == [True] * lost


def test_texts_of_recordings_alone_are_said_to_go_too(tmp_path, caplog):
    text = tmp_path / "recordings" / "1best_recog" / "text"
    text.parent.mkdir(parents=True)
    text.write_text("a corrected\n")
    _made(tmp_path)
    (said,) = caplog.messages
    assert said.startswith(f"output_dir {tmp_path} holds result files and no journal")


# --- A full disk ----------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 100, 250])
def test_a_full_disk_is_named_and_the_next_run_completes(room, tmp_path):
    """The limit is on the size of each file; a line of the journal has 150 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(OSError, match="File too large") as e:
            _fill(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert e.value.filename == str(tmp_path / JOURNAL)
    assert not list(tmp_path.glob(".draft*"))
    results = _made(tmp_path)
    assert ("utt1" in results) == (room == 250)
    _fill(tmp_path)
    assert _text(tmp_path) == "utt1 A\nutt2 A\n"


# --- One run at a time ----------------------------------------------------------------


def test_the_second_run_is_told_who_holds_the_folder(holder, tmp_path):
    process, _ = holder
    folder = tmp_path / "out"
    said = f"output_dir {folder} is in use by another run .*process {process.pid} on "
    with pytest.raises(OtherRunError, match=said), locked(folder):
        pass


@pytest.fixture(params=["asr_inference", "decode"])
def refused(request, transformer_model, wav_scp, tmp_path, capsys):
    """Return what runs a tool, which refuses tmp_path/out, and returns what it says."""

    def run() -> str:
        options = [*transformer_model.options]
        options += ["--data_path_and_name_and_type", f"{wav_scp},speech,sound"]
        options += ["--output_dir", str(tmp_path / "out")]
        with pytest.raises(SystemExit) as stop:
            if request.param == "decode":
                cli.main(["decode", "--nj", "2", *options])
            else:
                asr_inference.main(options)
        assert stop.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return run


def test_each_tool_tells_of_a_file_as_output_dir(refused, tmp_path):
    (tmp_path / "out").write_text("dear to me")
    assert f"error: output_dir {tmp_path}/out cannot be written (" in refused()


def test_each_tool_is_told(holder, refused, tmp_path):
    said = f"error: output_dir {tmp_path}/out is in use by another run ("
    assert said in refused()
    assert [p.name for p in (tmp_path / "out").iterdir()] == [LOCK]


def test_a_killed_run_blocks_nobody(holder, tmp_path):
    process, child = holder
    process.kill()
    process.wait()
    os.kill(child, 0)  # it lives
    with locked(tmp_path / "out"):
        pass


def test_a_lock_without_a_name(holder, tmp_path):
    (tmp_path / "out" / LOCK).write_text("[]")
    with (
        pytest.raises(OtherRunError, match="which has not said who it is"),
        locked(tmp_path / "out"),
    ):
        pass


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EACCES])
def test_systems_say_in_two_ways_that_a_folder_is_in_use(number, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.lockf", refuse)
    with pytest.raises(OtherRunError, match="in use"), locked(tmp_path / "out"):
        pass


def test_a_file_system_without_locks(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.lockf", refuse)
    with locked(tmp_path / "out"):
        pass
    assert "has no locks (No locks available)" in caplog.text
