"""Files of a report are written whole, and through no link."""

import pytest

from espnet_lenbias.report.tables import write_text
from espnet_lenbias.report.whole_files import replacing


def test_a_link_is_replaced(tmp_path):
    other, path = tmp_path / "other", tmp_path / "report.md"
    other.write_text("mine")
    path.symlink_to(other)
    write_text(path, "a report")
    assert (path.read_text(), other.read_text()) == ("a report", "mine")
    assert not path.is_symlink()


def test_what_was_there_stays_where_writing_fails(tmp_path):
    path = tmp_path / "plot.png"
    path.write_text("old")
    with (
        pytest.raises(OSError, match="No space left.*plot.png'"),
        replacing(path) as draft,
    ):
        draft.write_text("half")
        raise OSError(28, "No space left on device")
    assert [p.name for p in tmp_path.iterdir()] == ["plot.png"]
    assert path.read_text() == "old"
