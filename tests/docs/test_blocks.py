"""Every block of the README, of CONTRIBUTING and of docs/ does what it says.

Commands, configs and code run as they stand, in a folder that holds what they name (see
:mod:`tests.docs.workplace`). What takes too long, or needs a recipe or a job queue, is
in a table here with the test that runs it. A block that is neither makes its test fail.
"""

import configparser
import contextlib
import itertools
import os
import re
import shlex
import subprocess
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

from espnet_lenbias import espnet_compat
from espnet_lenbias.options.cluster import choose_workers
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import ASR, S2T
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.options.registry import GROUP
from espnet_lenbias.options.tool_choice import choose_tool
from tests.bundled import bundled
from tests.docs import workplace
from tests.docs.pages import PAGES, ROOT, Block, blocks, make_targets, prose
from tests.releases import RECENT

pytestmark = pytest.mark.slow

# How a command begins that is not run here -> the test that runs such a command.
ELSEWHERE = {
    "python -m espnet_lenbias.bin.asr_inference --config": (
        "tests/decoding/test_asr_inference.py::test_stage_12_of_asr_sh"
    ),
    "python -m espnet_lenbias.bin.s2t_inference": (
        "tests/recipes/test_librispeech.py::test_all_stages_with_a_model_of_owsms_kind"
    ),
    "./run.sh --stage 12 --stop_stage 13": (
        "tests/decoding/test_asr_inference.py::test_stage_12_of_asr_sh"
    ),
    "espnet-lenbias segment": (
        "tests/decoding/test_cutting.py::test_a_recording_is_cut_block_by_block"
    ),
    "./run.sh --audio": (
        "tests/recipes/test_whisper.py::test_from_a_folder_to_tables_and_again"
    ),
    "espnet-lenbias decode --nj 8": (
        "tests/decoding/test_cluster.py"
        "::test_a_run_through_all_mishaps_writes_what_one_process_does"
    ),
    ".venv/bin/espnet-lenbias decode --nj 2": (
        "tests/decoding/test_cluster.py"
        "::test_a_run_that_was_interrupted_goes_on_and_writes_what_one_process_does"
    ),
    "espnet-lenbias decode --nj 40 --cluster slurm": (
        "tests/decoding/test_cluster_jobs.py"
        "::test_workers_are_jobs_and_lost_jobs_are_replaced"
    ),
}

CLUSTER_OPTIONS = ("cluster", "cluster_config")

# How blocks begin that are to be looked at, not run.
PICTURES = ("audio -> inference object", "p_end(N) = ", "p(len = N) = ", "log p(text, ")

# What only Sphinx reads, in `make docs`.
DIRECTIVES = ("{toctree}", "{eval-rst}")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the folder of a page; any tag of the model zoo is a bundled model."""
    workplace.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", workplace.path_variable(tmp_path))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    )
    files = model_files(str(bundled("asr_transformer")))
    monkeypatch.setattr(espnet_compat, "download_pretrained", lambda tag: files)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks(page, folder):
    if page.name == "CONTRIBUTING.md":  # whose commands run this very suite
        workplace.replace_python(folder)
    reader = Reader(folder)
    for block in blocks(page):
        try:
            reader.read(block)
        except BaseException as e:
            e.add_note(f"in the block at {block.place}")
            raise
    for result in folder.glob("**/1best_recog/text"):
        assert "2005-20050-0003 NINETEEN BOOTS\n" in result.read_text()


class Reader:
    """Does what the blocks of a page say, one after the other."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.names: dict = {}  # of the page's Python blocks, which share them
        self.printed: str | None = None  # by the block before

    def read(self, block: Block) -> None:
        printed, self.printed = self.printed, None
        if block.language == "bash":
            self.printed = self.bash(block.text)
        elif block.language == "text":
            assert printed is not None, "there is no command before it"
            assert_same_output(printed, block.text)
        elif block.language == "python":
            self.python(block)
        elif block.language == "yaml":
            self.yaml(block.text)
        elif block.language == "ini":
            config = configparser.ConfigParser()
            config.read_string(block.text)
            assert config["options.entry_points"].keys() == {GROUP}
        elif block.language == "bibtex":
            assert_cited(block.text)
        elif block.language == "":
            assert block.text.startswith(PICTURES), "is it a command?"
        else:
            assert block.language in DIRECTIVES, "what is it?"

    def bash(self, text: str) -> str | None:
        """Run a block; return what it has printed, or None if a test runs it."""
        known = [self.runs_elsewhere(command) for command in commands(text)]
        if all(known):
            return None
        assert not any(known), "commands that run here and others in one block"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text.replace("/tmp/", "tmp/")],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def runs_elsewhere(self, command: str) -> bool:
        """Tell whether a command is in the table; verify what can be verified of it."""
        words = shlex.split(command)
        if words[0] == "make":
            assert words[1] in make_targets()
            return True
        if words[:2] == ["pip", "install"]:
            for requirement in words[2:]:
                assert_known_extras(requirement)
            return True
        known = [test for start, test in ELSEWHERE.items() if command.startswith(start)]
        for test in known:
            file, _, name = test.partition("::")
            assert f"\ndef {name}(" in (ROOT / file).read_text(), f"no test {test}"
        if known:
            verify_options(words)
        return bool(known)

    def python(self, block: Block) -> None:
        """Run a block; texts that it has recognised must be right."""
        code = compile(block.text, block.place, "exec")
        with contextlib.redirect_stdout(None):
            exec(code, self.names)
        right = list(workplace.TEXTS.values())
        assert self.names.get("text", right[0]) == right[0]
        assert self.names.get("texts", right) == right

    def yaml(self, text: str) -> None:
        """Give a config to what reads it; write it where its first line says."""
        config = yaml.safe_load(text)
        if "model" in config:
            self.espnet3(config)
            return
        name = re.match(r"# (\S+\.yaml)\n", text)
        assert name, "the first line of a config says where it is: # conf/name.yaml"
        path = self.folder / name[1]
        path.write_text(text)
        if name[1] == "slurm.yaml":
            assert choose_workers(2, "slurm", str(path)).config == config
            return
        if name[1] == "scheduler.yaml":
            for file in filter(lambda value: isinstance(value, str), config.values()):
                (self.folder / file).parent.mkdir(exist_ok=True)
                (self.folder / file).touch()
            assert choose_workers(None, "node17:8786", str(path)).config == config
            return
        data = "dump/raw/test_clean/wav.scp,speech,sound"
        required = ["--output_dir", "x", "--data_path_and_name_and_type", data]
        args = parse(get_parser(ASR.module), ["--config", str(path), *required])
        assert {key: getattr(args, key) for key in config} == config

    def espnet3(self, config: dict) -> None:
        """Build the model of an ESPnet3 recipe and recognise an utterance."""
        if not RECENT:
            return  # ESPnet 202511 comes without ESPnet3
        import soundfile
        from espnet3.systems.base.inference_provider import InferenceProvider

        config = {"exp_dir": str(self.folder / "exp" / "asr"), "device": "cpu"} | config
        model = InferenceProvider.build_model(config)
        (text, *_), *_ = model(soundfile.read(self.folder / "speech.flac")[0])
        assert text == "NINETEEN BOOTS"


