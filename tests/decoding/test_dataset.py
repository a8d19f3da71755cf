"""How utterances are read."""

import itertools
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from espnet_lenbias.decoding import utterances
from espnet_lenbias.decoding.dataset import read_batches
from espnet_lenbias.decoding.log_markers import CHANNELS, END, LENGTH, RATE
from espnet_lenbias.decoding.utterances import Read, Unreadable, Utterances
from espnet_lenbias.errors import AudioError
from espnet_lenbias.espnet_compat import ESPnetDataset

# Reads more than a pipe holds, so the reader waits for somebody to take it; then is
# killed, as a run may be.
KILLED = """
import multiprocessing, os, signal, time
import numpy as np
from espnet_lenbias.decoding.dataset import read_batches

class Data:
    def __getitem__(self, key):
        return np.zeros(2**20)

batches = read_batches(Data(), [["a"]] * 9, 1)
next(batches)
time.sleep(1)
print(multiprocessing.active_children()[0].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def runs(pid: int) -> bool:
    """Tell whether there is such a process, and it has not ended."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_readers_end_with_the_run(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as out:  # no pipe: a reader that stays holds it open
        subprocess.run([sys.executable, "-c", KILLED], stdout=out, check=False)
    pid = int(log.read_text())
    until = time.monotonic() + 30
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not runs(pid)


class Deadly:
    """Utterances, of which "bad" kills what reads it."""

    def __getitem__(self, key):
        if key == "bad":
            os.kill(os.getpid(), signal.SIGKILL)
        return Read(key, {"speech": np.zeros(3)})


def test_what_kills_its_reader_costs_no_other(monkeypatch):
    from torch.utils.data import _utils

    monkeypatch.setattr(_utils, "MP_STATUS_CHECK_INTERVAL", 0.5)
    batches = [["a"], ["b", "bad", "c"], ["d"], ["bad"], ["e"]]
    read = list(read_batches(Deadly(), batches, 1))
    assert [[one.key for one in batch] for batch in read] == batches
    for one in itertools.chain(*read):
        assert isinstance(one.data, Unreadable) == (one.key == "bad")
    assert "was killed: was there enough memory?" in read[3][0].data.reason


class DeadlySoon(Deadly):
    """The reader is killed while it hands "soon" over, of which a pipe holds a part."""

    def __getitem__(self, key):
        if key == "soon":
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
            return Read(key, {"speech": np.zeros(2**22)})
        return super().__getitem__(key)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_reader_that_is_killed_in_the_midst_of_handing_over(num_workers, monkeypatch):
    from torch.utils.data import _utils

    monkeypatch.setattr(_utils, "MP_STATUS_CHECK_INTERVAL", 0.5)
    batches = [["a"], ["soon"], ["b"], ["c"], ["d"]]
    read = read_batches(DeadlySoon(), batches, num_workers)
    found = [next(read)]
    time.sleep(1.5)  # as a search takes
    found += list(read)
    assert [[one.key for one in batch] for batch in found] == batches
    for one in itertools.chain(*found):
        assert one.key == "soon" or not isinstance(one.data, Unreadable)


@pytest.mark.parametrize("kind", ["sound", "kaldi_ark", "npy"])
def test_a_pipe_is_not_waited_for(kind, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "scp").write_text(f"a {tmp_path}/fifo\n")
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", kind)])
    read = Utterances(dataset)["a"]
    assert isinstance(read.data, Unreadable)
    assert "fifo is a pipe or a device, and files are read more" in read.data.reason


def test_warnings_are_told_by_kind(tmp_path):
    """Of 8 kHz for a model of 16 kHz, and of two channels; not of the scale."""
    soundfile.write(tmp_path / "a.wav", np.zeros((8000, 2)), 8000)
    (tmp_path / "scp").write_text(f"a {tmp_path}/a.wav\n")
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", "sound")])
    read = Utterances(dataset, {"frontend_conf": {"fs": 16000}})["a"]
    assert list(read.warnings) == [RATE, CHANNELS]
    assert "8000" in read.warnings[RATE]
    assert "2 channels" in read.warnings[CHANNELS]


@pytest.mark.parametrize("as_features", [False, True])
def test_channels_in_an_archive_of_matrices(as_features, tmp_path):
    """(samples, channels) to a model of audio; to one of features they are features."""
    matrix = b"a \0BFM \4" + struct.pack("<ibi", 8000, 4, 2) + bytes(4 * 8000 * 2)
    (tmp_path / "ark").write_bytes(matrix)
    (tmp_path / "scp").write_text(f"a {tmp_path}/ark:2\n")
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", "kaldi_ark")])
    config = {"frontend_conf": {"fs": 8000}}
    if as_features:
        config = {"frontend": None, "input_size": 2}
    read = Utterances(dataset, config)["a"]
    assert list(read.warnings) == ([] if as_features else [CHANNELS])


