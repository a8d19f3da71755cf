"""Files of a model that cannot be loaded."""

import os
import shutil
import zipfile
from datetime import timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from espnet_lenbias import OptionError, Speech2Text
from espnet_lenbias.bin import asr_inference
from espnet_lenbias.inference.model_loading import checkpoints_problem
from tests.conftest import TOKENS


class RunsCode:
    """What unpickling it would do must not happen."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def _spoil(kind: str, path: Path) -> None:
    if kind == "text":
        path.write_text("model: 1\n")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    elif kind == "code":
        torch.save({"a": RunsCode(path.parent / "was run")}, path)
    elif kind == "old code":
        model = {"a": RunsCode(path.parent / "was run")}
        torch.save(model, path, _use_new_zipfile_serialization=False)


KINDS = {
    "text": "is no checkpoint of torch, or a damaged one: ",
    "empty": "is no checkpoint of torch, or a damaged one: ",
    "cut": "is no checkpoint of torch, or a damaged one: ",
    "code": "holds more than parameters, and torch does not load what could run code",
    "old code": "is no checkpoint of torch, or a damaged one: ",
}


@pytest.fixture
def spoilt(transformer_model, tmp_path):
    """Return a model's two files, copied."""
    weights, config = tmp_path / "model.pth", tmp_path / "config.yaml"
    shutil.copy(transformer_model.weights, weights)
    shutil.copy(transformer_model.config, config)
    return {"asr_train_config": str(config), "asr_model_file": str(weights)}


@pytest.mark.parametrize("kind, message", KINDS.items())
@pytest.mark.parametrize("release_runs_code", [False, True])
def test_a_model_file_that_torch_does_not_load(
    kind, message, release_runs_code, spoilt, monkeypatch
):
    if release_runs_code:
        _run_what_checkpoints_say(monkeypatch)
    path = Path(spoilt["asr_model_file"])
    _spoil(kind, path)
    with pytest.raises(OptionError) as e:
        Speech2Text(**spoilt, search="simple", ctc_weight=0.0)
    assert str(e.value).startswith(f"asr_model_file: {path} {message}")
    assert "\n" not in str(e.value)
    assert not (path.parent / "was run").exists()


def _run_what_checkpoints_say(monkeypatch) -> None:
    """Have ESPnet load checkpoints as 202511 does."""
    monkeypatch.setattr(
        "espnet2.tasks.abs_task.safe_torch_load",
        partial(torch.load, weights_only=False),
        raising=False,
    )


@pytest.mark.parametrize("time", ["", timedelta(1)], ids=["202611", "older"])
@pytest.mark.parametrize("key", ["asr_model_file", "lm_file"])
def test_the_state_of_a_training(key, time, spoilt, tmp_path, lm_of_nothing):
    # as espnet2/train/trainer.py saves it
    state = {
        "model": torch.load(spoilt["asr_model_file"]),
        "reporter": {"stats": {1: {"train": {"time": time}}}, "epoch": 1},
        "optimizers": [{"state": {}, "param_groups": []}],
        "schedulers": [None],
        "scaler": None,
    }
    path = tmp_path / "checkpoint.pth"
    torch.save(state, path)
    with pytest.raises(OptionError) as e:
        Speech2Text(**{**spoilt, **lm_of_nothing, key: str(path)}, search="simple")
    assert str(e.value) == (
        f"{key}: {path} is the state that a training goes on from, with the parameters "
        "below `model`: give what the training has saved of the model, such as "
        "valid.acc.ave.pth"
    )


@pytest.fixture
def lm_of_nothing(spoilt, tmp_path):
    """Return the files of a language model; the parameters are of another model."""
    config = tmp_path / "lm.yaml"
    config.write_text(yaml.safe_dump({"lm": "transformer", "token_list": TOKENS}))
    return {"lm_train_config": str(config), "lm_file": spoilt["asr_model_file"]}


def test_parameters_below_a_name(spoilt):
    path = spoilt["asr_model_file"]
    torch.save({"args": {"lr": 1}, "net": torch.load(path)}, path)
    with pytest.raises(OptionError) as e:
        Speech2Text(**spoilt, search="simple", ctc_weight=0.0)
    assert str(e.value) == (
        f"asr_model_file: {path} holds no parameters itself, but below `net`: give the "
        "state_dict() of a model"
    )


