"""A line for every key: utterances that fail, runs that go on, their folder."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.decoding import drop_in, result_folder
from espnet_lenbias.decoding.folder_lock import LOCK, locked
from espnet_lenbias.decoding.run_log import LOG
from espnet_lenbias.options import run_options as described
from espnet_lenbias.options.data_files import lines_of, utterances
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import ASR
from espnet_lenbias.options.run_journal import JOURNAL
from tests.decoding.made import write_wav
from tests.releases import needs_batches
from tests.tiny import Model
from tests.tool_models import asr_command, fails, files, lines, run_asr

# --- Utterances that fail -------------------------------------------------------------


@pytest.mark.parametrize("batch_size", ["1", pytest.param("3", marks=needs_batches)])
@pytest.mark.parametrize("search", ["espnet", "explicit_length", "simple"])
def test_a_failing_utterance_costs_only_itself(
    search, batch_size, transformer_model, wav_scp, tmp_path, caplog, request
):
    options = ["--search", search, "--batch_size", batch_size]
    clean, out = tmp_path / "clean", tmp_path / "out"
    assert run_asr(transformer_model, wav_scp, clean, *options) == 0
    trouble = request.getfixturevalue("trouble")
    options += ["--key_file", str(trouble.parent / "keys.scp")]
    assert run_asr(transformer_model, trouble, out, *options) == 1

    spoiled = ["utt1", "utt2", "utt3", "utt4", "utt6"]
    for name in ("text", "token", "token_int", "score"):
        found = lines(out, f"1best_recog/{name}")
        assert list(found) == [f"utt{i}" for i in range(1, 7)]
        assert found["utt5"] == lines(clean, f"1best_recog/{name}")["utt5"]
        assert {found[key] for key in spoiled} == {"nan" if name == "score" else ""}

    report = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    report = report[report.index(next(m for m in report if "of 6 utterances" in m)) :]
    assert report[0].startswith(f"{len(spoiled)} of 6 utterances failed; their lines")
    failed = dict(re.fullmatch("failed: (utt.): (.*)", m).groups() for m in report[1:])
    assert sorted(failed) == spoiled
    assert "is too short" in failed["utt2"]
    assert "utt3.wav" in failed["utt3"]
    assert failed["utt4"] == f"there is no file {trouble.parent / 'utt4.wav'}"
    assert failed["utt6"] == f"is not in {trouble}"
    assert re.fullmatch("AudioError: .* holds NaN or infinity", failed["utt1"])


@pytest.mark.parametrize("batch_size", ["1", pytest.param("5", marks=needs_batches)])
def test_out_of_memory_costs_only_the_long_utterance(
    batch_size, transformer_model, wav_scp, tmp_path, caplog, monkeypatch
):
    clean, out = tmp_path / "clean", tmp_path / "out"
    run_asr(transformer_model, wav_scp, clean)
    forward = ExplicitLengthBeamSearch.forward

    def forward_if_short(self, x, **kwargs):
        if x.size(-2) >= 10:  # utt5
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, x, **kwargs)

    monkeypatch.setattr(ExplicitLengthBeamSearch, "forward", forward_if_short)
    options = ["--batch_size", batch_size]
    assert run_asr(transformer_model, wav_scp, out, *options) == 1
    assert lines(out) == {**lines(clean), "utt5": ""}
    (failed,) = [m for m in caplog.messages if m.startswith("failed: ")]
    assert failed.startswith("failed: utt5: ")
    assert "out of memory" in failed.lower() and "lower beam_size" in failed


def test_all_fail(transformer_model, wav_scp, tmp_path):
    for path in tmp_path.glob("*.wav"):
        path.unlink()
    assert run_asr(transformer_model, wav_scp, tmp_path / "out") == 1
    assert lines(tmp_path / "out") == {f"utt{i}": "" for i in range(1, 6)}


@pytest.mark.parametrize("search", ["explicit_length", "simple"])
def test_one_encoder_frame_is_enough(search, transformer_model, wav_scp, tmp_path):
    write_wav(wav_scp, "utt1", 0.1 * np.ones(480))  # 7 frames, 1 when subsampled
    out = tmp_path / "out"
    assert run_asr(transformer_model, wav_scp, out, "--search", search) == 0
    assert int(lines(out, "1best_recog/steps")["utt1"]) >= 1


@pytest.mark.parametrize("batch_size", ["1", pytest.param("5", marks=needs_batches)])
def test_empty_audio_gets_its_line(batch_size, transformer_model, wav_scp, tmp_path):
    write_wav(wav_scp, "utt3", np.zeros(0))
    options = ["--batch_size", batch_size]
    assert run_asr(transformer_model, wav_scp, tmp_path / "out", *options) == 1
    found = lines(tmp_path / "out")
    assert list(found) == [f"utt{i}" for i in range(1, 6)]
    assert [key for key, text in found.items() if not text] == ["utt3"]


# --- Resuming -------------------------------------------------------------------------


def _interrupt_after(n: int, monkeypatch) -> list[str]:
    """End the process after n results; return the keys that are decoded."""
    decoded = []
    add = result_folder.ResultFolder.add

    def add_some(self, key, row):
        if len(decoded) == n:
            raise KeyboardInterrupt
        decoded.append(key)
        add(self, key, row)

    monkeypatch.setattr(result_folder.ResultFolder, "add", add_some)
    return decoded


@pytest.mark.parametrize("search", ["espnet", "explicit_length"])
@pytest.mark.parametrize("batch_size", ["1", pytest.param("2", marks=needs_batches)])
def test_an_interrupted_run_goes_on(
    search, batch_size, transformer_model, wav_scp, tmp_path, monkeypatch, capsys
):
    options = ["--search", search, "--nbest", "2", "--batch_size", batch_size]
    order = [f"utt{i}" for i in range(1, 6)]
    if search != "espnet" and batch_size != "1":  # the longest first
        order.reverse()
    unbroken, out = tmp_path / "unbroken", tmp_path / "out"
    run_asr(transformer_model, wav_scp, unbroken, *options)

    with monkeypatch.context() as patch:
        _interrupt_after(4, patch)
        assert run_asr(transformer_model, wav_scp, out, *options) == 130
    assert capsys.readouterr().err.splitlines()[-1] == (
        "interrupted; the same command decodes the rest"
    )
    # What was there when it was killed can be read already, ...
    assert list(lines(out)) == order[:4]
    # ... and a kill may cut any file inside a line.
    for path in (out / "1best_recog" / "text", out / JOURNAL):
        path.write_bytes(path.read_bytes()[:-4])

    decoded = _interrupt_after(99, monkeypatch)
    assert run_asr(transformer_model, wav_scp, out, *options) == 0
    assert decoded == order[3:]
    assert files(out) == files(unbroken)
    assert {p.name for p in out.iterdir() if p.is_file()} <= {JOURNAL, LOCK, LOG}


def test_another_name_of_the_lock_is_not_written(tmp_path):
    """As in a copy of the folder that was made of hard links."""
    backup = tmp_path / "backup"
    backup.write_text("dear to me")
    (tmp_path / "out").mkdir()
    os.link(backup, tmp_path / "out" / LOCK)
    with locked(tmp_path / "out"):
        assert backup.read_text() == "dear to me"


@needs_batches
def test_a_finished_run_is_not_made_again(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    run_asr(transformer_model, wav_scp, out)
    before = files(out)
    (out / "1best_recog" / "text").unlink()
    monkeypatch.setattr(drop_in, "decode_here", lambda *_: 1 / 0)
    assert run_asr(transformer_model, wav_scp, out, "--batch_size", "7") == 0
    assert files(out) == before


def test_failed_utterances_are_tried_again(
    transformer_model, waves, wav_scp, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    wave = wav_scp.parent / "utt2.wav"
    audio = wave.read_bytes()
    wave.unlink()
    assert run_asr(transformer_model, wav_scp, out) == 1
    wave.write_bytes(audio)
    decoded = _interrupt_after(99, monkeypatch)
    assert run_asr(transformer_model, wav_scp, out) == 0
    assert decoded == ["utt2"]
    run_asr(transformer_model, wav_scp, tmp_path / "unbroken")
    assert files(out) == files(tmp_path / "unbroken")


def test_another_run_does_not_mix(transformer_model, wav_scp, tmp_path, capsys):
    out = tmp_path / "out"
    run_asr(transformer_model, wav_scp, out)
    before = files(out)
    args = (transformer_model, wav_scp, out)
    error = fails(capsys, run_asr, *args, "--beam_size", "5", "--search", "simple")
    assert "(beam_size was 4, is 5; search was explicit_length, is simple)" in error
    assert f"remove the folder (rm -r {out})" in error
    assert files(out) == before


@pytest.mark.parametrize("read", [2**24, 0])
def test_a_file_that_changes_is_another_run(
    read, transformer_model, wav_scp, tmp_path, capsys, monkeypatch
):
    """A small file by what it holds, a large one by its date too."""
    monkeypatch.setattr(described, "_READ", read)
    weights = tmp_path / "model.pth"
    weights.write_bytes(transformer_model.weights.read_bytes())
    args = (Model("asr", transformer_model.config, weights), wav_scp, tmp_path / "out")
    assert run_asr(*args) == 0
    os.utime(weights, (1, 1))
    if read:
        assert run_asr(*args) == 0
        weights.write_bytes(weights.read_bytes()[:-1] + b"x")  # trained further
    assert "(asr_model_file was" in fails(capsys, run_asr, *args)
    assert "wav.scp" not in fails(capsys, run_asr, *args)


def test_another_list_of_audio_keeps_what_is_as_it_was(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    """One utterance is taken out, one has other audio, one is new."""
    out, anew = tmp_path / "out", tmp_path / "anew"
    assert run_asr(transformer_model, wav_scp, out) == 0
    utt1, utt2, utt3, utt4, utt5 = wav_scp.read_text().splitlines()
    other = utt2.replace("utt2.wav", "utt3.wav")
    new = utt5.replace("utt5 ", "utt6 ")
    scp = tmp_path / "other.scp"
    scp.write_text("\n".join([utt1, other, utt4, utt5, new]))
    with monkeypatch.context() as patch:
        decoded = _interrupt_after(99, patch)
        assert run_asr(transformer_model, scp, out) == 0
    assert decoded == ["utt2", "utt6"]
    assert run_asr(transformer_model, scp, anew) == 0
    assert files(out) == files(anew)
    assert list(lines(out)) == ["utt1", "utt2", "utt4", "utt5", "utt6"]
    # what was taken out comes back without being decoded again
    scp.write_text("\n".join([utt1, utt3]))
    decoded = _interrupt_after(99, monkeypatch)
    assert run_asr(transformer_model, scp, out) == 0
    assert decoded == []
    assert list(lines(out)) == ["utt1", "utt3"]


def test_a_line_of_another_data_file_counts_too(transformer_model, wav_scp):
    """Two files for each utterance, as of a model that takes a prompt."""
    text = wav_scp.parent / "text"
    text.write_text("utt1 a\nutt2  b \nutt3 c\n")

    def digests() -> dict[str, str]:
        command = asr_command(transformer_model, wav_scp, Path("out"))
        more = ["--data_path_and_name_and_type", f"{text},text_prev,text"]
        args = parse(get_parser(ASR.module), [*command, *more])
        return utterances(args, lines_of(args))

    before = digests()
    assert list(before) == [f"utt{i}" for i in range(1, 6)]
    assert len(set(before.values())) == 5
    text.write_text("utt3 c\nutt2 b\nutt1 x\n")
    after = digests()
    assert [key for key in before if before[key] != after[key]] == ["utt1"]


def test_results_of_another_tool_are_overwritten(transformer_model, wav_scp, tmp_path):
    out = tmp_path / "out"
    (out / "1best_recog").mkdir(parents=True)
    (out / "2best_recog").mkdir()
    for name in ("1best_recog/text", "1best_recog/posterior", "2best_recog/text"):
        (out / name).write_text("utt9 A\n")
    (out / "1best_recog" / "notes.txt").write_text("a person's own\n")
    run_asr(transformer_model, wav_scp, out)
    assert list(lines(out)) == [f"utt{i}" for i in range(1, 6)]
    assert not (out / "2best_recog").exists()
    assert not (out / "1best_recog" / "posterior").exists()
    assert (out / "1best_recog" / "notes.txt").exists()


# --- The output folder ----------------------------------------------------------------


def test_two_runs_in_one_folder(transformer_model, wav_scp, tmp_path):
    """The second ends at once, and the first is none the worse for it."""
    out, clean = tmp_path / "out", tmp_path / "clean"
    python = [sys.executable, "-m", "espnet_lenbias.bin.asr_inference"]
    options = ["--search", "simple", "--num_workers", "1"]
    command = [*python, *asr_command(transformer_model, wav_scp, out, *options)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}  # as here, for equal scores
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=env) as first:
        while not (out / JOURNAL).exists():
            assert first.poll() is None
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
        second = subprocess.run(
            [*command, "--beam_size", "5"], capture_output=True, text=True
        )
        first.send_signal(signal.SIGCONT)
        assert second.returncode == 2
        last = second.stderr.splitlines()[-1]
        assert f"error: output_dir {out} is in use by another run (" in last
        assert f"process {first.pid} on " in last
        assert first.wait() == 0
    assert run_asr(transformer_model, wav_scp, out, *options[:2]) == 0
    assert run_asr(transformer_model, wav_scp, clean, *options[:2]) == 0
    assert files(out) == files(clean)


def test_a_full_disk(transformer_model, wav_scp, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        _fill_disk(patch, after=3)
        error = fails(capsys, run_asr, transformer_model, wav_scp, out)
    assert error.endswith(
        f"error: {out / JOURNAL}: No space left on device; make room, and the same "
        "command goes on where it has stopped\n"
    )
    decoded = _interrupt_after(99, monkeypatch)
    assert run_asr(transformer_model, wav_scp, out) == 0
    assert decoded == ["utt4", "utt5"]


def _fill_disk(monkeypatch, after: int) -> None:
    note = result_folder.ResultFolder._note
    noted = []

    def note_some(self, line):
        noted.append(line)
        if len(noted) > after:
            raise OSError(28, "No space left on device", str(self.folder / JOURNAL))
        note(self, line)

    monkeypatch.setattr(result_folder.ResultFolder, "_note", note_some)
