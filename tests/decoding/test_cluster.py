"""Decoding with several workers: what one process writes, whatever becomes of them."""

import gc
import importlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import dask
import psutil
import pytest
import soundfile
from distributed import Client, Status

from espnet_lenbias import cli
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding.batches import source_lengths
from espnet_lenbias.decoding.cluster import command as decode_parallel
from espnet_lenbias.decoding.cluster import share_out, worker
from espnet_lenbias.decoding.cluster import workers as cluster
from espnet_lenbias.decoding.cluster.worker import decoder
from espnet_lenbias.decoding.cluster.workers import kill_with_children
from espnet_lenbias.decoding.result_folder import ResultFolder
from espnet_lenbias.errors import ClusterError, OptionError, Terminated
from espnet_lenbias.options.cluster import Workers
from espnet_lenbias.options.espnet_tools import ASR, MT, ST
from espnet_lenbias.options.run_journal import JOURNAL
from tests.releases import needs_batches
from tests.tool_models import TEXTS, command, files, lines, tool_of

# Seconds that a busy machine may take for anything; no test waits so long in vain.
PATIENCE = 300


def _wait_until(condition: Callable[[], object]) -> None:
    for _ in range(10 * PATIENCE):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError


@pytest.fixture(scope="module")
def client():
    """Two workers on this machine; what kills one of them twice is given up."""
    with cluster.start(Workers("local", 2)) as client:
        client.wait_for_workers(2)
        yield client


# --- Batches and workers that die -----------------------------------------------------


def test_batches_start_in_order_and_are_done_once(client, tmp_path, monkeypatch):
    monkeypatch.setattr(share_out, "_IN_FLIGHT", 8)

    def note(batch):
        with (tmp_path / str(os.getpid())).open("a") as f:
            f.write(f"{batch[0]}\n")
        return 2 * batch[0]

    batches = [[i] for i in range(40)]
    results = list(share_out.share_out(client, note, batches))
    assert sorted(results) == [([i], 2 * i) for i in range(40)]
    started = [
        [int(line) for line in path.read_text().split()] for path in tmp_path.iterdir()
    ]
    assert sorted(chain(*started)) == list(range(40))
    for numbers in started:  # of one worker
        assert numbers == sorted(numbers)


def test_an_error_of_a_task_is_raised(client):
    def load(batch):
        raise FileNotFoundError("no model here")

    with pytest.raises(FileNotFoundError, match="no model here"):
        list(share_out.share_out(client, load, [["a"], ["b"]]))


def test_what_kills_workers_takes_nothing_along(client, tmp_path):
    """Batch (b, poison, c) kills whoever decodes it; (once, d) kills one worker."""

    def decode(batch):
        if "poison" in batch:
            os.kill(os.getpid(), signal.SIGKILL)
        if "once" in batch and not (tmp_path / "dead").exists():
            (tmp_path / "dead").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [key.upper() for key in batch]

    batches = [
        ["a"],
        ["once", "d"],
        ["b", "poison", "c"],
        *([f"e{i}"] for i in range(20)),
    ]
    results = list(share_out.share_out(client, decode, batches))
    assert sorted(results) == sorted(
        [(["a"], ["A"]), (["once", "d"], ["ONCE", "D"])]
        + [([f"e{i}"], [f"E{i}"]) for i in range(20)]
        + [(["b"], ["B"]), (["poison"], None), (["c"], ["C"])]
    )


def test_workers_that_die_whatever_they_decode_end_the_run(client, monkeypatch):
    monkeypatch.setattr(share_out, "_HOPELESS", 3)

    def die(batch):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(
        cluster.ClusterError, match="first 3 batches; give them more mem"
    ):
        # no more of them, which would go on killing workers of the tests that follow
        list(share_out.share_out(client, die, [[i] for i in range(3)]))


def test_a_worker_full_of_a_model_goes_on():
    """Dask would have it wait for room."""

    def fill(batch):
        sys.ballast = b"x" * 500_000_000
        time.sleep(0.5)  # Dask looks ten times a second

    workers = Workers("local", 1, {"memory_limit": "600MB"})
    spared = dask.config.set({"distributed.worker.memory.terminate": False})
    with spared, cluster.start(workers) as client, decoder(client, ASR, Namespace()):
        for i in range(2):
            client.submit(fill, [i]).result(timeout=PATIENCE)


