"""Packed models and their cache: damaged, hostile, or in nobody's reach."""

import errno
import json
import os
import zipfile
from pathlib import Path

import pytest
import yaml

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options import packed_model
from espnet_lenbias.options.packed_model import check_archive, model_files

META = {
    "yaml_files": {"asr_train_config": "exp/config.yaml"},
    "files": {"asr_model_file": "exp/model.pth"},
}
MEMBERS = {
    "meta.yaml": yaml.safe_dump(META),
    "exp/config.yaml": "token_list: [a]\nstats_file: exp/stats.npz\n",
    "exp/model.pth": "weights " * 1000,
    "exp/stats.npz": "numbers",
}


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "espnet_lenbias"


def _zip(folder: Path, **changes: str) -> Path:
    """Write a packed model; `changes` are made to its meta.yaml, if not a member."""
    path = folder / "model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in (MEMBERS | changes).items():
            packed.writestr(name, text)
    return path


def _says(archive: Path) -> str:
    """Return the one line that ends the use of an archive."""
    with pytest.raises(OptionError) as e:
        model_files(str(archive))
    message = str(e.value)
    assert "\n" not in message
    return message


def test_files_are_below_the_cache(tmp_path, cache):
    files = model_files(str(_zip(tmp_path)))
    (folder,) = cache.iterdir()
    assert files == {
        "asr_train_config": str(folder / "exp/config.yaml"),
        "asr_model_file": str(folder / "exp/model.pth"),
    }
    config = yaml.safe_load(Path(files["asr_train_config"]).read_text())
    assert config["stats_file"] == str(folder / "exp/stats.npz")


@pytest.mark.parametrize(
    "listing", ["", "{", '{"asr_model_file": "/gone"}', "[]", "{}", '{"a": 1}', "\0"]
)
def test_a_damaged_listing_is_written_anew(listing, tmp_path, cache):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    (path,) = cache.glob("*/.files.json")
    path.write_text(listing)
    assert model_files(str(archive)) == files
    assert json.loads(path.read_text()) == files
    assert not list(cache.glob("*/.files-*"))


def test_a_listing_that_leads_elsewhere(tmp_path, cache):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    (path,) = cache.glob("*/.files.json")
    (tmp_path / "other.pth").write_text("x")
    path.write_text(json.dumps({"asr_model_file": str(tmp_path / "other.pth")}))
    assert model_files(str(archive)) == files


def test_a_member_that_does_not_match_its_checksum(tmp_path, cache):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in MEMBERS.items():
            packed.writestr(name, text)
    path.write_bytes(path.read_bytes().replace(b"weights weights", b"weighty weights"))
    said = _says(path)
    assert said.startswith(f"model_tag: {path} cannot be unpacked: ")
    assert "Bad CRC-32 for file 'exp/model.pth'" in said
    assert not list(cache.glob("*/.files.json"))


def test_an_archive_cut_short(tmp_path, cache):
    path = _zip(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    assert _says(path).startswith(f"model_tag: {path} is not a zip archive: ")


def test_an_archive_whose_table_is_damaged(tmp_path):
    path = _zip(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"PK\1\2", b"PK\1\1"))
    with pytest.raises(OptionError, match=f"{path} is not a zip archive"):
        check_archive(path)


def test_a_member_outside_of_the_folder(tmp_path, cache):
    path = _zip(tmp_path, **{"../planted": "x"})
    said = _says(path)
    assert "'../planted' would be unpacked outside of its folder" in said
    assert not list(tmp_path.rglob("planted"))


@pytest.mark.parametrize(
    "text, message",
    [
        ("files: {asr_model_file: /etc/passwd}", "names '/etc/passwd' as asr_model"),
        ("files: {asr_model_file: ../x}", "names '../x' as asr_model_file"),
        ("[1]", "its meta.yaml holds no `name: value` lines"),
        ("", "its meta.yaml holds no `name: value` lines"),
        ("files: {}", "names no files: yaml_files, a mapping of options to members of"),
        ("yaml_files: {}", "archive, is missing"),
        ("yaml_files: {}\nfiles: 5", "archive, is 5"),
        ("yaml_files: {}\nfiles: null", "archive, is None"),
        ("files: [1]\nyaml_files: 1", "archive, is 1"),
        ("yaml_files: {}\nfiles: {a: 5}", "files: 'a': 5 is no option and the name of"),
        ("yaml_files: {1: a}\nfiles: {}", "yaml_files: 1: 'a' is no option and the na"),
        ("a: [1", "'meta.yaml' is no yaml file that can be read: "),
    ],
)
def test_what_the_archive_says_of_its_files(text, message, tmp_path, cache):
    if "asr_model_file" in text:
        text += "\nyaml_files: {}"
    assert message in _says(_zip(tmp_path, **{"meta.yaml": text}))


@pytest.mark.parametrize(
    "code, remedy",
    [(errno.EACCES, "): set XDG_CACHE_HOME"), (errno.ENOSPC, "): make room there, or")],
)
def test_a_cache_that_cannot_be_written(code, remedy, tmp_path, cache, monkeypatch):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(packed_model.espnet_compat, "unpack", refuse)
    archive = _zip(tmp_path)
    said = _says(archive)
    assert f"{archive} cannot be unpacked into the cache {cache}" in said
    assert f"({os.strerror(code)}{remedy}" in said


def test_a_cache_that_is_a_file(tmp_path, cache):
    cache.parent.write_text("")
    assert "set XDG_CACHE_HOME to another folder" in _says(_zip(tmp_path))


def test_a_cache_that_others_keep_need_not_be_written(tmp_path, cache, monkeypatch):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    monkeypatch.setattr(packed_model, "_locked", lambda _: 1 / 0)
    assert model_files(str(archive)) == files
