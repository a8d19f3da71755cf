"""Memory that is free again stays with the process, so that no page is made anew."""

import subprocess
import sys

import pytest

# Makes and lets go of three times 24 MB; prints how many pages fifty times take.
CODE = """
import resource
import numpy as np
from espnet_lenbias.options.freed_memory import keep_freed_memory
{first}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step():
    arrays = [np.ones(3 * 2**20) for _ in range(3)]
for _ in range(5):
    step()
before = faults()
for _ in range(50):
    step()
print(faults() - before)
"""


def pages(first: str) -> int:
    command = [sys.executable, "-c", CODE.format(first=first)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's")
def test_memory_is_kept():
    # one array alone has 6144 pages of 4 KiB
    assert pages("keep_freed_memory()") < 6144 < pages("import ctypes")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_nothing_is_asked(platform, monkeypatch):
    from espnet_lenbias.options import freed_memory

    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(freed_memory.ctypes, "CDLL", None)
    freed_memory.keep_freed_memory()


def test_another_c_library(monkeypatch):
    from espnet_lenbias.options import freed_memory

    monkeypatch.setattr(freed_memory.ctypes, "CDLL", lambda _: object())
    freed_memory.keep_freed_memory()
