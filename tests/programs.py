"""Programs that some tests run."""

import os
import shutil
from pathlib import Path

import pytest

# Debian keeps it away from other programs' names.
SCLITE = Path(shutil.which("sclite") or "/usr/lib/sctk/bin/sclite")


def needs_programs(are_there: bool, packages: str) -> pytest.MarkDecorator:
    """Return the mark of tests that are skipped where their programs are missing.

    With REQUIRE_PROGRAMS=1 in the environment that is an error instead.

    Args:
        are_there: Whether they are there.
        packages: What they are called in Debian and Ubuntu.
    """
    where = f"needs `apt-get install {packages}`"
    if not are_there and os.environ.get("REQUIRE_PROGRAMS") == "1":
        raise RuntimeError(where)
    return pytest.mark.skipif(not are_there, reason=where)


needs_sclite = needs_programs(SCLITE.exists(), "sctk")
