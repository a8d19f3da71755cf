"""Packed models and their cache: damaged, hostile, or in nobody's reach."""

import errno
import json
import os
import shutil
import time
import zipfile
from pathlib import Path

import pytest
import torch
import yaml
from espnet2.main_funcs.pack_funcs import pack, unpack

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options import model_archive, packed_model
from espnet_lenbias.options.packed_model import (
    check_archive,
    check_tag,
    is_archive,
    model_files,
    packed_options,
)
from espnet_lenbias.options.train_config import is_packed_model

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


def test_what_a_model_has_files_for(tmp_path, monkeypatch):
    archive = _zip(tmp_path)
    assert packed_options(archive) == {"asr_train_config", "asr_model_file"}
    # of no more of meta.yaml than a model has, which is asked for before all is verified
    monkeypatch.setattr(model_archive, "_MOST_YAML_BYTES", 50)
    assert packed_options(archive) == set()


def test_a_long_address_is_no_name_of_a_file():
    address = f"https://example.org/model.zip?signature={'0' * 300}"
    check_tag(address)
    assert not is_archive(address)


@pytest.mark.parametrize(
    "listing", ["", "{", '{"asr_model_file": "/gone"}', "[]", "{}", '{"a": 1}', "\0"]
)
def test_a_damaged_listing_is_written_anew(listing, tmp_path, cache):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    (path,) = cache.glob("*/.files.json")
    path.write_text(listing)
    assert model_files(str(archive)) == files
    assert json.loads(path.read_text())["files"] == files
    assert [p.name for p in cache.glob("*/.files*")] == [".files.json"]


def test_a_listing_that_leads_elsewhere(tmp_path, cache):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    (path,) = cache.glob("*/.files.json")
    (tmp_path / "other.pth").write_text("x")
    listing = json.loads(path.read_text())
    listing["files"]["asr_model_file"] = str(tmp_path / "other.pth")
    path.write_text(json.dumps(listing))
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

    monkeypatch.setattr(packed_model, "unpack_members", refuse)
    archive = _zip(tmp_path)
    said = _says(archive)
    assert f"{archive} cannot be unpacked into the cache {cache}" in said
    assert f"({os.strerror(code)}{remedy}" in said


@pytest.mark.parametrize("name", ["exp/model.pth", "exp/config.yaml", "exp/stats.npz"])
@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "a folder", "a pipe"])
def test_a_damaged_file_is_unpacked_anew(name, damage, tmp_path, cache, caplog):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    (folder,) = cache.iterdir()
    path = folder / name
    whole = path.read_bytes()
    if damage == "changed":
        path.write_bytes(whole[:-1] + b"?")
    elif damage == "cut":
        path.write_bytes(whole[:-1])
    else:
        path.unlink()
    if damage == "a folder":
        path.mkdir()
        (path / "x").touch()
    elif damage == "a pipe":
        os.mkfifo(path)
    assert model_files(str(archive)) == files
    assert path.read_bytes() == whole
    (said,) = caplog.messages
    assert said == f"the cache {folder} is damaged ({name}): {archive} is unpacked anew"
    assert model_files(str(archive)) == files
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("name", [".lock", ".files.json", "meta.yaml"])
def test_nothing_is_written_through_a_link_in_the_cache(name, tmp_path, cache):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    Path(files["asr_model_file"]).write_text("")  # it is unpacked anew
    (folder,) = cache.iterdir()
    mine = tmp_path / "mine"
    mine.write_text("dear to me")
    (folder / name).unlink()
    (folder / name).symlink_to(mine)
    if name == ".lock":
        message = f"into the cache {folder} (Too many levels of symbolic links): remove"
        assert message in _says(archive)
    else:
        assert model_files(str(archive)) == files
    assert mine.read_text() == "dear to me"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_stands_in_the_place_of_the_listing(make, tmp_path, cache):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    (listing,) = cache.glob("*/.files.json")
    listing.unlink()
    make(listing)
    assert model_files(str(archive)) == files
    assert listing.is_file()


def test_a_model_that_is_unpacked_first_is_not_damaged(tmp_path, cache, caplog):
    assert model_files(str(_zip(tmp_path)))
    assert not caplog.messages


