"""How threads wait: as the environment says, else without keeping their cores busy."""

import os
import subprocess
import sys

import pytest

from espnet_lenbias.bin import asr_inference

# no model is named, so it ends before one is loaded
COMMAND = ["--output_dir", "out", "--data_path_and_name_and_type"]


@pytest.mark.parametrize(
    "before, after", [(None, "passive"), ("active", "active"), ("PASSIVE", "PASSIVE")]
)
def test_the_environment_comes_first(before, after, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wav.scp").write_text("u u.wav\n")
    monkeypatch.setenv("OMP_WAIT_POLICY", before or "")  # restored at the end
    if before is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    with pytest.raises(SystemExit):
        asr_inference.main([*COMMAND, "wav.scp,speech,sound"])
    assert os.environ["OMP_WAIT_POLICY"] == after


def test_it_is_set_before_torch_is_there():
    code = """
import sys
from espnet_lenbias.decoding import drop_in, explain
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
