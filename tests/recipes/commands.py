"""Commands of recipes, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path


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