def test_an_utterance_that_kills_workers_is_reported_like_other_failures():
    outcomes = decode_parallel._outcomes([(["utt1", "utt2"], None)])
    reasons = dict(outcomes)
    assert list(reasons) == ["utt1", "utt2"]
    for why in reasons.values():
        assert why.startswith("workers died while they decoded it")
        assert "lower beam_size" in why


# --- The order ------------------------------------------------------------------------


def test_long_batches_start_first_after_one_that_is_short():
    lengths = {"a": 3, "b": 9, "c": 5, "d": 1, "e": 7}
    batches = [["a", "b"], ["c"], ["d", "gone"], ["e"]]
    order = decode_parallel.starting_order(batches, lengths)
    assert order == [["d", "gone"], ["a", "b"], ["e"], ["c"]]
    assert decode_parallel.starting_order([["a"]], lengths) == [["a"]]


# --- The whole command ----------------------------------------------------------------


def _options(model, out: str, *more: str) -> list[str]:
    return [
        *("--asr_train_config", str(model.config)),
        *("--asr_model_file", str(model.weights)),
        *("--data_path_and_name_and_type", "wav.scp,speech,sound"),
        *("--output_dir", out),
        *("--search", "explicit_length", "--beam_size", "4", "--ctc_weight", "0.3"),
        *("--num_workers", "0"),
        *more,
    ]


def _decoded(out: Path) -> list[str]:
    """Return the keys in a journal."""
    if not (out / JOURNAL).exists():
        return []
    lines = (out / JOURNAL).read_text().splitlines()[1:]
    return [line.split('"')[1] for line in lines]