def commands(text: str) -> list[str]:
    """Return the lines of a shell script, continued ones joined."""
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line.strip()]


def verify_options(command: list[str]) -> None:
    """Verify the options of a command that decodes, and that its files are there."""
    given = next((i for i, word in enumerate(command) if word.startswith("--")), 0)
    options = dict(zip(command[given::2], command[given + 1 :: 2], strict=True))
    tool = ASR
    if Path(command[0]).name == "espnet-lenbias" and command[1] == "decode":
        nj, *other = (options.pop(f"--{o}", None) for o in ("nj", *CLUSTER_OPTIONS))
        assert choose_workers(int(nj), *other) is not None
        tool = choose_tool(command)
    elif "espnet_lenbias.bin.s2t_inference" in command:
        tool = S2T
    elif command[0] != "python":
        return
    parse(get_parser(tool.module), [word for o in options.items() for word in o])


def assert_known_extras(requirement: str) -> None:
    """Verify the extras of a requirement: of this package ("."), or of ESPnet."""
    name, _, extras = requirement.rstrip("]").partition("[")
    if name == "espnet" and not RECENT:
        return  # ESPnet 202511 has other extras, and no ESPnet3 that needs them
    if extras:
        package = {".": "espnet_lenbias"}.get(name, name)
        assert set(extras.split(",")) <= set(
            metadata(package).get_all("Provides-Extra")
        )


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

# What ESPnet 202511 prints on its own, where 202611 writes it to the log.
_OF_ESPNET = re.compile(r"^Failed to import Flash Attention.*\n", re.MULTILINE)


def assert_same_output(printed: str, shown: str) -> None:
    """Verify that the same is shown; last digits of numbers depend on the machine."""
    printed, shown = _OF_ESPNET.sub("", printed).strip(), shown.strip()
    assert _NUMBER.sub("0", printed) == _NUMBER.sub("0", shown)
    numbers = [[float(n) for n in _NUMBER.findall(text)] for text in (printed, shown)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2e-3)


def assert_cited(bibtex: str) -> None:
    """Verify that a reference is that of CITATION.cff."""
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    assert paper["title"] in bibtex
    assert str(paper["year"]) in bibtex
    assert paper["collection-title"] in bibtex


# --- The test itself ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("bash", "exit 3\n"),
        ("bash", "make nothing-of-that-name\n"),
        ("bash", 'pip install ".[nothing]"\n'),
        ("python", "1 / 0\n"),
        ("python", "text = 'NINETEEN BOATS'\n"),
        ("yaml", "search: explicit_length\n"),
        ("yaml", "# conf/x.yaml\nsearch: explicit_lenth\n"),
        ("yaml", "# slurm.yaml\nqeue: main\n"),
        ("text", "the output of nothing\n"),
        ("", "rm -r exp\n"),
        ("fortran", "STOP\n"),
    ],
)
def test_a_block_that_does_not_do_what_it_says(language, text, folder):
    with pytest.raises((AssertionError, ArithmeticError, ValueError, SystemExit)):
        Reader(folder).read(Block("here", language, text))


def test_output_that_differs():
    assert_same_output("score -0.1701\n", "score -0.1699")
    for shown in ("score -0.175", "scores -0.170", "score -0.170 0.1"):
        with pytest.raises(AssertionError):
            assert_same_output("score -0.170", shown)


def test_no_block_is_indented():
    """Such a block would have no language, and no test."""
    for page in PAGES:
        lines = prose(page).splitlines()
        for before, line in itertools.pairwise(lines):
            assert before or not line.startswith("    "), f"{page}: {line}"
