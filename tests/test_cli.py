"""The command with readers that go, and terminals that cannot show everything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.made import REFERENCES, write_lines, write_system

COMMAND = [
    sys.executable,
    "-c",
    "import sys, espnet_lenbias.cli as c; sys.exit(c.main())",
]


@pytest.fixture
def report(tmp_path):
    """Return the command that reports a folder, one row of which is not finished."""
    texts = {**REFERENCES, "s2-u3": "\u4f60\u597d"}
    write_lines(tmp_path / "data" / "dev" / "text", texts)
    config = {"search": "simple", "beam_size": 4, "row": "\u4f60\u597d"}
    files = {"text": {"s1-u1": "the cat"}}
    write_system(tmp_path / "exp", "a", config, {"dev": files})
    return ["report", str(tmp_path / "exp"), "--data", str(tmp_path / "data")]


def run(command, **environment):
    return subprocess.run(
        [*COMMAND, *command],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("options", [["searches"], ["--help"], ["report", "--help"]])
def test_a_reader_that_goes(options, unbuffered):
    _without_reader([*COMMAND, *options], unbuffered)


@pytest.mark.parametrize(
    "module",
    [
        "espnet_lenbias",
        "espnet_lenbias.bin.asr_inference",
        "espnet_lenbias.bin.asr_inference_streaming",
        "espnet_lenbias.bin.st_inference_streaming",
        "espnet_lenbias.decoding.unchanged_tool espnet2.bin.asr_inference_k2",
    ],
)
def test_a_reader_of_help_that_goes(module):
    _without_reader([sys.executable, "-m", *module.split(), "--help"], "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("name", ["searches", "report"])
def test_a_disk_that_is_full(name, unbuffered, report):
    command = report if name == "report" else [name]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *command],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    assert done.returncode == 2
    said = b"standard output cannot be written: No space left on device\n"
    assert done.stderr.endswith(said) and b"Traceback" not in done.stderr


def _without_reader(command, unbuffered):
    """Run a command that nobody reads the output of: it says nothing of that."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    # 128 + SIGPIPE, as shells have it; argparse takes it for nothing
    assert process.returncode in ([0, 141] if "--help" in command else [141])


def test_a_reader_that_goes_while_a_report_is_made(report, tmp_path):
    with subprocess.Popen(
        [*COMMAND, *report], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 141
    assert (tmp_path / "exp" / "report" / "report.md").exists()


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
    ],
)
def test_signs_that_a_terminal_cannot_show(report, tmp_path, environment):
    out = run(report, **environment)
    assert out.returncode == 0, out.stderr
    assert b"Traceback" not in out.stderr
    assert rb"\u4f60\u597d" in out.stdout
    text = (tmp_path / "exp" / "report" / "report.md").read_text(encoding="utf-8")
    assert "\u4f60\u597d" in text


def test_a_set_whose_name_is_not_of_the_locale(report, tmp_path):
    for folder in (tmp_path / "data", tmp_path / "exp" / "a"):
        (folder / "dev").rename(folder / "\u4f60")
    out = run(report, LC_ALL="C", PYTHONUTF8="0")
    assert out.returncode == 0, out.stderr
    text = (tmp_path / "exp" / "report" / "report.md").read_text(encoding="utf-8")
    assert "- \u4f60: 3 utterances" in text


def test_references_in_another_encoding(report, tmp_path):
    (tmp_path / "data" / "dev" / "text").write_bytes(b"s1-u1 caf\xe9\n")
    out = run(report)
    assert out.returncode == 2
    (line,) = out.stderr.decode().splitlines()
    assert line.startswith("espnet-lenbias report: error: ")
    assert "data/dev/text, line 1 is no text in UTF-8" in line


@pytest.mark.parametrize(
    "command",
    [["--help"], ["explain", "--help"], ["report", "--help"], ["decode", "--help"]],
)
def test_help_without_docstrings(command):
    """As `python -OO` has it."""
    done = run(command, PYTHONOPTIMIZE="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"usage: ")