def _interrupt(
    ready: Callable[[psutil.Process], object],
    *options: str,
    number: signal.Signals = signal.SIGINT,
) -> None:
    """Start the command and, once it is ready, have a signal end it: Ctrl-C, or other."""
    # A terminal sends it to all processes. Those that a shell has started in the
    # background ignore it, and so would what the tests start.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from espnet_lenbias import cli; sys.exit(cli.main())"
    )
    run = psutil.Popen(
        [sys.executable, "-c", code, "decode", *options],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _wait_until(lambda: ready(run) or run.poll() is not None)
        assert run.poll() is None, run.communicate()[1]
        processes = run.children(recursive=True)
        if number == signal.SIGINT:
            os.killpg(run.pid, number)
        else:
            os.kill(run.pid, number)
        log = run.communicate(timeout=PATIENCE)[1]
    except BaseException:  # it could wait for ever, e.g. for audio
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        raise
    assert run.returncode == 128 + number, log
    assert log.endswith(f"{INTERRUPTED}\n")
    assert "Traceback" not in log
    assert not psutil.wait_procs(processes, timeout=PATIENCE)[1]


def _where(client, folder) -> list[str]:
    """Return the options for the cluster of a client, as docs/clusters.md has them."""
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    for name in names:
        (folder / f"{name}.pem").write_text(getattr(client.security, name))
    lines = [f"{name}: {folder / name}.pem\n" for name in names]
    config = folder / "c.yaml"
    config.write_text("require_encryption: true\n" + "".join(lines))
    address = client.scheduler.address.removeprefix("tls://")
    return ["--cluster", address, "--cluster_config", str(config)]


@needs_batches
def test_a_run_through_all_mishaps_writes_what_one_process_does(
    client, transformer_model, wav_scp, tmp_path, caplog, monkeypatch
):
    """Batches (utt1, utt2), (utt3, utt4), (utt5, utt6); there is no audio of utt6."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keys.scp").write_text(wav_scp.read_text() + "utt6 x\n")
    lengths = dict(utt1=1, utt2=1, utt3=9, utt4=9, utt5=5, utt6=5)
    lines = "".join(f"{key} {n}\n" for key, n in lengths.items())
    (tmp_path / "utt2num_samples").write_text(lines)
    more = ["--key_file", "keys.scp", "--batch_size", "2", "--nbest", "2"]
    more += ["--confidence", "true", "--decide", "mbr"]
    # utt5 comes from a pipe, which has no writer at first: to read it is to wait.
    audio, pipe = tmp_path / "utt5.wav", tmp_path / "pipe"
    scp = wav_scp.read_text().replace(f"{audio}\n", f"cat {pipe} |\n")
    wav_scp.write_text(scp)
    pipe.symlink_to(audio)
    unbroken, options = (
        [o.replace(",sound", ",kaldi_ark") for o in _options(transformer_model, *rest)]
        for rest in (("unbroken", *more), ("out", *more))
    )
    assert asr_inference.main(unbroken) == 1
    out = tmp_path / "out"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))

    pipe.unlink()
    os.mkfifo(pipe)

    _interrupt(lambda _: len(_decoded(out)) == 4, "--cluster", "local", *options)
    assert not list(scratch.glob("*lenbias*")) + list(scratch.glob("dask*"))
    assert _decoded(out) == ["utt1", "utt2", "utt3", "utt4"]
    texts = (out / "1best_recog" / "text").read_text().splitlines()
    assert [line.split()[0] for line in texts] == ["utt1", "utt2", "utt3", "utt4"]

    # The same command goes on, with the workers of a running scheduler, which were
    # started in another folder. The one that reads utt5 is killed.
    def kill() -> None:
        with pipe.open("wb"):  # waits for a reader
            pipe.unlink()
            pipe.symlink_to(audio)
            pids = client.run(os.getpid)
            (busy,) = [worker for worker, tasks in client.processing().items() if tasks]
            os.kill(pids[busy], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    caplog.set_level(logging.INFO)
    assert cli.main(["decode", *_where(client, tmp_path), *options]) == 1
    killer.join()
    assert files(out) == files(tmp_path / "unbroken")
    assert len(files(out)) == 20

    # those of the cluster may come at any time
    ours = [r for r in caplog.records if not r.name.startswith("distributed")]
    messages = [record.getMessage() for record in ours]
    assert "4 of 6 utterances are decoded already" in messages
    assert messages[-1] == "failed: utt6: is not in all of wav.scp"
    markers = [
        m.split(":")[0] for m in messages if m.startswith(("speech l", "best h"))
    ]
    assert markers == ["speech length", "best hypo"]  # of utt5
    (line,) = [m for m in messages if m.startswith("progress: 2/2 [")]
    assert re.fullmatch(r"progress: 2/2 \[\d\d:\d\d<00:00, .*utterance.*\]", line)


def test_a_killed_worker_leaves_no_command_behind():
    """Which may wait for ever for what it is to read."""
    shell = ["sh", "-c", "sh -c 'echo ready; sleep 300; :'; :"]
    process = psutil.Popen(shell, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    processes = [process, *process.children(recursive=True)]
    assert len(processes) >= 2
    kill_with_children(process.pid)
    process.wait(PATIENCE)
    _wait_until(lambda: not any(map(_runs, processes)))
    kill_with_children(process.pid)  # one that has gone is no error


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


LONELY = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=0, dashboard_address=None)
    print(cluster.scheduler_address, flush=True)
    time.sleep(300)
"""


def test_a_scheduler_that_is_lost(tmp_path):
    """It ends the run in one line."""
    (tmp_path / "scheduler.py").write_text(LONELY)
    scheduler = subprocess.Popen(
        [sys.executable, str(tmp_path / "scheduler.py")],
        stdout=subprocess.PIPE,
        text=True,
    )
    said = "the scheduler is lost, .* the same command decodes the rest"
    try:
        with (
            pytest.raises(ClusterError, match=said),
            Client(scheduler.stdout.readline().strip()) as client,
            decoder(client, ASR, Namespace()) as decode,
        ):
            threading.Timer(0.5, scheduler.kill).start()
            list(share_out.share_out(client, decode, [["a"], ["b"]]))
    finally:
        scheduler.kill()
        scheduler.communicate()


# --- Every tool -----------------------------------------------------------------------

# name of the model -> options of its tool
OF_TOOLS = {
    "st": [],
    "st_multi": ["--asr_nbest", "2", "--asr_beam_size", "3"],
    "mt": ["--nbest", "2"],
    "s2t": ["--lang_sym", "deu", "--task_sym", "st_deu"],
    "slu": ["--nbest", "2"],
}
EXPLICIT = ["--search", "explicit_length", "--ctc_weight", "0.0", "--batch_size", "1"]


@pytest.mark.parametrize("name", OF_TOOLS)
def test_a_run_that_was_interrupted_goes_on_and_writes_what_one_process_does(
    name, client, model_of, data, tmp_path, monkeypatch, caplog
):
    """The model says the tool. Of one more utterance, utt4, there is nothing."""
    model, out, unbroken = model_of(name), tmp_path / "out", tmp_path / "unbroken"
    (data / "keys").write_text("".join(f"{key} x\n" for key in (*TEXTS, "utt4")))
    options = [*EXPLICIT, *OF_TOOLS[name], "--key_file", str(data / "keys")]
    one_process = importlib.import_module(tool_of(model).drop_in)
    assert one_process.main(command(model, data, unbroken, *options)) == 1
    command_line = ["decode", *_where(client, tmp_path)]
    command_line += command(model, data, out, *options)

    add, added = ResultFolder.add, []

    def add_one(self, key, row):
        if len(added) == 1:
            added.append("interrupted")
            raise KeyboardInterrupt
        added.append(key)
        add(self, key, row)

    monkeypatch.setattr(ResultFolder, "add", add_one)
    assert cli.main(command_line) == 128 + signal.SIGINT
    assert list(lines(out)) == added[:1]
    assert cli.main(command_line) == 1
    assert sorted(added) == ["interrupted", *TEXTS]  # each was decoded once
    assert "failed: utt4: is not in all of " in caplog.text
    assert files(out) == files(unbroken)
    assert lines(out)["utt4"] == ""


def test_a_text_is_as_long_as_it_reads(data):
    args = decode_parallel.get_parser(MT.module).parse_args(
        ["--output_dir", "x"]
        + ["--data_path_and_name_and_type", f"{data}/wav.scp,other,text"]
        + ["--data_path_and_name_and_type", f"{data}/text,src_text,text"]
    )
    args.pieces = {}
    lengths = source_lengths(MT, args)
    assert lengths == {key: len(text) for key, text in TEXTS.items()}
    order = decode_parallel.starting_order([[key] for key in TEXTS], lengths)
    assert order == [["utt2"], ["utt3"], ["utt1"]]
    args.data_path_and_name_and_type[0] = (f"{data}/wav.scp", "speech", "sound")
    assert source_lengths(ST, args) == pytest.approx(
        {"utt1": 0.25, "utt2": 0.3, "utt3": 0.35}
    )


# --- Signals --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_whose_workers_are_starting(
    number, transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    options = ["--nj", "2", *_options(transformer_model, "out")]
    _interrupt(_starts_workers, *options, number=number)
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


# --- The last word --------------------------------------------------------------------

INTERRUPTED = "interrupted; the same command decodes the rest"


@pytest.fixture(params=[False, True], ids=["log", "terminal"])
def decode(
    request, transformer_model, wav_scp, tmp_path, monkeypatch, caplog, capsys
) -> Callable[[int], tuple[int, list[str]]]:
    """Return what runs the command; it returns status and stderr, file or terminal."""

    def run(nj: int) -> tuple[int, list[str]]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: request.param)
        caplog.set_level(logging.INFO)  # and back again
        monkeypatch.setattr(
            logging.getLogger(), "handlers", []
        )  # the run makes its own
        try:
            options = _options(transformer_model, "out", "--nj", str(nj))
            status = cli.main(["decode", *options])
        except SystemExit as e:
            status = e.code
        return status, capsys.readouterr().err.splitlines()

    return run


