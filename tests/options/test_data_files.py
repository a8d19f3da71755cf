"""Files with a line for each utterance."""

import os
import re
from argparse import Namespace

import pytest

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options import data_files
from espnet_lenbias.options.data_files import (
    as_it_is,
    as_they_are,
    check_texts,
    check_types,
    data_taken,
    lines_of,
    read_lines,
    utterances,
)
from espnet_lenbias.options.espnet_tools import (
    ASR,
    ASR_STREAMING,
    MT,
    S2T,
    SLU,
    ST,
    ST_STREAMING,
)


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
        (b"\xff\xfea\x00", "line 1 is no text in UTF-8"),
        ("a x\nb\u2028c y\n".encode(), r"line 2: the key b ends at .* U\+2028: write"),
        ("a\u00a0x\n".encode(), r"line 1: the key a ends at .* U\+00A0"),
        ("a \u3000x\n".encode(), r"line 1: the key a ends at .* U\+3000"),
        (b"a x\rb y\n", r"line 1 ends in a carriage return alone"),
        (b"a x\r\r\n", r"line 1 ends in a carriage return alone"),
        (b"a x\nb\0 y\n", r"line 2 holds a NUL.*: save it as UTF-8"),
        (b"a\x1cb x\n", r"line 1: the key a ends at .* U\+001C"),
    ],
)
def test_what_is_wrong_is_named(content, message, tmp_path):
    (tmp_path / "wav.scp").write_bytes(content)
    with pytest.raises(OptionError, match=message) as raised:
        read_lines(tmp_path / "wav.scp")
    assert str(tmp_path / "wav.scp") in str(raised.value)


# all that ends a line for some reader, or looks like a space
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def test_no_key_breaks_a_line(tmp_path):
    """Each of these signs ends a key or a line, so that none is in one."""
    for sign in BREAKS + "\u00a0\u3000":
        (tmp_path / "wav.scp").write_text(f"a{sign}b x\n", newline="")
        try:
            keys = read_lines(tmp_path / "wav.scp")
        except OptionError:
            continue
        assert list(keys) == ["a", "b"]  # two lines, as ESPnet reads them


@pytest.mark.parametrize(
    "key", ["\u200b", "\u4f60", "a\u200db", "\ufeffa", "a/b", "a:1"]
)
def test_other_signs_in_keys_stay(key, tmp_path):
    (tmp_path / "wav.scp").write_text(f"z x\n{key} x\u00a0y\n", encoding="utf-8")
    assert read_lines(tmp_path / "wav.scp") == {"z": "x", key: "x\u00a0y"}


@pytest.mark.parametrize(
    "kind, refused",
    [("sound", True), ("kaldi_ark", True), ("npy", True), ("text", False)],
)
def test_a_key_with_no_file_behind_it(kind, refused, tmp_path):
    path = tmp_path / "wav.scp"
    path.write_text("a x\nb\n")
    data = [(str(path), "speech", kind)]
    args = Namespace(data_path_and_name_and_type=data, key_file=None)
    if refused:
        message = f"{path}, line 2 has the key b and no file behind it"
        with pytest.raises(OptionError, match=re.escape(message)):
            lines_of(args)
    else:
        assert list(utterances(args, lines_of(args))) == ["a", "b"]


@pytest.mark.parametrize("place", ["", ":7", ":7[0:3]"])
def test_a_file_that_has_changed_is_another(place, tmp_path):
    """By its size or its date; of an archive all places are."""
    path = tmp_path / "a.ark"
    found = []
    for content, date in (("ab", 1), ("cd", 1), ("cd", 2), ("cde", 2)):
        path.write_text(content)
        os.utime(path, (date, date))
        found.append(as_it_is(f"{path}{place}"))
    assert found[0] == found[1]
    assert len(set(found)) == 3
    path.unlink()
    assert as_it_is(f"{path}{place}") == f"{path}{place}"


