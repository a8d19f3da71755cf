"""``python -m espnet_lenbias`` in the place of ``python``."""

import subprocess
import sys

import pytest

from espnet_lenbias import cli
from espnet_lenbias.options.python_options import replaced

ESPNET, OURS = "espnet2.bin.asr_inference", "espnet_lenbias.bin.asr_inference"
K2, UNCHANGED = "espnet2.bin.asr_inference_k2", "espnet_lenbias.decoding.unchanged_tool"


@pytest.mark.parametrize(
    "args, expected",
    [
        (f"-m {ESPNET} --ngpu 0 -m x", f"-m {OURS} --ngpu 0 -m x"),
        (f"-m{ESPNET} --ngpu 0", f"-m{OURS} --ngpu 0"),
        (f"-u -W ignore -X dev -m {ESPNET}", f"-u -W ignore -X dev -m {OURS}"),
        (f"-uWignore -Om {ESPNET}", f"-uWignore -Om {OURS}"),
        (f"--check-hash-based-pycs never -m {ESPNET}", None),
        (f"script.py -m {ESPNET}", f"script.py -m {ESPNET}"),
        (f"-c code -m {ESPNET}", f"-c code -m {ESPNET}"),
        (f"-W -m {ESPNET}", f"-W -m {ESPNET}"),
        ("-m espnet2.bin.asr_train -m x", "-m espnet2.bin.asr_train -m x"),
        *(
            (f"-m espnet2.bin.{name}", f"-m espnet_lenbias.bin.{name}")
            for name in (
                *("st_inference", "mt_inference", "s2t_inference"),
                "st_inference_streaming",
            )
        ),
        ("-Om espnet2.bin.slu_inference", "-Om espnet_lenbias.bin.slu_inference"),
        (f"-m {K2} --ngpu 0", f"-m {UNCHANGED} {K2} --ngpu 0"),
        (f"-Om {K2} -m x", f"-Om {UNCHANGED} {K2} -m x"),
        ("-m espnet2.bin.tts_inference", "-m espnet2.bin.tts_inference"),
        (f"- -m {ESPNET}", f"- -m {ESPNET}"),
        ("-m", "-m"),
        ("-V", "-V"),
    ],
)
def test_only_the_inference_tools_are_replaced(args, expected):
    if expected is None:
        expected = args.replace(ESPNET, OURS)
    assert replaced(args.split()) == expected.split()


def _wrapped(*args: str, python_options=(), **kwargs) -> subprocess.CompletedProcess:
    command = [sys.executable, *python_options, "-m", "espnet_lenbias", *args]
    return subprocess.run(command, capture_output=True, text=True, **kwargs)


def test_code_runs_as_without_the_wrapper():
    code = "import sys; print(sys.argv, sys.flags.optimize); sys.exit(3)"
    out = _wrapped("-c", code, "a b", "-m", python_options=["-O"])
    assert (out.returncode, out.stdout) == (3, "['-c', 'a b', '-m'] 1\n")


@pytest.mark.parametrize("last", ["-Om", "-BOm"])
def test_options_that_are_joined_with_m_are_kept(last):
    code = "import sys; print(sys.flags.optimize)"
    command = [sys.executable, last, "espnet_lenbias", "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert out.stdout == "1\n"


def test_a_script_runs_as_without_the_wrapper(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; print(__name__, sys.path[0], sys.argv[1:])")
    out = _wrapped(str(script), "--help")
    assert (out.returncode, out.stdout) == (0, f"__main__ {tmp_path} ['--help']\n")


def test_a_module_runs_as_without_the_wrapper():
    out = _wrapped("-m", "json.tool", input="[1]")
    assert (out.returncode, out.stdout) == (0, "[\n    1\n]\n")


def test_the_inference_tool_runs_in_espnets_place(tmp_path):
    out = _wrapped("-m", ESPNET, "--search", "exlicit_length", "--output_dir", "x",
                   "--data_path_and_name_and_type", "x,speech,sound")  # fmt: skip
    assert out.returncode == 2
    assert "there is no search 'exlicit_length'; did you mean explicit_" in out.stderr


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_help(args):
    out = _wrapped(*args)
    assert out.returncode == 0
    assert '--python "python3 -m espnet_lenbias"' in out.stdout


def test_searches_lists_options(capsys):
    assert cli.main(["searches"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "espnet",
        "explicit_length",
        "    nbest: null  # a whole number of 1 or more",
        "    score_threshold: null  # a number of 0 or more",
        "    exact_nbest: false  # true or false",
    ]
    assert '    keep_ended: "joint"  # joint or separate' in lines
    assert any(line.startswith("    coverage: null  # {weight: ") for line in lines)
    assert _wrapped("searches").stdout.splitlines() == lines


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_packages_own_commands(command):
    out = _wrapped(command, "--help")
    assert out.returncode == 0
    assert f"usage: espnet-lenbias {command} " in out.stdout


def test_a_tool_without_label_by_label_search_says_so(tmp_path):
    config = tmp_path / "decode.yaml"
    config.write_text("search: explicit_length\n")
    data = tmp_path / "wav.scp"
    data.write_text("utt1 x.wav\n")
    out = _wrapped(
        *("-m", "espnet2.bin.asr_transducer_inference", "--config", str(config)),
        *("--output_dir", "x", "--data_path_and_name_and_type", f"{data},speech,sound"),
    )
    assert out.returncode == 2
    assert (
        "it decodes with the search of a transducer, not label by label" in out.stderr
    )