@pytest.fixture
def share(monkeypatch) -> Callable[[Callable[[], Iterator]], None]:
    """Return what has results take the place of those of workers."""

    def share(results: Callable[[], Iterator]) -> None:
        monkeypatch.setattr(decode_parallel, "start", lambda _: nullcontext())
        monkeypatch.setattr(worker, "decoder", lambda *_: nullcontext())
        monkeypatch.setattr(share_out, "share_out", lambda *_: results())

    return share


def test_no_more_workers_than_batches_are_started(
    transformer_model, wav_scp, monkeypatch
):
    """Each would load the model; of 1,000,000 not even the start would end."""
    monkeypatch.chdir(wav_scp.parent)
    asked = []

    class NoWorkers(Exception):
        pass

    def start(workers):
        asked.append(workers.number)
        raise NoWorkers

    monkeypatch.setattr(decode_parallel, "start", start)
    for nj in ("1000000", "3"):
        with pytest.raises(NoWorkers):
            decode_parallel.main(_options(transformer_model, "out", "--nj", nj))
    assert asked == [5, 3]


def _one_decoded_one_failed() -> Iterator:
    yield ["utt1"], ([("utt1", {"1best_recog/text": "A"})], [])
    yield ["utt2"], ([("utt2", "is broken")], [])


