"""Workers that are jobs of a queue."""

import gc
import logging
import os
import signal
import time
from pathlib import Path

import dask
import psutil
import pytest
from distributed import Status

from espnet_lenbias.decoding.cluster import share_out
from espnet_lenbias.decoding.cluster import workers as cluster
from espnet_lenbias.options.cluster import Workers
from tests.decoding.cluster_runs import decode_options, interrupt, wait_until


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
    wait_until(lambda: not psutil.pid_exists(last))


def test_an_interrupt_cancels_jobs(
    slurm, transformer_model, wav_scp, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("memory: 1GB\n")
    more = ["--cluster", "slurm", "--cluster_config", "c.yaml"]

    interrupt(lambda _: _jobs(slurm), *more, *decode_options(transformer_model, "out"))
    wait_until(lambda: not _jobs(slurm))


def test_a_job_that_is_not_collected_as_garbage_is_cancelled(slurm, monkeypatch):
    """Dask would find it running, and end in an AssertionError."""
    monkeypatch.chdir(slurm.parent)
    with cluster.start(Workers("slurm", 1, {"memory": "1GB"})) as client:
        (job,) = client.cluster.workers.values()
        (process,) = _jobs(slurm)
    assert job.status == Status.closed
    wait_until(lambda: not process.is_running())


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