def test_a_lone_number_is_no_audio(tmp_path):
    np.save(tmp_path / "a.npy", np.float32(1))
    (tmp_path / "scp").write_text(f"a {tmp_path}/a.npy\n")
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", "npy")])
    read = Utterances(dataset, {"frontend_conf": {"fs": 16000}})["a"]
    assert isinstance(read.data, Unreadable)
    assert "a.npy holds a single number, and no sequence" in read.data.reason


@pytest.mark.parametrize(
    "kind, tells",
    [("WAV", True), ("FLAC", True), ("AU", True), ("VOC", False), ("MAT4", False)],
)
def test_files_that_may_be_cut_off_unnoticed(kind, tells, tmp_path):
    soundfile.write(tmp_path / "a", np.zeros(8000), 8000, "PCM_16", format=kind)
    (tmp_path / "scp").write_text(f"a {tmp_path}/a\n")
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", "sound")])
    read = Utterances(dataset, {"frontend_conf": {"fs": 8000}})["a"]
    assert list(read.warnings) == ([] if tells else [END])
    if not tells:
        assert f"/a: of {kind} it cannot be told whether a fi" in read.warnings[END]


def test_the_rate_of_one_utterance_is_not_that_of_the_next(tmp_path):
    """Of 8 and 16 kHz for a model of 16 kHz; features have no rate at all."""
    # as Kaldi writes a matrix of 40 frames
    matrix = b"c \0BFM \4" + struct.pack("<ibi", 40, 4, 20) + bytes(4 * 40 * 20)
    (tmp_path / "ark").write_bytes(matrix)
    for key, rate in (("a", 8000), ("b", 16000)):
        soundfile.write(tmp_path / f"{key}.wav", np.zeros(rate), rate)
    wavs = "".join(f"{key} {tmp_path}/{key}.wav\n" for key in "ab")
    (tmp_path / "scp").write_text(f"{wavs}c {tmp_path}/ark:2\n")
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", "kaldi_ark")])
    every = Utterances(dataset, {"frontend_conf": {"fs": 16000}})
    for key, warned in (("a", True), ("b", False), ("a", True), ("c", False)):
        read = every[key]
        assert not isinstance(read.data, Unreadable)
        assert (RATE in read.warnings) == warned
        assert LENGTH not in read.warnings


@pytest.mark.parametrize("kind", ["sound", "kaldi_ark"])
def test_a_name_that_is_too_long_costs_no_other(kind, tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 8000)
    long = "a" * 300  # a Path raises for it, where ENAMETOOLONG is at 255
    (tmp_path / "scp").write_text(f"bad {long}\ngood {tmp_path}/a.wav\n")
    read = Utterances(ESPnetDataset([(str(tmp_path / "scp"), "speech", kind)]))
    assert isinstance(read["bad"].data, Unreadable)
    assert long in read["bad"].data.reason
    assert read["good"].data["speech"].shape == (800,)


def test_a_long_command_is_no_name_of_a_file(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 8000)
    command = f"true {'a' * 300}; cat {tmp_path}/a.wav |"
    (tmp_path / "scp").write_text(f"a {command}\n")
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", "kaldi_ark")])
    assert Utterances(dataset)["a"].data["speech"].shape == (800,)


def test_a_broken_recording_is_verified_once_for_all_its_pieces(tmp_path, monkeypatch):
    (tmp_path / "a.wav").write_bytes(b"none")
    (tmp_path / "scp").write_text(f"a {tmp_path}/a.wav\nb {tmp_path}/a.wav\n")
    verified = []

    def broken(path, start):
        verified.append(path)
        raise AudioError(f"{path}: cut off")

    monkeypatch.setattr(utterances, "check_whole", broken)
    read = Utterances(ESPnetDataset([(str(tmp_path / "scp"), "speech", "sound")]))
    reasons = [read[key].data.reason for key in ("a", "b")]
    assert reasons == [f"AudioError: {tmp_path}/a.wav: cut off"] * 2
    assert len(verified) == 1


def test_a_recording_is_verified_once_for_all_its_pieces(tmp_path, monkeypatch):
    wave = 0.1 * np.random.default_rng(0).standard_normal(3200)
    soundfile.write(tmp_path / "a.flac", wave, 8000)
    (tmp_path / "scp").write_text(f"a {tmp_path}/a.flac\nb {tmp_path}/a.flac\n")
    verified = []
    monkeypatch.setattr(
        utterances, "check_whole", lambda path, start: verified.append((path, start))
    )
    dataset = ESPnetDataset([(str(tmp_path / "scp"), "speech", "sound")])
    read = Utterances(dataset)
    for key in ("a", "b", "a"):
        assert not isinstance(read[key].data, Unreadable)
    assert verified == [(tmp_path / "a.flac", 0)]
