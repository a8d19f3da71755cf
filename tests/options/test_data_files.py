"""Files with a line for each utterance."""

import pytest

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.data_files import read_lines


def test_keys_and_what_stands_behind_them(tmp_path):
    (tmp_path / "wav.scp").write_text("a  x y.wav\nb\n")
    assert read_lines(tmp_path / "wav.scp") == {"a": "x y.wav", "b": ""}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no utterance keys"),
        (b"a x\n\nb y\n", "line 2 is empty"),
        (b"a x\nb y\na z\n", "lines 1 and 3 have the same key a"),
        (b"\xef\xbb\xbfa x\n", "begins with a byte order mark"),
        (b"\xff\xfea\x00", "is no text file"),
    ],
)
def test_what_is_wrong_is_named(content, message, tmp_path):
    (tmp_path / "wav.scp").write_bytes(content)
    with pytest.raises(OptionError, match=message) as raised:
        read_lines(tmp_path / "wav.scp")
    assert str(tmp_path / "wav.scp") in str(raised.value)
