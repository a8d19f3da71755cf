"""What other users of the machines can do to a cluster: nothing."""

import json
import logging
import os
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
from distributed import LocalCluster
from distributed.security import Security

from espnet_lenbias.decoding.cluster import workers as cluster
from espnet_lenbias.decoding.cluster.private import private_options
from espnet_lenbias.options.cluster import Workers

TLS_NAMES = ("tls_ca_file", "tls_client_cert", "tls_client_key")


@pytest.fixture
def shared_tmp(tmp_path, monkeypatch) -> Path:
    """A shared temporary folder where another user has put a link beforehand."""
    folder, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "dask-scratch-space").symlink_to(elsewhere)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _mode(path: Path | str) -> str:
    return oct(stat.S_IMODE(os.stat(path).st_mode))


def _listening(process: psutil.Process) -> set[str]:
    """Return the addresses where a process takes connections."""
    connections = process.net_connections()
    return {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}


# --- Processes of this machine --------------------------------------------------------

# Tries to connect, and to have code run, as another process of the machine does.
STRANGER = """
import asyncio, json, sys
from distributed import Client
from distributed.comm import connect
from distributed.core import send_recv
from distributed.security import Security

given = json.load(sys.stdin)
kinds = {
    "none": Security(),
    "other": Security.temporary(),
    "right": Security(**given["certificates"], require_encryption=True),
}

async def reach(address, kind):
    if kind == "none":
        address = address.replace("tls://", "tcp://")
    try:
        options = kinds[kind].get_connection_args("client")
        comm = await connect(address, timeout=1, **options)
        await send_recv(comm, op="identity", reply=True)
        await comm.close()
        return True
    except OSError:
        return False

async def main():
    pairs = [(a, k) for a in given["addresses"] for k in kinds]
    got = await asyncio.gather(*(reach(*pair) for pair in pairs))
    return {kind: [g for (_, k), g in zip(pairs, got) if k == kind] for kind in kinds}

result = asyncio.run(main())
scheduler = given["addresses"][0]
for address, kind in [(scheduler.replace("tls", "tcp"), "none"), (scheduler, "other")]:
    try:
        Client(address, security=kinds[kind], timeout=1)
    except OSError:
        continue
    result[kind].append("a client")
print(json.dumps(result))
"""


def test_only_the_certificate_connects_to_processes_of_a_cluster():
    with cluster.start(Workers("local", 1)) as client:
        info = client.scheduler_info()
        ((worker, of_worker),) = info["workers"].items()
        addresses = [info["address"], worker, of_worker["nanny"]]
        certificates = {name: getattr(client.security, name) for name in TLS_NAMES}
        result = subprocess.run(
            [sys.executable, "-c", STRANGER],
            input=json.dumps({"addresses": addresses, "certificates": certificates}),
            capture_output=True,
            text=True,
        )
        assert client.submit(int, "5").result() == 5
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "none": [False] * 3,
        "other": [False] * 3,
        "right": [True] * 3,
    }


def test_a_local_cluster_is_of_this_machine_and_has_no_pages():
    with cluster.start(Workers("local", 1)) as client:
        this = psutil.Process()
        for process in (this, *this.children(recursive=True)):
            assert _listening(process) <= {"127.0.0.1"}
        port = client.cluster.scheduler.http_server.port
        for page in ("status", "health", "info/main/workers.html", "json/counts.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}")


def test_scratch_files_lie_in_a_private_folder_that_goes(shared_tmp):
    with cluster.start(Workers("local", 1)) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        (folder,) = shared_tmp.glob("espnet_lenbias-*")
        assert _mode(folder) == "0o700"
        assert Path(worker["local_directory"]).is_relative_to(folder)
        for paths in (sys.path, *client.run(lambda: __import__("sys").path).values()):
            scratch = [Path(p) for p in paths if "dask-scratch-space" in p]
            assert any(p.is_relative_to(folder) for p in scratch)
            assert shared_tmp / "dask-scratch-space" not in scratch
        assert not list((shared_tmp / "dask-scratch-space").iterdir())
    assert [path.name for path in shared_tmp.iterdir()] == ["dask-scratch-space"]


def test_a_folder_of_the_config_is_used(shared_tmp, tmp_path):
    mine = tmp_path / "mine"
    workers = Workers("local", 1, {"local_directory": str(mine)})
    with cluster.start(workers) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        assert Path(worker["local_directory"]).is_relative_to(mine)