def test_a_damaged_cache_that_cannot_be_mended(tmp_path, cache, monkeypatch):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    Path(files["asr_model_file"]).write_text("")

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(packed_model, "remove_unpacked", refuse)
    (folder,) = cache.iterdir()
    assert f"(Permission denied): remove {folder}, or set XDG_CACHE" in _says(archive)


def test_many_files_are_unpacked_in_no_time(tmp_path, cache):
    """Each config is looked through once: 5,000 labels times 2,000 files are many."""
    labels = yaml.safe_dump({"token_list": [f"label{i}" for i in range(5000)]})
    members = {f"exp/{i}": "" for i in range(2000)}
    archive = _zip(tmp_path, **members, **{"exp/config.yaml": labels})
    start = time.process_time()
    files = model_files(str(archive))
    assert time.process_time() - start < 25  # 1, and 250 by ESPnet's own `unpack`
    assert Path(files["asr_train_config"]).is_file()


def test_a_model_is_unpacked_as_espnet_does(tmp_path, cache):
    config = {
        "token_list": ["a", "exp/model.pth", "", "."],
        "normalize_conf": {"stats_file": "exp/stats.npz"},
        "init_param": ["./exp//model.pth", "exp/model.pth:encoder", 1, None, True],
        "exp/model.pth": {"no": "exp"},
        "你": 0.5,
    }
    archive = _zip(tmp_path, **{"exp/config.yaml": yaml.safe_dump(config)})
    files = model_files(str(archive))
    (folder,) = cache.iterdir()
    names = [path for path in folder.rglob("*") if path.name[0] != "."]
    ours = {path: path.read_bytes() for path in names if path.is_file()}
    shutil.rmtree(folder)
    assert unpack(archive, folder, use_cache=False) == files
    for path, content in ours.items():
        if path.suffix == ".yaml":
            assert yaml.safe_load(content) == yaml.safe_load(path.read_text("utf-8"))
        else:
            assert content == path.read_bytes()
    assert len(ours) == len(MEMBERS)


def test_a_cache_that_nothing_leads_to(tmp_path, monkeypatch):
    """HOME is not set, and the system does not know the user's number."""

    def refuse():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(packed_model.Path, "home", refuse)
    assert "no home folder for it: set XDG_CACHE_HOME" in _says(_zip(tmp_path))


def test_a_cache_that_is_named_from_here(tmp_path, monkeypatch):
    """Workers go to other folders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    files = model_files(str(_zip(tmp_path)))
    assert Path(files["asr_model_file"]).is_relative_to(tmp_path / "cache")


def test_a_cache_that_is_a_file(tmp_path, cache):
    cache.parent.write_text("")
    assert "set XDG_CACHE_HOME to another folder" in _says(_zip(tmp_path))


def test_a_cache_that_others_keep_need_not_be_written(tmp_path, cache, monkeypatch):
    archive = _zip(tmp_path)
    files = model_files(str(archive))
    monkeypatch.setattr(packed_model, "_locked", lambda _: 1 / 0)
    assert model_files(str(archive)) == files


ENDS = ["tar", "tgz", "tar.gz", "tbz2", "tar.bz2", "txz", "tar.xz", "nothing"]


@pytest.mark.parametrize("end", ENDS)
def test_an_archive_of_another_kind_is_named(end, tmp_path, cache):
    config, weights = tmp_path / "config.yaml", tmp_path / "model.pth"
    config.write_text("token_list: [a]\n")
    torch.save({"a": torch.ones(2)}, weights)  # a zip file, within the other
    packed = tmp_path / f"model.{end}"
    espnets = tmp_path / "model.tar" if end == "nothing" else packed
    pack({"asr_model_file": weights}, {"asr_train_config": config}, espnets)
    espnets.rename(packed)
    with pytest.raises(OptionError) as e:
        model_files(packed)
    assert str(e.value) == (
        f"model_tag: {packed} is a tar archive, and packed models are read from .zip only: "
        "pack the model with --outpath NAME.zip, or unpack it with tar and give its files"
    )
    assert is_packed_model(packed)  # in the place of a config, say
    assert not is_packed_model(weights)


@pytest.mark.parametrize("end", [*ENDS[:-1], "zip"])
def test_an_archive_that_is_not_there(end):
    with pytest.raises(FileNotFoundError, match=f"there is no file gone.{end}"):
        model_files(f"gone.{end}")
