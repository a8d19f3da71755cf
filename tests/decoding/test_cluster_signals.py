"""Signals to a run with workers: it ends, and leaves nothing behind."""

import importlib
import signal
from contextlib import suppress
from functools import partial

import psutil
import pytest

from espnet_lenbias import cli
from espnet_lenbias.decoding.cluster import workers as cluster
from espnet_lenbias.errors import Terminated
from tests.decoding.cluster_runs import INTERRUPTED, decode_options, interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_whose_workers_are_starting(
    number, transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    options = ["--nj", "2", *decode_options(transformer_model, "out")]
    interrupt(_starts_workers, *options, number=number)
    assert not list(scratch.iterdir())


def _starts_workers(run: psutil.Process) -> bool:
    with suppress(psutil.Error):  # of a process that has ended meanwhile
        return any("spawn_main" in " ".join(p.cmdline()) for p in run.children())
    return False


@pytest.mark.parametrize("number", cluster._ENDING)
def test_signals_are_held_back_where_dask_cannot_be_cut_off(number, request):
    # as in a terminal: a command in the background of a script ignores Ctrl-C
    interrupt = number == signal.SIGINT
    before = signal.default_int_handler if interrupt else signal.SIG_DFL
    request.addfinalizer(partial(signal.signal, number, signal.signal(number, before)))
    with cluster._interrupts_held_back() as let_through:
        with let_through():
            pass
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt), let_through():
            raise AssertionError("it was held back for good")
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_so(monkeypatch):
    """As nohup has it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with cluster._interrupts_held_back() as let_through:
            signal.raise_signal(signal.SIGHUP)
            with let_through():
                signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    "end, status",
    [(KeyboardInterrupt(), 130), (Terminated(15), 143), (Terminated(1), 129)],
)
def test_a_signal_ends_a_run_that_is_being_imported(end, status, monkeypatch, capsys):
    def interrupt(name: str) -> None:
        raise end

    monkeypatch.setattr(importlib, "import_module", interrupt)
    assert cli.main(["decode", "--nj", "2"]) == status
    error = capsys.readouterr().err
    assert error == f"{INTERRUPTED}\n"
