"""Confidences of words against what was said, on decodings of three utterances."""

import math
import re

import numpy as np
import pytest

from espnet_lenbias.report.command import main
from espnet_lenbias.report.figures.looks import kinds_of
from espnet_lenbias.report.figures.word_confidence import word_confidence_figure
from espnet_lenbias.report.reliability import auc, roc
from espnet_lenbias.report.systems import system_of
from espnet_lenbias.report.word_confidence import (
    roc_lines,
    temperatures,
    with_words,
    word_confidence_line,
    word_reliability_lines,
)
from tests.report.made import REFERENCES, cells, system, write_lines, write_system

# Of "the cat sat on the mat", "oh yes" and "a b c d": sad, the last d and x are wrong.
TEXTS = {"s1-u1": "the cat sad on mat", "s1-u2": "", "s2-u3": "a b c x"}
CONFIDENCE = {
    "s1-u1": [1.0, 0.75, 0.5, 1.0, 0.75],
    "s1-u2": [],
    "s2-u3": [0.75, 1.0, 1.0, 0.75],
}
# right: 1 .75 - 1 .75 .75 1 1 -, wrong: .5 .75


@pytest.fixture
def cell():
    row = system("explicit_length", 4, confidence="combined")
    [cell] = cells((row, {"texts": TEXTS, "word_confidence": CONFIDENCE}))
    return cell


def test_a_word_is_right_at_its_place(cell):
    confidence, right = cell.rated_words
    assert confidence.tolist() == [1.0, 0.75, 0.5, 1.0, 0.75, 0.75, 1.0, 1.0, 0.75]
    assert right.tolist() == [True, True, False, True, True, True, True, True, False]


def test_the_line_of_a_table(cell):
    line = word_confidence_line(cell, {})
    assert (line.measure, line.words) == ("combined", 9)
    assert line.right == pytest.approx(7 / 9)
    assert line.mean_confidence == pytest.approx(7.5 / 9)
    # bins: one word of .5, wrong; four of .75, three right; four of 1, all right
    assert line.calibration_error == pytest.approx(0.5 / 9)
    # of 14 pairs the wrong word of .5 is below in 7, that of .75 in 4 and 3 ties
    assert line.auc == pytest.approx((7 + 4 + 1.5) / 14)
    assert math.isnan(line.temperature)
    assert math.isnan(line.calibrated_error)


def test_the_error_at_a_temperature(cell):
    line = word_confidence_line(cell, {"explicit_length_4": 0.5})
    # .25, four of .5625, four of 1
    assert line.temperature == 0.5
    assert line.calibrated_error == pytest.approx((0.25 + 4 * (0.75 - 0.5625)) / 9)
    assert temperatures([cell], "test") == {}
    assert set(temperatures([cell], "dev")) == {"explicit_length_4"}


def test_bins(cell):
    bins = [(b.low, b.words, b.right) for b in word_reliability_lines(cell)]
    assert bins == [(0.5, 1, 0.0), (0.7, 4, 0.75), (0.9, 4, 1.0)]


def test_the_roc_curve_has_a_point_for_each_confidence(cell):
    points = [(line.wrong_taken, line.right_taken) for line in roc_lines(cell)]
    assert points == [(0, 0), (0, pytest.approx(4 / 7)), (0.5, 1), (1, 1)]


def test_the_area_under_the_curve_is_auc():
    draw = np.random.default_rng(0)
    right = draw.random(80) < 0.7
    confidence = (0.3 * right + draw.random(80)).round(2) / 1.3
    x, y = np.array(roc(confidence, right)).T
    assert np.trapezoid(y, x) == pytest.approx(auc(confidence, right))


def test_a_long_curve_is_thinned_and_ends_at_its_ends():
    right = np.arange(5000) % 3 > 0
    points = roc(np.linspace(0, 1, 5000), right)
    assert len(points) == 101
    assert (points[0], points[-1]) == ((0, 0), (1, 1))


def test_there_is_no_curve_where_all_are_right():
    assert roc(np.array([0.5]), np.array([True])) == []


def test_cells_without_confidences_or_not_finished_are_left_out(cell):
    part = {key: TEXTS[key] for key in ("s1-u1", "s1-u2")}
    others = cells(
        (system("simple", 4), {"texts": TEXTS}),
        (system("simple", 8), {"texts": part, "word_confidence": CONFIDENCE}),
    )
    assert with_words([cell, *others]) == [cell]


