"""The journal of a run: what it may hold, and what becomes of the rest."""

import json

import pytest

from espnet_lenbias.decoding.journal import Entry, entry_line, is_row, read_journal
from espnet_lenbias.decoding.result_rows import result_row
from espnet_lenbias.errors import OtherRunError
from espnet_lenbias.search.hypotheses import Hypothesis
from tests.decoding.made import ROW

OPTIONS = {"beam_size": "4"}


class EspnetHypothesis:
    score = -1.5


def _hypothesis() -> Hypothesis:
    return Hypothesis(
        yseq=None,
        score=-1.0,
        scores={},
        states={},
        original_score=-2.0,
        steps=3,
        stopped="bound",
    )


def _nbest(hypothesis, *plain_text):
    return [("A B", ["A", "B"], [4, 5], *plain_text, hypothesis)] * 12


def _source(hypothesis):
    return [("A", ["A"], [4], hypothesis, None)] * 12


ROWS = {
    "espnet": result_row(_nbest(EspnetHypothesis()), 12),
    "no text": result_row([(None, [], [], EspnetHypothesis())], 1),
    "s2t": result_row(_nbest(EspnetHypothesis(), "A B"), 12),
    "speakers": result_row([_nbest(EspnetHypothesis())] * 11, 2, multi_speaker=True),
    "layers": result_row((_nbest(EspnetHypothesis()), {6: ["A"], 12: ["A"]}), 2),
    "source": result_row(
        (_nbest(EspnetHypothesis()), _source(EspnetHypothesis())), 2, source_nbest=11
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_the_tools_write_is_a_row(row):
    assert is_row(row)


def test_what_our_searches_write_is_a_row():
    row = result_row(_nbest(_hypothesis()), 12)
    assert row["12best_recog/steps"] == "3"
    assert row["12best_recog/stopped"] == "bound"
    assert is_row(row)
    row = result_row((_nbest(_hypothesis()), _source(_hypothesis())), 1)
    assert row["1asr_best_recog/asr_original_score"] == "-2.0"
    assert is_row(row)


@pytest.mark.parametrize(
    "name",
    [
        "../../x",
        "/etc/x",
        "1best_recog/../../x",
        "1best_recog/x",
        "1best_recog/text/x",
        "0best_recog/text",
        "1best_recog/text\n",
        "\u0661best_recog/text",
        "decoding.jsonl",
        ".lock",
        "best_recog/text",
        "1best_recog/asr_text",
    ],
)
def test_no_other_file_is_written(name):
    assert is_row(ROW)
    assert not is_row(ROW | {name: "x"})


@pytest.mark.parametrize(
    "row",
    [
        {},
        [],
        None,
        "x",
        ROW | {"1best_recog/text": 1},
        ROW | {"1best_recog/text": None},
        ROW | {"1best_recog/text": "A\nutt9 B"},
        ROW | {"1best_recog/text": "\ud800"},
        {"1best_recog/text": "A"},
        {"1best_recog/encoder_interctc_layer6.txt": "A"},
        ROW | {"2best_recog/text": "A"},
    ],
)
def test_what_is_no_row(row):
    assert not is_row(row)


def _journal(tmp_path, *lines: str):
    path = tmp_path / "decoding.jsonl"
    path.write_text("\n".join([json.dumps(OPTIONS), *lines, ""]))
    return path


@pytest.mark.parametrize(
    "line",
    [
        '["utt2", {}, "d2"]',
        '["utt2", {"../../x": "A"}, "d2"]',
        '["utt2"]',
        json.dumps(["utt2", ROW, "d2", "", ""]),
        '["utt2", {"1best_re',
        '{"utt2": 1}',
        '[2, {"1best_recog/text": "A"}, "d2"]',
        "\0\0\0\0",
        "",
        "[" * 100000,
        "NaN",
    ],
)
def test_a_damaged_line_is_named_and_the_others_are_kept(line, tmp_path, caplog):
    good = [entry_line(f"utt{i}", Entry(ROW, f"d{i}")).strip() for i in (1, 3)]
    path = _journal(tmp_path, good[0], line, good[1])
    assert read_journal(path, OPTIONS) == {
        "utt1": Entry(ROW, "d1"),
        "utt3": Entry(ROW, "d3"),
    }
    (message,) = caplog.messages
    assert message.startswith(f"{path}, line 3 is not the result of an utterance")


# A line without its checksum, which below is the CRC-32 that `gzip` notes for it.
WRITTEN = '["utt1", {"1best_recog/token": "A", "1best_recog/token_int": "3", ' + (
    '"1best_recog/score": "-1.0", "1best_recog/text": "A"}, "d1"'
)


def test_a_line_that_was_edited_is_named(tmp_path, caplog):
    line = entry_line("utt1", Entry(ROW, "d1"))
    assert line == f'{WRITTEN}, "e8409762"]\n'
    path = _journal(
        tmp_path,
        line.strip().replace('text": "A"', 'text": "B"'),
        entry_line("utt2", Entry(ROW, "d2")).strip(),
    )
    assert read_journal(path, OPTIONS) == {"utt2": Entry(ROW, "d2")}
    assert caplog.messages == [
        f"{path}, line 2 is not as it was written: utterance utt1 is decoded again"
    ]


def test_a_line_from_before_checksums(tmp_path, caplog):
    path = _journal(tmp_path, f"{WRITTEN}]")
    assert read_journal(path, OPTIONS) == {"utt1": Entry(ROW, "d1")}
    assert not caplog.messages


def test_bytes_that_are_no_text(tmp_path, caplog):
    path = _journal(tmp_path, entry_line("utt1", Entry(ROW, "d1")).strip())
    with path.open("ab") as f:
        f.write(b"\xff\xfe\n")
    assert list(read_journal(path, OPTIONS)) == ["utt1"]
    assert f"{path}, line 3" in caplog.text


def test_the_last_result_of_an_utterance_counts(tmp_path):
    lines = [entry_line("utt1", Entry(ROW, data)).strip() for data in ("d1", "d2")]
    path = _journal(tmp_path, *lines)
    assert read_journal(path, OPTIONS) == {"utt1": Entry(ROW, "d2")}


def test_a_journal_from_before_data_was_noted(tmp_path):
    path = _journal(tmp_path, json.dumps(["utt1", ROW]))
    with pytest.raises(
        OtherRunError, match=f"{path} is of an earlier version, .* [(]rm"
    ):
        read_journal(path, OPTIONS)


@pytest.mark.parametrize("first", ["", "[]", "{", "null"])
def test_a_journal_that_holds_no_options(first, tmp_path):
    path = tmp_path / "decoding.jsonl"
    path.write_text(f"{first}\n{entry_line('utt1', Entry(ROW, 'd1'))}")
    with pytest.raises(OtherRunError, match=f"{path}, line 1 holds no options"):
        read_journal(path, OPTIONS)
    # without results there is nothing to lose
    path.write_text(f"{first}\n")
    assert read_journal(path, OPTIONS) == {}


def test_the_command_that_is_advised_can_be_copied(tmp_path):
    folder = tmp_path / "my results"
    folder.mkdir()
    path = folder / "decoding.jsonl"
    lines = [json.dumps(OPTIONS) + "\n", entry_line("utt1", Entry(ROW, "data"))]
    path.write_text("".join(lines))
    with pytest.raises(OtherRunError) as raised:
        read_journal(path, {"beam_size": "8"})
    assert f"remove the folder (rm -r '{folder}')" in str(raised.value)