@pytest.mark.parametrize(
    "where, config, pages",
    [
        ("local", {}, {"dashboard": False, "dashboard_address": "127.0.0.1:0"}),
        ("local", {"dashboard_address": ":8787"}, {}),
        (
            "slurm",
            {"scheduler_options": {"interface": "ib0"}},
            {
                "interface": "ib0",
                "dashboard": False,
                "dashboard_address": "127.0.0.1:0",
            },
        ),
        (
            "slurm",
            {"scheduler_options": {"dashboard_address": ":8787"}},
            {"dashboard_address": ":8787"},
        ),
    ],
)
def test_pages_are_off_unless_they_are_asked_for(
    where, config, pages, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with private_options(where, config) as options:
        name = "scheduler_kwargs" if where == "local" else "scheduler_options"
        assert options[name] == pages
    assert not list(tmp_path.iterdir())


# --- Job queues -----------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, "own"])
def test_a_job_gets_certificates_and_a_folder_of_its_own(
    given, slurm, shared_tmp, tmp_path, monkeypatch
):
    shared = tmp_path / "with space"
    for folder in (shared, shared / "own"):
        folder.mkdir()
    monkeypatch.chdir(shared)
    config = {"memory": "1GB"}
    if given is not None:
        config["shared_temp_directory"] = given
    with cluster.start(Workers("slurm", 1, config)) as client:
        (certificates,) = (shared / (given or "")).glob(".espnet_lenbias-*")
        assert _mode(certificates) == "0o700"
        script = slurm.with_name("sbatch.job")
        assert _mode(script) == "0o600"  # as it was handed over
        text = script.read_text()
        assert "PRIVATE KEY" not in text
        assert " tls://" in text
        for option in ("ca-file", "cert", "key"):
            (path,) = certificates.glob(f"*_{option.replace('-', '_')}.pem")
            assert _mode(path) == "0o600"
            assert f" --tls-{option} '{path}'" in text
        assert len(list(certificates.iterdir())) == 3

        scheduler = client.cluster.scheduler
        assert scheduler.address.startswith("tls://")
        assert scheduler.http_server.address == "127.0.0.1"

        ((address, worker),) = client.scheduler_info()["workers"].items()
        assert address.startswith("tls://") and worker["nanny"].startswith("tls://")
        scratch = Path(worker["local_directory"]).parents[1]
        assert scratch.parent == shared_tmp
        assert _mode(scratch) == "0o700"
        pages = client.run(lambda dask_worker: dask_worker.http_server.address)
        assert list(pages.values()) == ["127.0.0.1"]
        jobs = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        jobs += jobs[0].parents()
    psutil.wait_procs([p for p in jobs if "--tls-key" in _command(p)], timeout=60)
    assert not certificates.exists()
    assert [path.name for path in shared_tmp.iterdir()] == ["dask-scratch-space"]
    assert not list((tmp_path / "elsewhere").iterdir())


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_job_uses_the_folder_of_the_config(slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {"memory": "1GB", "local_directory": str(tmp_path / "mine")}
    with cluster.start(Workers("slurm", 1, config)) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        assert Path(worker["local_directory"]).is_relative_to(tmp_path / "mine")


# --- A scheduler that is running already ----------------------------------------------


def test_a_scheduler_without_encryption_is_reported(caplog):
    caplog.set_level(logging.WARNING)
    with (
        LocalCluster(1, processes=False, protocol="tcp", dashboard_address=None) as c,
        cluster.start(Workers(c.scheduler_address)),
    ):
        pass
    warnings = [r.getMessage() for r in caplog.records if r.module == "workers"]
    (warning,) = warnings
    assert "its connections are not encrypted" in warning


def test_certificates_of_another_cluster_are_refused(tmp_path, monkeypatch):
    other = Security.temporary()
    config = {}
    for name in TLS_NAMES:
        config[name] = str(tmp_path / name)
        (tmp_path / name).write_text(getattr(other, name))
    with cluster.start(Workers("local", 1)) as client:
        import dask

        address = client.scheduler.address
        refused = pytest.raises(cluster.ClusterError, match="cluster: tls://127")
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            refused,
            cluster.start(Workers(address, config=config)),
        ):
            pass
