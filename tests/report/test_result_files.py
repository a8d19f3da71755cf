"""Result files that were removed or cut: named, with what completes them."""

import json

import pytest

from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.report.command import main
from espnet_lenbias.report.decodings import read_decodings
from espnet_lenbias.report.result_files import lacking
from tests.report.made import REFERENCES, write_lines, write_system

FILES = {
    "text": REFERENCES,
    "score": dict.fromkeys(REFERENCES, -1.5),
    "steps": dict.fromkeys(REFERENCES, 9),
}
REMEDY = "anew when it is started again"


@pytest.fixture
def data(tmp_path):
    write_lines(tmp_path / "data" / "dev" / "text", REFERENCES)
    return tmp_path / "data"


@pytest.fixture
def exp(tmp_path):
    """Return a folder with a finished set, and its journal of one utterance more."""
    exp = tmp_path / "exp"
    write_system(exp, "a", {"beam_size": 4}, {"dev": FILES})
    lines: list[object] = [{"beam_size": "4"}]
    for key in [*REFERENCES, "old"]:
        row = {f"1best_recog/{name}": str(FILES[name].get(key)) for name in FILES}
        lines.append([key, row, "", ""])
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (exp / "a" / "dev" / JOURNAL).write_text(text)
    return exp


def _file(exp, name):
    return exp / "a" / "dev" / "1best_recog" / name


def test_whole_files(exp, data):
    """An utterance that is no longer listed is in no file, and rightly so."""
    assert list(lacking(exp / "a" / "dev")) == []
    assert read_decodings(exp, data).incomplete == []


def test_without_a_journal_nobody_knows(exp, data):
    (exp / "a" / "dev" / JOURNAL).unlink()
    _file(exp, "score").unlink()
    assert read_decodings(exp, data).incomplete == []


def test_what_is_gone_or_cut_is_named(exp, data, capsys):
    _file(exp, "score").unlink()
    write_lines(_file(exp, "text"), {"s1-u1": "the cat"})
    expected = [
        "`a`, dev: the file `text` lacks 2 of 3 utterances, e.g. s1-u2",
        "`a`, dev: the file `score` is gone",
    ]
    assert read_decodings(exp, data).incomplete == expected
    assert main([str(exp), "--data", str(data)]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if "not whole" in x]
    assert line.startswith("WARNING: result files that are not whole, which the comm")
    assert line.endswith(f"{REMEDY}: {'; '.join(expected)}")
    report = (exp / "report" / "report.md").read_text()
    assert all(f"- {what}" in report for what in expected)


def test_half_of_the_last_line_and_a_line_that_was_changed(exp, data):
    """All utterances have their lines, so only the journal knows."""
    text, steps = _file(exp, "text"), _file(exp, "steps")
    whole = text.read_text()
    text.write_text(whole[:-4])
    steps.write_text(steps.read_text().replace("9", "8", 1))
    last = whole.splitlines()[-1].split()[0]
    first = steps.read_text().split()[0]
    was = "was cut or changed: that is not what was decoded of 1 utterances, e.g."
    assert read_decodings(exp, data).incomplete == [
        f"`a`, dev: the file `text` {was} {last}",
        f"`a`, dev: the file `steps` {was} {first}",
    ]
    text.write_text(whole.replace(" ", "  "))  # blanks are none of a text
    steps.write_text(steps.read_text().replace("8", "9", 1))
    assert read_decodings(exp, data).incomplete == []


def test_texts_that_are_gone(exp, data, capsys):
    _file(exp, "text").unlink()
    said = "`a`, dev: the file `text` is gone: the command that decoded it "
    said += f"writes it {REMEDY}"
    with pytest.raises(SystemExit) as stop:
        main([str(exp), "--data", str(data)])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err
    write_system(exp, "b", {"beam_size": 8}, {"dev": FILES})
    assert read_decodings(exp, data).skipped == [said]


def test_an_utterance_that_failed_with_new_data_was_not_changed(exp, data):
    """Its lines are empty, and the journal still has what its data before gave."""
    for name, value in {"text": "", "score": "nan", "steps": "0"}.items():
        write_lines(_file(exp, name), {**FILES[name], "s1-u1": value})
    assert read_decodings(exp, data).incomplete == []