def test_the_figure_shows_reliability_and_roc():
    row = system("explicit_length", 4, confidence="combined")
    texts = {f"u{i}": "a b" if i < 15 else "a c" for i in range(20)}
    confidence = {key: [0.95, 0.75] for key in texts}
    references = dict.fromkeys(texts, "a b")
    [cell] = cells(
        (row, {"texts": texts, "word_confidence": confidence}), references=references
    )
    figure = word_confidence_figure(
        word_reliability_lines(cell), roc_lines(cell), kinds_of([row])
    )
    left, right = figure.axes
    [line] = [x for x in left.lines if x.get_label() == "explicit_length"]
    assert line.get_xdata() == pytest.approx([0.75, 0.95])
    assert line.get_ydata() == pytest.approx([0.75, 1.0])
    [line] = [x for x in right.lines if x.get_label() == "explicit_length"]
    assert list(zip(line.get_xdata(), line.get_ydata())) == [
        (0, 0),
        (0, pytest.approx(20 / 35)),
        (1, 1),
    ]


def test_there_is_no_figure_of_few_words(cell):
    lines = word_reliability_lines(cell)
    kinds = kinds_of([cell.system])
    assert word_confidence_figure(lines, roc_lines(cell), kinds) is None


def test_a_row_with_minimum_bayes_risk_says_so():
    config = {"search": "explicit_length", "beam_size": 16, "decide": "mbr"}
    row = system_of("x", {**config, "posterior_temperature": 2, "confidence": True})
    assert row.name == "explicit_length + mbr + posterior_temperature 2"
    assert (row.options, row.confidence) == (
        {"mbr", "posterior_temperature"},
        "combined",
    )
    row = system_of("x", {"beam_size": 16, "confidence": "true", "decide": None})
    assert (row.name, row.confidence) == ("espnet", "label_probability")


# --- The command ----------------------------------------------------------------------


@pytest.fixture
def decoded(tmp_path):
    """A row of two sets with confidences, and one without."""
    for dataset in ("dev", "test"):
        write_lines(tmp_path / "data" / dataset / "text", REFERENCES)
    lines = {key: " ".join(map(str, values)) for key, values in CONFIDENCE.items()}
    sets = {s: {"text": TEXTS, "word_confidence": lines} for s in ("dev", "test")}
    config = {"search": "explicit_length", "beam_size": 4}
    write_system(tmp_path / "exp", "sure", {**config, "confidence": True}, sets)
    plain = {**config, "search": "simple"}
    write_system(tmp_path / "exp", "plain", plain, {"dev": {"text": TEXTS}})
    return tmp_path


def test_the_report_has_a_section(decoded):
    command = [str(decoded / "exp"), "--data", str(decoded / "data")]
    assert main(command) == 0
    report = (decoded / "exp/report/report.md").read_text()
    assert "## How sure words are" in report
    assert "`--temperature_from SET` fits it" in report
    row = re.search(r"\| dev .*explicit_length .*combined .*", report)[0]
    assert [x.strip() for x in row.split("|")][6:11] == [
        *("9", "0.778", "0.833", "0.056", "0.893")
    ]

    assert main([*command, "--temperature_from", "dev"]) == 0
    report = (decoded / "exp/report/report.md").read_text()
    assert "Here it is fitted on dev" in report
    for name in ("word_confidence", "word_reliability", "word_roc"):
        assert (decoded / f"exp/report/{name}.csv").is_file()


def test_a_report_without_confidences_has_no_such_section(decoded):
    for path in decoded.glob("exp/sure/*/1best_recog/word_confidence"):
        path.unlink()
    assert main([str(decoded / "exp"), "--data", str(decoded / "data")]) == 0
    report = (decoded / "exp/report/report.md").read_text()
    assert "How sure words are" not in report


def test_a_temperature_of_a_set_without_confidences(decoded, capsys):
    command = [str(decoded / "exp"), "--data", str(decoded / "data")]
    with pytest.raises(SystemExit) as e:
        main([*command, "--temperature_from", "train"])
    assert e.value.code == 2
    error = capsys.readouterr().err
    assert "no row has confidences of the words of train, but dev, test" in error


def test_confidences_of_another_number_of_words(decoded, capsys):
    path = decoded / "exp/sure/dev/1best_recog/word_confidence"
    path.write_text(path.read_text() + "s1-u9 0.5\n")  # of nobody: nothing to compare
    path.write_text(path.read_text().replace("s1-u2 ", "s1-u2 0.5"))
    with pytest.raises(SystemExit) as e:
        main([str(decoded / "exp"), "--data", str(decoded / "data")])
    assert e.value.code == 2
    error = capsys.readouterr().err
    assert "s1-u2 has 0 words in `text` and 1 values in `word_confidence`" in error
