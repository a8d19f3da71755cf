"""What a journal says, whatever has become of its lines."""

import os

import pytest

from espnet_lenbias import OptionError
from espnet_lenbias.options.run_journal import read_rows, read_run_options
from espnet_lenbias.report.scoring import read_text

DEEP = "[" * 100_000


@pytest.mark.parametrize("line", ["", "{", "[1]", '{"a": 1}', DEEP], ids=range(5))
def test_a_first_line_that_is_none(line, tmp_path):
    path = tmp_path / "decoding.jsonl"
    path.write_text(f"{line}\n")
    assert read_run_options(path) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("read", [read_run_options, read_rows, read_text])
def test_what_is_no_file_is_not_waited_for(make, read, tmp_path):
    make(tmp_path / "it")
    with pytest.raises(OptionError, match=f"{tmp_path}/it is a (pipe|folder)"):
        read(tmp_path / "it")


def test_damaged_lines_say_nothing(tmp_path):
    path = tmp_path / "decoding.jsonl"
    lines = [
        '{"beam_size": "4"}',
        '["a", {"text": "A"}]',
        DEEP,
        "{}",
        '["b", {"t": 1}]',
    ]
    path.write_text("".join(f"{line}\n" for line in [*lines, '["c", {"text']))
    assert read_run_options(path) == {"beam_size": "4"}
    assert read_rows(path) == {"a": {"text": "A"}, "b": {"t": "1"}}
