"""Which options make a run another one, and which are for its speed or its place."""

import argparse
import os

import pytest
import yaml

from espnet_lenbias.options import run_options as run_options_module
from espnet_lenbias.options.data_files import DATA
from espnet_lenbias.options.decoding import get_parser
from espnet_lenbias.options.espnet_tools import TOOLS
from espnet_lenbias.options.run_options import described, is_same, run_options

PLACE_AND_SPEED = {"batch_bins", "batch_size", "log_level", "ngpu", "num_workers"}
PLACE_AND_SPEED |= {"config", "output_dir"}
# Utterances and their data are compared one by one; formats are made of the results.
OTHERWISE_COMPARED = {"formats", "key_file", "segments"}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_other_option_counts(tool):
    options = {action.dest for action in get_parser(tool.module)._actions} - {"help"}
    args = argparse.Namespace(**dict.fromkeys(options) | {DATA: []})
    noted = {name for name in run_options(args) if " " not in name}
    assert options - noted == PLACE_AND_SPEED | OTHERWISE_COMPARED


def test_a_file_is_the_same_by_another_path(tmp_path, monkeypatch):
    """One that is read whole from anywhere, a larger one from where it lies."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("a", "sub/a"):
        (tmp_path / name).write_text("x")
    small = [described(p) for p in ("a", "./a", "sub/../a", f"{tmp_path}/a", "sub/a")]
    assert all(is_same(small[0], other) for other in small)
    (tmp_path / "sub/a").write_text("y")
    assert not is_same(small[0], described("sub/a"))

    monkeypatch.setattr(run_options_module, "_READ", 0)
    for name in ("a", "sub/a"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    large = [described(p) for p in ("a", "sub/../a", f"{tmp_path}/a")]
    assert all(is_same(large[0], other) for other in large)
    assert not is_same(large[0], described("sub/a"))
    os.utime(tmp_path / "a", (2, 2))
    assert not is_same(large[0], described("a"))


def test_an_option_that_is_not_there_is_not_set():
    assert is_same(None, described(None)) and is_same(described(None), None)
    assert not is_same(None, described(0)) and not is_same("x", None)


def test_what_is_no_file_is_the_same_as_itself():
    one = "a (1 bytes, sha256 12), b (1 bytes, sha256 34)"
    assert is_same(one, one)
    assert not is_same(one, one.replace("12", "56"))
    assert not is_same("a", "./a")
    assert is_same("0", "0.0") and is_same("{'weight': 1}", "{'weight': 1.0}")
    assert not is_same("0", "0.1") and not is_same("None", "0")
    assert not is_same(None, "a")


def test_files_that_only_the_training_config_names_count(tmp_path, monkeypatch):
    """A BPE model and the statistics that features are normalised by; the config found."""
    monkeypatch.chdir(tmp_path)
    files = ("bpe.model", "tokens.txt", "stats.npz", "config.yaml", "model.pth")
    for name in files:
        (tmp_path / name).write_text("as it was")
    config = {"bpemodel": "bpe.model", "token_list": "tokens.txt", "batch_type": "bpe"}
    config |= {"normalize_conf": {"stats_file": "stats.npz"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    model = {"asr_train_config": None, "asr_model_file": "model.pth"}

    def noted(**options):
        return run_options(argparse.Namespace(**model | options | {DATA: []}))

    was = noted()
    for name in files:
        kept = (tmp_path / name).read_text()
        (tmp_path / name).write_text(kept + "\n")
        now = noted()
        assert [key for key in now if not is_same(was[key], now[key])] == [
            "asr_model_file" if name == "model.pth" else "files of the training"
        ]
        (tmp_path / name).write_text(kept)
    assert noted() == was

    # another model's, not found beside this one's, and nothing where there is none
    assert (
        "config.yaml"
        not in noted(asr_train_config="config.yaml")["files of the training"]
    )
    assert noted(asr_model_file=None)["files of the training"] == "None"
