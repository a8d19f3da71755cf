"""Archives that must not be unpacked, each with one thing wrong."""

import stat
import time
import zipfile

import pytest
import yaml

from espnet_lenbias.options import model_archive
from espnet_lenbias.options.model_archive import (
    check_members,
    expanded_size,
    files_within,
)
from tests.bundled import bundled


def _zip(folder, members):
    path = folder / "model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return path


@pytest.mark.parametrize("name", ["asr_transformer", "asr_rnn"])
def test_the_bundled_models_are_fine(name, tmp_path):
    check_members(bundled(name), tmp_path)


@pytest.mark.parametrize("name", ["../x.pth", "exp/../../x.pth", "/x.pth", "..\\x.pth"])
def test_a_member_outside_of_the_folder(name, tmp_path):
    path = _zip(tmp_path, {"meta.yaml": "files: {}"})
    with zipfile.ZipFile(path, "a") as packed:
        info = zipfile.ZipInfo("x")
        info.filename = name
        packed.writestr(info, "")
    with pytest.raises(ValueError, match="x.pth' would be unpacked outside"):
        check_members(path, tmp_path)


def test_a_link(tmp_path):
    link = zipfile.ZipInfo("exp/config.yaml")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = _zip(tmp_path, {link: "/etc/passwd"})
    with pytest.raises(ValueError, match="'exp/config.yaml' is a link"):
        check_members(path, tmp_path)


def test_much_from_little(tmp_path):
    path = _zip(tmp_path, {"exp/model.pth": bytes(2**25)})
    with pytest.raises(
        ValueError, match=r"'exp/model.pth' unpacks from \d+ to 33554432"
    ):
        check_members(path, tmp_path)


def test_more_than_there_is_room_for(tmp_path, monkeypatch):
    path = _zip(tmp_path, {"a": bytes(600), "b": bytes(500)})
    monkeypatch.setattr(model_archive, "_MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="unpacks to 1100 bytes.* room for 1000"):
        check_members(path, tmp_path)


@pytest.mark.parametrize("name", [".lock", ".files.json", "exp/.files.json-0"])
def test_names_of_the_cache_itself(name, tmp_path):
    path = _zip(tmp_path, {"meta.yaml": "files: {}", name: "{}"})
    with pytest.raises(ValueError, match=f"'{name}' has a name that the cache"):
        check_members(path, tmp_path)


def test_a_file_in_the_place_of_a_folder(tmp_path):
    path = _zip(tmp_path, {"exp": "x", "exp/a/model.pth": "x"})
    with pytest.raises(ValueError, match="'exp' is a file, and the folder of 'exp/a"):
        check_members(path, tmp_path)


def test_more_files_than_a_model_has(tmp_path, monkeypatch):
    path = _zip(tmp_path, {str(i): "" for i in range(11)})
    monkeypatch.setattr(model_archive, "_MOST_MEMBERS", 10)
    with pytest.raises(ValueError, match="holds 11 files, which no model does"):
        check_members(path, tmp_path)


def test_more_yaml_than_a_model_has(tmp_path, monkeypatch):
    path = _zip(tmp_path, {f"{i}.yaml": "a" * 100 for i in range(11)})
    monkeypatch.setattr(model_archive, "_MOST_YAML_BYTES_TOGETHER", 1000)
    with pytest.raises(ValueError, match="holds yaml files of 1100 bytes"):
        check_members(path, tmp_path)


def test_their_size_is_known_before_any_is_read(tmp_path, monkeypatch):
    path = _zip(tmp_path, {f"{i}.yaml": "[" * 100 for i in range(11)})
    monkeypatch.setattr(model_archive, "_MOST_YAML_BYTES_TOGETHER", 1000)
    with pytest.raises(ValueError, match="holds yaml files of 1100 bytes"):
        check_members(path, tmp_path)


@pytest.mark.parametrize("sign", ["[", "- ", "{a: "])
def test_values_within_values(sign, tmp_path):
    path = _zip(tmp_path, {"meta.yaml": sign * 20000})
    with pytest.raises(ValueError, match="'meta.yaml' is no yaml file that can be re"):
        check_members(path, tmp_path)


def test_aliases_of_aliases(tmp_path):
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
    path = _zip(tmp_path, {"exp/config.yaml": "\n".join(lines)})
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"'exp/config.yaml' holds \d+ values"):
        check_members(path, tmp_path)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [1", "while parsing"),
        ("a: 2024-02-30", "day is out of range"),
        ("a: &x [*x]", "an alias stands within what it names"),
    ],
)
def test_yaml_that_cannot_be_read(text, why, tmp_path):
    path = _zip(tmp_path, {"exp/config.yaml": text})
    message = f"'exp/config.yaml' is no yaml file that can be read: .*{why}"
    with pytest.raises(ValueError, match=message):
        check_members(path, tmp_path)


def test_what_macos_packs_beside_a_yaml_file_is_none(tmp_path):
    names = ["exp/config.yaml", "exp/._config.yaml", "__MACOSX/exp/._config.yaml"]
    path = _zip(tmp_path, dict.fromkeys(names, b"\0\x05\x16\x07"))
    with pytest.raises(ValueError, match="'exp/config.yaml' is no yaml file"):
        check_members(path, tmp_path)
    path = _zip(tmp_path, {**dict.fromkeys(names[1:], b"\0\x05"), names[0]: "a: 1"})
    assert set(check_members(path, tmp_path)) == set(names)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 0),
        ("a", 1),
        ("[a, b]", 3),
        ("{a: [b, c]}", 5),
        ("[&x [a, b], *x]", 7),
        ("&x [a, *x]", 2),
    ],
)
def test_size_with_aliases_written_out(text, size):
    assert expanded_size(yaml.compose(text)) == size


def test_files_are_those_of_the_archive(tmp_path):
    path = _zip(tmp_path, {"exp/config.yaml": "", "abs/model.pth": ""})
    meta = {
        "yaml_files": {"asr_train_config": "exp/config.yaml"},
        "files": {"asr_model_file": "/abs/model.pth"},  # as pack notes it
    }
    assert files_within(meta, path, tmp_path) == {
        "asr_train_config": f"{tmp_path}/exp/config.yaml",
        "asr_model_file": f"{tmp_path}/abs/model.pth",
    }
    meta["files"]["asr_model_file"] = "/etc/passwd"
    with pytest.raises(ValueError, match="'/etc/passwd' as asr_model_file"):
        files_within(meta, path, tmp_path)
