import math

from espnet_lenbias.report.confidence import FINAL, PER_LABEL, ReliabilityLine
from espnet_lenbias.report.figures.looks import Kind
from espnet_lenbias.report.figures.reliability import reliability_figure

KINDS = {"simple": Kind("simple"), "explicit_length": Kind("explicit_length")}


def line(search, measure, confidence, right, utterances=12):
    low = math.floor(10 * confidence) / 10
    head = ("dev", search, 0.0, 4, measure, low, low + 0.1, utterances)
    return ReliabilityLine(*head, confidence, right)


def test_reliability():
    lines = [
        line("simple", PER_LABEL, 0.85, 0.3),
        line("explicit_length", FINAL, 0.35, 0.4, utterances=2),
        line("explicit_length", FINAL, 0.95, 0.9, utterances=10),
    ]
    figure = reliability_figure(lines, KINDS)
    (axes,) = figure.axes
    diagonal, simple, explicit, thin = axes.get_lines()
    assert [list(values) for values in diagonal.get_data()] == [[0, 1], [0, 1]]
    assert list(simple.get_ydata()) == [0.3]
    assert [y for y in explicit.get_ydata() if not math.isnan(y)] == [0.9]
    assert [list(values) for values in thin.get_data()] == [[0.35], [0.4]]
    title, note = (text.get_text() for text in figure.texts)
    assert title == "dev, 12 utterances"
    assert FINAL in note and PER_LABEL in note and "Hollow" in note


def test_there_is_no_figure_of_too_few_utterances():
    assert reliability_figure([line("simple", PER_LABEL, 0.8, 0.3, 9)], KINDS) is None
