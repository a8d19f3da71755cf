"""Folders that cannot be written to, named as the user has named them."""

import re

import pytest

from espnet_lenbias import OptionError
from espnet_lenbias.options import output_folder
from espnet_lenbias.options.output_folder import make_output_dir


def test_a_folder_is_made_and_left_empty(tmp_path):
    make_output_dir(tmp_path / "a" / "b")
    make_output_dir(tmp_path / "a" / "b")
    assert not any((tmp_path / "a" / "b").iterdir())


@pytest.mark.parametrize("below", ["file", "file/a/b"])
def test_a_file_is_no_folder(below, tmp_path):
    (tmp_path / "file").write_text("dear to me")
    message = f"output_dir {tmp_path / below} cannot be written ({tmp_path}/file is a "
    with pytest.raises(OptionError, match=f"^{re.escape(message)}file"):
        make_output_dir(tmp_path / below)
    assert (tmp_path / "file").read_text() == "dear to me"


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(
        OptionError, match="^output_dir .*a cannot be written [(]File n"
    ):
        make_output_dir(tmp_path / ("a" * 300))


def test_more_folders_in_one_another_than_python_makes(tmp_path):
    folder = tmp_path.joinpath(*2000 * ["a"])
    message = rf"output_dir names {len(folder.parts)} folders in one another"
    with pytest.raises(OptionError, match=message):
        make_output_dir(folder)


@pytest.mark.parametrize(
    "error, message",
    [
        (
            PermissionError(13, "Permission denied", "/x/tmp1"),
            "[(]Permission denied[)]",
        ),
        (
            OSError(30, "Read-only file system", "/x/tmp1"),
            "[(]Read-only file system[)]",
        ),
    ],
)
def test_a_folder_that_cannot_be_written(error, message, tmp_path, monkeypatch):
    def refuse(**_):
        raise error

    monkeypatch.setattr(output_folder, "TemporaryFile", refuse)
    with pytest.raises(OptionError, match=f"^output_dir {tmp_path} .*{message}: name "):
        make_output_dir(tmp_path)


def test_a_full_disk_is_another_matter(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(28, "No space left on device", "/x/tmp1")

    monkeypatch.setattr(output_folder, "TemporaryFile", refuse)
    with pytest.raises(OSError, match="No space left"):
        make_output_dir(tmp_path)