ERROR = "espnet-lenbias decode: error: "


@pytest.mark.parametrize(
    "kind, status, last",
    [(KeyboardInterrupt, 130, INTERRUPTED), (OSError, 2, f"{ERROR}no space left")],
)
@pytest.mark.parametrize("nj", [1, 2])
def test_what_ends_a_run_while_it_writes_has_the_last_word(
    nj, kind, status, last, decode, share, monkeypatch
):
    """No report of progress follows when all that ran is thrown away."""

    def add(*_: object) -> None:
        raise kind("no space left")

    share(_one_decoded_one_failed)
    monkeypatch.setattr(ResultFolder, "add", add)
    ended_with, lines = decode(nj)
    assert ended_with == status
    assert lines[-1] == last


@pytest.mark.parametrize("kind", [OptionError, ClusterError])
def test_an_error_of_workers_has_the_last_word(kind, decode, share):
    def results() -> Iterator:
        yield next(_one_decoded_one_failed())
        raise kind("no GPU here")

    share(results)
    status, lines = decode(2)
    assert status == 2
    assert lines[-1] == f"{ERROR}no GPU here"


def test_utterances_that_failed_have_the_last_word(decode, share):
    share(_one_decoded_one_failed)
    status, lines = decode(2)
    assert status == 1
    assert lines[-1].endswith(" ERROR: failed: utt2: is broken")


def test_one_worker_is_this_process_and_needs_no_dask(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)  # cannot be imported
    assert cli.main(["decode", *_options(transformer_model, "out", "--nj", "1")]) == 0
    assert asr_inference.main(_options(transformer_model, "other")) == 0
    assert files(tmp_path / "out") == files(tmp_path / "other")