def test_all_checkpoints_are_looked_at(spoilt, tmp_path):
    lm = tmp_path / "lm.pth"
    _spoil("code", lm)
    options = {**spoilt, "lm_file": str(lm), "ngram_file": "no checkpoint"}
    assert checkpoints_problem(options).startswith(f"lm_file: {lm} holds more than")
    assert not (tmp_path / "was run").exists()


def test_a_flipped_bit_is_found(spoilt):
    path = Path(spoilt["asr_model_file"])
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as parts:
        largest = max(parts.infolist(), key=lambda part: part.file_size)
    # beyond the header of that part, in the middle of its numbers
    content[largest.header_offset + 200 + largest.file_size // 2] ^= 1
    path.write_bytes(content)
    message = f"^asr_model_file: {path} is damaged: the checksum of .*data/"
    with pytest.raises(OptionError, match=message):
        Speech2Text(**spoilt, search="simple", ctc_weight=0.0)


def test_an_older_checkpoint_is_loaded(spoilt, monkeypatch):
    _run_what_checkpoints_say(monkeypatch)
    path = spoilt["asr_model_file"]
    torch.save(torch.load(path), path, _use_new_zipfile_serialization=False)
    Speech2Text(**spoilt, search="simple", ctc_weight=0.0)


def test_a_text_file_as_a_language_model(spoilt, tmp_path):
    config = tmp_path / "lm.yaml"
    config.write_text(yaml.safe_dump({"lm": "transformer", "token_list": TOKENS}))
    options = {"lm_train_config": str(config), "lm_file": str(config)}
    with pytest.raises(OptionError, match=f"^lm_file: {config} is no checkpoint of"):
        Speech2Text(**spoilt, **options, search="simple", ctc_weight=0.0)


@pytest.mark.parametrize("search", ["espnet", "simple"])
def test_a_missing_file_that_the_config_names(search, spoilt):
    config = Path(spoilt["asr_train_config"])
    options = yaml.safe_load(config.read_text())
    options |= {"normalize": "global_mvn", "normalize_conf": {"stats_file": "gone.npz"}}
    config.write_text(yaml.safe_dump(options))
    with pytest.raises(OptionError) as e:
        Speech2Text(**spoilt, search=search, ctc_weight=0.0)
    assert str(e.value) == (
        f"a file of the model cannot be read (named in {config}?): gone.npz: No such "
        "file or directory"
    )


def _text(path):
    path.write_text("mean 0.5\n")


def _cut(path):
    np.savez(path, count=10, sum=np.zeros(20), sum_square=np.ones(20))
    path.write_bytes(path.read_bytes()[:-100])


def _other_names(path):
    np.savez(path, mean=np.zeros(20))


@pytest.mark.parametrize("write", [_text, _cut, Path.touch, _other_names])
@pytest.mark.parametrize("search", ["espnet", "simple"])
def test_statistics_that_are_none(search, write, spoilt, tmp_path):
    config, stats = Path(spoilt["asr_train_config"]), tmp_path / "stats.npz"
    options = yaml.safe_load(config.read_text())
    options |= {"normalize": "global_mvn", "normalize_conf": {"stats_file": str(stats)}}
    config.write_text(yaml.safe_dump(options))
    write(stats)
    with pytest.raises(OptionError) as e:
        Speech2Text(**spoilt, search=search, ctc_weight=0.0)
    assert str(e.value).startswith(
        f"asr_train_config {config}: normalize_conf: stats_file: {stats} is no numpy file"
    )


@pytest.mark.parametrize("content", [b"garbage", b"", None])
@pytest.mark.parametrize("search", ["espnet", "simple"])
def test_word_pieces_that_are_none(search, content, spoilt, tmp_path):
    path = tmp_path / "bpe.model"
    if content is not None:
        path.write_bytes(content)
    options = {"token_type": "bpe", "bpemodel": str(path), "ctc_weight": 0.0}
    with pytest.raises(OptionError, match=f"^bpemodel: {path} is not there, or is no"):
        Speech2Text(**spoilt, **options, search=search)


def test_the_tool_ends_with_one_line(spoilt, wav_scp, tmp_path, capsys):
    _spoil("text", Path(spoilt["asr_model_file"]))
    options = [word for key, value in spoilt.items() for word in (f"--{key}", value)]
    data = f"{wav_scp},speech,sound"
    options += ["--data_path_and_name_and_type", data, "--search", "simple"]
    with pytest.raises(SystemExit) as stop:
        asr_inference.main([*options, "--output_dir", str(tmp_path / "out")])
    assert stop.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"error: asr_model_file: {spoilt['asr_model_file']} is no checkpoint" in last