def test_a_relative_path_is_another_file_elsewhere(tmp_path, monkeypatch):
    """A whole path is the same file everywhere, and so is one of the same place."""
    path = tmp_path / "wav.scp"
    path.write_text("a x.wav\nb /x.wav\nc cat x |\nd y/../x.wav\n")
    data = [(str(path), "speech", "sound")]
    args = Namespace(data_path_and_name_and_type=data, key_file=None)
    found = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found.append(utterances(args, as_they_are(args)))
    here, there = found
    assert [key for key in here if here[key] == there[key]] == ["b", "c"]
    assert here["a"] == here["d"]


@pytest.mark.parametrize(
    "name, kind, message",
    [
        ("speech", "text", "speech is audio, and text is no type of such data: say"),
        ("speech", "soundx", "there is no type soundx; did you mean sound?"),
        ("speech", "", r"there is no type  \(types: sound, "),
        (
            "src_text",
            "sound",
            "src_text is a text, and sound is no type of such data: ",
        ),
        ("transcript", "sound", "transcript is a text, and sound is no type of such"),
        ("text_prev", "rand_float", "text_prev is a text, and rand_float is no type"),
        ("speech", "rand_int_3", "there is no type rand_int_3"),
    ],
)
def test_types_that_are_wrong(name, kind, message):
    with pytest.raises(OptionError, match=f"a.scp,{name},{kind}: {message}"):
        check_types([("a.scp", name, kind)])


def test_types_of_espnet():
    from espnet2.train.dataset import DATA_TYPES

    ours = {*data_files.KEYED, *data_files._OTHERS}
    theirs = {"rand_int_<n>_<m>" if "rand_int" in kind else kind for kind in DATA_TYPES}
    assert theirs <= ours
    for kind in ("sound", "kaldi_ark", "npy", "hdf5"):
        check_types([("a", "speech", kind), ("a", "src_text", "text")])
    check_types([("a", "noise", "rand_int_3_10")])


@pytest.mark.parametrize("kind", ["text_int", "csv_int", "npy", "kaldi_ark"])
@pytest.mark.parametrize("name", ["src_text", "transcript", "text_prev"])
def test_numbers_in_place_of_a_text(name, kind):
    check_types([("a", name, kind)])  # do for a model without preprocessing
    with pytest.raises(OptionError) as e:
        check_texts([("a.wav", "speech", kind), ("a", name, kind)])
    assert str(e.value) == (
        f"data_path_and_name_and_type: a,{name},{kind}: the model makes token ids of "
        f"{name} itself, and {kind} gives no text: say a,{name},text"
    )
    check_texts([("a", name, "text")])


SPEECH, TEXT = ("wav.scp", "speech", "sound"), ("words", "text", "text")


@pytest.mark.parametrize("tool", [ASR, ASR_STREAMING, ST, ST_STREAMING, S2T, SLU])
def test_data_that_a_tool_does_not_take(tool, caplog):
    with pytest.raises(OptionError) as e:
        data_taken([SPEECH, TEXT], tool, leave_others=False)
    assert str(e.value).startswith(
        f"data_path_and_name_and_type: words,text,text: {tool.name} takes speech"
    )
    assert str(e.value).endswith(
        ", and no text: leave it out, or give it its right name"
    )
    assert data_taken([TEXT, SPEECH], tool, leave_others=True) == [SPEECH]
    assert caplog.text.count("and no text: it is left out") == 1


@pytest.mark.parametrize(
    "tool, names",
    [
        (ASR, ["speech"]),
        (SLU, ["speech", "transcript"]),
        (S2T, ["text_prev", "speech"]),
        (MT, ["src_text"]),
    ],
)
def test_data_that_a_tool_takes(tool, names):
    data = [("file", name, "text") for name in names]
    assert data_taken(data, tool, leave_others=False) == data


@pytest.mark.parametrize("tool, name", [(ASR, "speech"), (MT, "src_text")])
def test_nothing_to_decode(tool, name):
    with pytest.raises(OptionError, match=f"there is no {name}, which {tool.name} dec"):
        data_taken([TEXT], tool, leave_others=True)