def test_a_finished_run_starts_no_worker(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert asr_inference.main(_options(transformer_model, "out")) == 0
    monkeypatch.setattr(decode_parallel, "start", None)
    assert cli.main(["decode", "--nj", "2", *_options(transformer_model, "out")]) == 0


# --- Mistakes -------------------------------------------------------------------------


def _fails(capsys, *options: str) -> str:
    """Return what a command that ends with status 2 says; its error comes last."""
    with pytest.raises(SystemExit) as e:
        cli.main(["decode", *options])
    assert e.value.code == 2
    error = capsys.readouterr().err
    # what the yaml parser says has several lines
    assert ": error: " in error.splitlines()[-1] or "not a yaml file" in error
    return error


def test_a_mistake_that_workers_find_is_one_line(
    transformer_model, rnn_model, wav_scp, tmp_path
):
    options = _options(transformer_model, str(tmp_path / "out"))
    options[options.index("wav.scp,speech,sound")] = f"{wav_scp},speech,sound"
    options[options.index(str(transformer_model.weights))] = str(rnn_model.weights)
    code = "import sys; from espnet_lenbias.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "decode", "--nj", "1", *options]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 2
    assert "asr_model_file: " in run.stderr.splitlines()[-1]
    assert "Traceback" not in run.stderr
    assert "Compute Failed" not in run.stderr


@pytest.mark.parametrize(
    "options, message",
    [
        (["--nj", "0"], "nj: 0 workers cannot decode"),
        (["--nj", "2", "--search", "simpel"], "did you mean simple?"),
        (["--nj", "2", "--beam_sise", "3"], "did you mean --beam_size?"),
        (["--nj", "2", "--lm_file", "gone.pth"], "lm_file: there is no file gone.pth"),
        (["--nj", "2", "--key_file", "empty"], "empty holds no utterance keys"),
        (
            ["--cluster", "slrum"],
            "there is no 'slrum'; did you mean slurm? (one of: lo",
        ),
        (
            ["--cluster", "h:1", "--nj", "2"],
            "h:1 has its workers already; leave out nj",
        ),
        (["--cluster_config", "c.yaml"], "name the cluster with --cluster"),
        (["--nj", "2", "--cluster_config", "gone"], "there is no file gone"),
        (["--cluster", "oar"], "cluster: oar: there is no command oarsub on this mach"),
        (
            ["--cluster", "slurm", "--cluster_config", "c.yaml"],
            "c.yaml: unknown option coers; did you mean cores?",
        ),
        (
            ["--cluster", "local", "--cluster_config", "c.yaml"],
            "c.yaml: unknown option coers",
        ),
        (
            ["--cluster", "slurm", "--cluster_config", "n.yaml"],
            "n.yaml: n_workers: give the number with --nj",
        ),
        (
            ["--nj", "2", "--cluster_config", "list.yaml"],
            "list.yaml: a cluster config holds `option: value` lines",
        ),
        (["--nj", "2", "--cluster_config", "bad.yaml"], "bad.yaml: not a yaml file"),
        (
            ["--nj", "2", "--cluster_config", "tls.yaml"],
            "tls.yaml: security: leave it out: runs use TLS",
        ),
        (
            ["--cluster", "slurm", "--cluster_config", "tcp.yaml"],
            "tcp.yaml: protocol: leave it out: runs use TLS",
        ),
        (
            ["--cluster", "slurm", "--cluster_config", "scheduler.yaml"],
            "scheduler.yaml: scheduler_options: protocol: leave it out: runs use TLS",
        ),
        (
            ["--cluster", "local", "--cluster_config", "text.yaml"],
            "text.yaml: scheduler_kwargs: it holds `option: value` lines",
        ),
        (
            ["--cluster", "local", "--cluster_config", "host.yaml"],
            "host.yaml: scheduler_kwargs: host: tcp://: leave it out: runs use TLS",
        ),
        (
            ["--cluster", "slurm", "--cluster_config", "worker.yaml"],
            "worker.yaml: worker_extra_args: --protocol: leave it out: runs use TLS",
        ),
        (
            ["--cluster", "h:1", "--cluster_config", "c.yaml"],
            "c.yaml: unknown option coers",
        ),
        (
            ["--cluster", "h:1", "--cluster_config", "typo.yaml"],
            "typo.yaml: unknown option tls_client_crt; did you mean tls_client_cert?",
        ),
        (
            ["--cluster", "h:1", "--cluster_config", "gone.yaml"],
            "gone.yaml: tls_ca_file: there is no file ca.pem",
        ),
        (
            ["--cluster", "h:1", "--cluster_config", "half.yaml"],
            "half.yaml: give both tls_ca_file and tls_client_cert",
        ),
        (
            ["--cluster", "h:1", "--cluster_config", "maybe.yaml"],
            "maybe.yaml: require_encryption: 'maybe' is neither true nor false",
        ),
    ],
)
def test_mistakes_show_before_any_worker_starts(
    options, message, transformer_model, wav_scp, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(decode_parallel, "start", None)
    (tmp_path / "c.yaml").write_text("coers: 4\n")
    (tmp_path / "n.yaml").write_text("n_workers: 4\n")
    (tmp_path / "tls.yaml").write_text("security: true\n")
    (tmp_path / "tcp.yaml").write_text("protocol: tcp\n")
    (tmp_path / "scheduler.yaml").write_text("scheduler_options: {protocol: tcp}\n")
    (tmp_path / "text.yaml").write_text("scheduler_kwargs: tcp\n")
    (tmp_path / "host.yaml").write_text("scheduler_kwargs: {host: tcp://h}\n")
    (tmp_path / "worker.yaml").write_text("worker_extra_args: [--protocol=tcp]\n")
    (tmp_path / "typo.yaml").write_text("tls_client_crt: c.yaml\n")
    (tmp_path / "gone.yaml").write_text("tls_ca_file: ca.pem\n")
    (tmp_path / "half.yaml").write_text("tls_ca_file: c.yaml\n")
    (tmp_path / "maybe.yaml").write_text("require_encryption: maybe\n")
    (tmp_path / "list.yaml").write_text("- cores\n")
    (tmp_path / "bad.yaml").write_text("cores: {\n")
    (tmp_path / "empty").touch()
    error = _fails(capsys, *_options(transformer_model, "out"), *options)
    assert error.startswith("espnet-lenbias decode: error: ")
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "cluster_options, module",
    [
        (["--nj", "2"], "distributed"),
        (["--cluster", "h:1"], "distributed"),
        (["--cluster", "sge"], "dask_jobqueue"),
        (["--nj", "2"], "cryptography"),
    ],
)
def test_a_missing_dask_is_named_with_its_remedy(
    cluster_options, module, transformer_model, wav_scp, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    error = _fails(capsys, *_options(transformer_model, "out"), *cluster_options)
    assert f"several workers needs {module}" in error
    assert 'pip install "espnet_lenbias[cluster]"' in error


def test_help_waits_for_neither_torch_nor_dask():
    code = """
import sys
from espnet_lenbias.cli import main
try:
    main(["decode", "--help"])
except SystemExit as e:
    print("status", e.code, *({"torch", "distributed"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True).stdout
    assert out.startswith("usage: espnet-lenbias decode ")
    assert "--lm_weight" in out and "--search_conf" in out and "--cluster_config" in out
    assert out.splitlines()[-1] == "status 0"


# --- Job queues -----------------------------------------------------------------------


def test_workers_are_jobs_and_lost_jobs_are_replaced(slurm, monkeypatch, caplog):
    def job_group(batch):
        time.sleep(0.2)
        return os.getpgid(0)

    workers = Workers("slurm", 1, {"memory": "1GB", "queue": "main"})
    monkeypatch.chdir(slurm.parent)
    batches = [[i] for i in range(8)]
    monkeypatch.setattr(cluster, "_PATIENCE", 0.1)
    caplog.set_level(logging.INFO)
    at_once = dask.config.set({"distributed.deploy.lost-worker-timeout": "0.1s"})
    with at_once, cluster.start(workers) as client:
        results = share_out.share_out(client, job_group, batches)
        first = next(results)[1]
        os.killpg(first, signal.SIGKILL)
        assert (
            "no worker has started yet; their jobs may have to wait" in caplog.messages
        )
        (last,) = {group for _, group in results} - {first}
        assert psutil.pid_exists(last)
    job = slurm.with_name("sbatch.job").read_text()
    assert "#SBATCH -p main\n" in job
    assert "#SBATCH --cpus-per-task=1\n" in job
    _wait_until(lambda: not psutil.pid_exists(last))


def test_an_interrupt_cancels_jobs(
    slurm, transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("memory: 1GB\n")
    more = ["--cluster", "slurm", "--cluster_config", "c.yaml"]

    _interrupt(lambda _: _jobs(slurm), *more, *_options(transformer_model, "out"))
    _wait_until(lambda: not _jobs(slurm))


def test_a_job_that_is_not_collected_as_garbage_is_cancelled(slurm, monkeypatch):
    """Dask would find it running, and end in an AssertionError."""
    monkeypatch.chdir(slurm.parent)
    with cluster.start(Workers("slurm", 1, {"memory": "1GB"})) as client:
        (job,) = client.cluster.workers.values()
        (process,) = _jobs(slurm)
    assert job.status == Status.closed
    _wait_until(lambda: not process.is_running())


def _jobs(slurm: Path) -> list[psutil.Process]:
    command = ["bash", f"{slurm}.job"]
    processes = psutil.process_iter(["cmdline"])
    return [p for p in processes if p.info["cmdline"] == command]


def test_what_a_job_queue_refuses_is_an_error(slurm, request):
    slurm.write_text("#!/bin/bash\necho invalid partition: main >&2; exit 1\n")
    workers = Workers("slurm", 2, {"memory": "1GB"})
    refused = pytest.raises(cluster.ClusterError, match="(?s)slurm: .*partition: main")
    request.addfinalizer(gc.enable)
    gc.disable()  # Dask closes a cluster more easily where a collection comes by
    with refused, cluster.start(workers):
        pass


def test_workers_that_cannot_start_are_an_error():
    workers = Workers("local", 1, {"preload": ["no_such_module"]})
    failed = pytest.raises(cluster.ClusterError, match="local: Nanny failed")
    with failed, cluster.start(workers):
        pass


# --- Audio ----------------------------------------------------------------------------


def test_workers_warn_of_audio_of_another_rate(
    client, transformer_model, wav_scp, tmp_path, caplog, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for key in ("utt2", "utt5"):
        samples, rate = soundfile.read(f"{key}.wav")
        soundfile.write(f"{key}.wav", samples, 2 * rate)
    options = _options(transformer_model, "out")
    assert cli.main(["decode", *_where(client, tmp_path), *options]) == 0
    warned = [m.split(":")[0] for m in caplog.messages if "samples a second" in m]
    assert sorted(warned) == ["Utterance utt2", "Utterance utt5"]
    assert "2 of 5 utterances have another sampling rate" in caplog.text
