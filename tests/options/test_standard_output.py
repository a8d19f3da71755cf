"""Standard streams that are closed."""

import subprocess
import sys

import pytest

CODE = """
import os, sys
from espnet_lenbias.options.standard_output import reader_may_go

def main():
    with reader_may_go(), open({path!r}, "w") as results:
        os.write(1, b"from a library")
        os.write(2, b"from a library")
        print("said", file=sys.stderr)
        print("said")
        sys.stdin.read()
        results.write("results")

sys.exit(main())
"""


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "<&- 2>&-", "2>&-", ">&-", ""])
def test_results_are_not_mixed_with_what_is_said(closed, tmp_path):
    """A file that is opened gets the lowest number that is free: that of a stream."""
    path = tmp_path / "results"
    script = tmp_path / "script.py"
    script.write_text(CODE.format(path=str(path)))
    command = f"{sys.executable} {script} {closed}"
    done = subprocess.run(
        ["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    assert done.returncode == 0
    assert path.read_text() == "results"
