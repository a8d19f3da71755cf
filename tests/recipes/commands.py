"""Commands of recipes, run as a user runs them, or within this process."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest


def run_in(
    recipe: Path, *command: object, cwd: Path | None = None
) -> subprocess.CompletedProcess:
    """Run a command of a recipe with this Python and this tree.

    Args:
        recipe: Its folder, whose `local` is imported.
        command: The words of the command.
        cwd: Where; in the folder of the recipe unless given.
    """
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd or recipe,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHON": sys.executable,
            "PYTHONPATH": f"{recipe}{os.pathsep}{recipe.parents[1]}",
            "OMP_NUM_THREADS": "1",
        },
    )


@contextlib.contextmanager
def modules_of(recipe: Path) -> Iterator[None]:
    """Have `local` be a recipe's: packages of other recipes have this name, too."""
    package = types.ModuleType("local")
    package.__path__ = [str(recipe / "local")]
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in sys.modules if n.partition(".")[0] == "local"]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "local", package)
        yield
        for name in [n for n in sys.modules if n.startswith("local.")]:
            del sys.modules[name]


def run_here(program: Path, *arguments: object) -> subprocess.CompletedProcess:
    """Run a program of a recipe in this process, which has loaded torch already.

    Args:
        program: A file in the folder of the recipe, or in its `local`.
        arguments: Its arguments.
    """
    said, complained, status = io.StringIO(), io.StringIO(), 0
    recipe = program.parent.parent if program.parent.name == "local" else program.parent
    with (
        modules_of(recipe),
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
    ):
        patch.setattr(sys, "argv", [str(program), *map(str, arguments)])
        try:
            runpy.run_path(str(program), run_name="__main__")
        except SystemExit as e:  # as Python takes it
            status = e.code if isinstance(e.code, int) else int(e.code is not None)
            if isinstance(e.code, str):
                complained.write(f"{e.code}\n")
    return subprocess.CompletedProcess(
        arguments, status, said.getvalue(), complained.getvalue()
    )
