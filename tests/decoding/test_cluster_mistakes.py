"""Mistakes in the options of a cluster are named before any worker starts."""

import subprocess
import sys

import pytest

from espnet_lenbias import cli
from espnet_lenbias.decoding.cluster import command as decode_parallel
from tests.decoding.cluster_runs import decode_options
from tests.tool_models import fails


def test_a_mistake_that_workers_find_is_one_line(
    transformer_model, rnn_model, wav_scp, tmp_path
):
    options = decode_options(transformer_model, str(tmp_path / "out"))
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
        (["--cluster", ""], "cluster: there is no ''"),
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
    options = decode_options(transformer_model, "out", *options)
    error = fails(capsys, cli.main, ["decode", *options])
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
    options = decode_options(transformer_model, "out", *cluster_options)
    error = fails(capsys, cli.main, ["decode", *options])
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
