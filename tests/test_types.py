"""What type checkers know of names that are imported when they are first used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import espnet_lenbias
from espnet_lenbias import espnet_compat

pytest.importorskip("mypy")

ROOT = Path(__file__).parents[1]
PROGRAM = """\
import espnet_lenbias
from espnet_lenbias import espnet_compat
reveal_type(espnet_lenbias.Speech2Text)
reveal_type(espnet_lenbias.use_search)
reveal_type(espnet_lenbias.OptionError)
espnet_lenbias.Typo
reveal_type(espnet_compat.BeamSearch)
espnet_compat.Typo
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[int, str]:
    """Return what mypy says of the program, by line."""
    program = tmp_path_factory.mktemp("types") / "program.py"
    program.write_text(PROGRAM)
    # What is wrong in the package itself is for `make lint`; they share configuration
    # and cache, which are those of the folder.
    options = ["--follow-imports", "silent", "--no-pretty"]
    command = [sys.executable, "-m", "mypy", *options, str(program)]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line.split(":", 2) for line in out.stdout.splitlines() if ":" in line]
    # of the same program mypy repeats from its cache what it said, with the path of then
    return {
        int(no): text for path, no, text in lines if Path(path).name == program.name
    }


@pytest.mark.slow
def test_a_public_name_has_its_type(said):
    assert 'Revealed type is "def (' in said[3]
    assert said[3].endswith('-> espnet_lenbias.inference.asr.Speech2Text"')
    assert "name: str, *, beam_size: int | None" in said[4]
    assert said[5].endswith('-> espnet_lenbias.errors.OptionError"')


@pytest.mark.slow
def test_a_name_that_is_none_is_an_error(said):
    assert 'error: Module has no attribute "Typo"' in said[6]
    assert 'error: Module has no attribute "Typo"' in said[8]


@pytest.mark.slow
def test_names_of_espnet_are_known_but_not_their_types(said):
    """ESPnet brings no types."""
    assert 'Revealed type is "Any"' in said[7]


def for_type_checkers(path: str) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a file imports for type checkers alone."""
    for block in ast.parse(Path(path).read_text("utf-8")).body:
        if isinstance(block, ast.If):
            for node in ast.walk(block):
                if isinstance(node, ast.ImportFrom):
                    yield from ((str(node.module), alias.name) for alias in node.names)


def test_type_checkers_know_what_is_there():
    homes = {
        (f"espnet_lenbias.{module}", name)
        for name, module in espnet_lenbias._HOMES.items()
    }
    assert set(for_type_checkers(espnet_lenbias.__file__)) == homes
    decoding = {
        (f"{espnet_compat._LAYOUTS[0]}.{module}", name)
        for name, module in espnet_compat._DECODING.items()
    }
    elsewhere = {(module, name) for name, module in espnet_compat._ELSEWHERE.items()}
    assert set(for_type_checkers(espnet_compat.__file__)) == decoding | elsewhere
