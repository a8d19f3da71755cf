"""Decoding with several workers: what one process writes, whatever becomes of them."""

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
from itertools import chain
from pathlib import Path

import dask
import psutil
import pytest
import soundfile
from distributed import Client

from espnet_lenbias import cli
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.decoding.batches import source_lengths
from espnet_lenbias.decoding.cluster import command as decode_parallel
from espnet_lenbias.decoding.cluster import share_out
from espnet_lenbias.decoding.cluster import workers as cluster
from espnet_lenbias.decoding.cluster.worker import decoder
from espnet_lenbias.decoding.cluster.workers import kill_with_children
from espnet_lenbias.decoding.result_folder import ResultFolder
from espnet_lenbias.errors import ClusterError
from espnet_lenbias.options.cluster import Workers
from espnet_lenbias.options.espnet_tools import ASR, MT, ST
from espnet_lenbias.options.run_journal import JOURNAL
from tests.decoding.cluster_runs import PATIENCE, decode_options, interrupt, wait_until
from tests.releases import needs_batches
from tests.tool_models import TEXTS, command, files, lines, tool_of


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


def _decoded(out: Path) -> list[str]:
    """Return the keys in a journal."""
    if not (out / JOURNAL).exists():
        return []
    lines = (out / JOURNAL).read_text().splitlines()[1:]
    return [line.split('"')[1] for line in lines]


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
        [
            o.replace(",sound", ",kaldi_ark")
            for o in decode_options(transformer_model, *rest)
        ]
        for rest in (("unbroken", *more), ("out", *more))
    )
    assert asr_inference.main(unbroken) == 1
    out = tmp_path / "out"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))

    pipe.unlink()
    os.mkfifo(pipe)

    interrupt(lambda _: len(_decoded(out)) == 4, "--cluster", "local", *options)
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
    assert messages[-1] == "failed: utt6: is not in wav.scp"
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
    wait_until(lambda: not any(map(_runs, processes)))
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


# --- How many workers -----------------------------------------------------------------


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
            decode_parallel.main(decode_options(transformer_model, "out", "--nj", nj))
    assert asked == [5, 3]


def test_one_worker_is_this_process_and_needs_no_dask(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "distributed", None)  # cannot be imported
    options = decode_options(transformer_model, "out", "--nj", "1")
    assert cli.main(["decode", *options]) == 0
    assert asr_inference.main(decode_options(transformer_model, "other")) == 0
    assert files(tmp_path / "out") == files(tmp_path / "other")


def test_a_finished_run_starts_no_worker(
    transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    options = decode_options(transformer_model, "out")
    assert asr_inference.main(options) == 0
    monkeypatch.setattr(decode_parallel, "start", None)
    assert cli.main(["decode", "--nj", "2", *options]) == 0


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
    assert "failed: utt4: is not in " in caplog.text
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


# --- Audio ----------------------------------------------------------------------------


def test_workers_warn_of_audio_of_another_rate(
    client, transformer_model, wav_scp, tmp_path, caplog, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for key in ("utt2", "utt5"):
        samples, rate = soundfile.read(f"{key}.wav")
        soundfile.write(f"{key}.wav", samples, 2 * rate)
    options = decode_options(transformer_model, "out")
    assert cli.main(["decode", *_where(client, tmp_path), *options]) == 0
    warned = [m.split(":")[0] for m in caplog.messages if "samples a second" in m]
    assert sorted(warned) == ["Utterance utt2", "Utterance utt5"]
    assert "2 of 5 utterances have another sampling rate" in caplog.text
