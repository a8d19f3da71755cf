"""The models of all tools, data and audio for them, and a job queue."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
from espnet2.main_funcs.pack_funcs import pack
from scipy.signal import resample_poly

from espnet_lenbias.decoding.result_folder import ResultFolder
from tests.conftest import RATE
from tests.decoding.made import write_wav
from tests.docs.workplace import BOOTS, WALTER, speech
from tests.tool_models import data, model_of

__all__ = ["data", "model_of"]


@pytest.fixture
def packed(model_of, tmp_path, monkeypatch, capsys) -> Callable[[str], str]:
    """Return what packs a tiny model, as ESPnet does, with a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def packed(name: str) -> str:
        model, archive = model_of(name), tmp_path / f"{name}.zip"
        config, weights = model.files.items()
        monkeypatch.chdir(model.config.parent)
        pack(files=dict([weights]), yaml_files=dict([config]), outpath=archive)
        monkeypatch.chdir(tmp_path)
        capsys.readouterr()  # what ESPnet says of it
        return str(archive)

    return packed


@pytest.fixture
def slurm(tmp_path, monkeypatch) -> Path:
    """Commands that do with a job on this machine what SLURM does."""
    commands = {
        # A job that the queue tells of is there to be cancelled: it has its group.
        "sbatch": 'cp -p "$1" "$0.job"; setsid bash "$0.job" >/dev/null 2>&1 & '
        'while kill -0 "$!" && ! kill -0 -- "-$!"; do sleep 0.05; done 2>/dev/null; '
        "echo Submitted batch job $!",
        "scancel": 'kill -- "-$1"',
    }
    for name, command in commands.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/bash\n{command}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path / "sbatch"


@pytest.fixture
def trouble(wav_scp) -> Path:
    """Break utterances 1 to 4, each in its way, and add one that has no audio."""
    write_wav(wav_scp, "utt1", np.full(RATE, np.nan))
    write_wav(wav_scp, "utt2", np.zeros(160))  # too short for the subsampling
    cut = wav_scp.parent / "utt3.wav"
    soundfile.write(cut, np.random.default_rng(0).random(RATE), RATE, format="FLAC")
    cut.write_bytes(cut.read_bytes()[:9000])
    (wav_scp.parent / "utt4.wav").unlink()
    keys = wav_scp.parent / "keys.scp"
    keys.write_text(wav_scp.read_text() + "utt6 x\n")
    return wav_scp


@pytest.fixture
def audio(tmp_path):
    """A folder with a FLAC file, a WAV of two channels and 8 kHz, and a broken one."""
    folder = tmp_path / "audio"
    (folder / "inner").mkdir(parents=True)
    shutil.copy(speech(WALTER), folder / "walter.flac")
    samples, rate = soundfile.read(speech(BOOTS))
    half = resample_poly(samples, 1, 2)
    # the mean of the channels is what was said
    wave = np.stack([1.5 * half, 0.5 * half], axis=1)
    soundfile.write(folder / "inner" / "nineteen boots.wav", wave, rate // 2)
    (folder / "broken.wav").write_text("no audio")
    (folder / "notes.txt").write_text("no audio, and no name of any")
    return folder


@pytest.fixture
def tone():
    """A second of 440 Hz, at 8 kHz."""
    return 0.25 * np.sin(2 * np.pi * 440 * np.arange(8000) / 8000)


_HOLDER = """
import multiprocessing, os, sys
from pathlib import Path
from espnet_lenbias import cli
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding.folder_lock import locked

with locked(Path(sys.argv[1])):
    # as a data loader's worker, which outlives a parent that is killed
    told = os.dup(0)  # the worker's own input is closed
    fork = multiprocessing.get_context("fork")
    worker = fork.Process(target=os.read, args=(told, 1))
    worker.start()
    print(worker.pid, flush=True)
    os.read(told, 1)
"""


@pytest.fixture
def holder(tmp_path):
    """Return a process that holds a folder's lock, and its child."""
    command = [sys.executable, "-c", _HOLDER, str(tmp_path / "out")]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with subprocess.Popen(command, **pipes, text=True) as process:
        child = int(process.stdout.readline())
        yield process, child
        process.stdin.close()  # which ends them
        process.stdout.read()  # until they have ended


class Killed(BaseException):
    """What no run expects, as it does not expect to be killed."""


@pytest.fixture
def interrupted_after(monkeypatch):
    """Return a context in which a run is interrupted after so many results.

    It gives the keys of these.
    """
    add = ResultFolder.add

    @contextmanager
    def interrupted_after(count: int):
        decoded: list[str] = []

        def add_some(self, key, row):
            if len(decoded) == count:
                raise Killed
            decoded.append(key)
            add(self, key, row)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(ResultFolder, "add", add_some)
            yield decoded

    return interrupted_after
