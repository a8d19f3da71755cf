import math

import pytest

from espnet_lenbias.report.confidence import FINAL, PER_LABEL, ReliabilityLine
from espnet_lenbias.report.curves import beam_figure, length_figure, reliability_figure
from espnet_lenbias.report.lengths import LengthLine
from espnet_lenbias.report.table1 import score_line
from tests.report.made import REFERENCES, cells, system

LABELS = ["simple", "simple, LM 0.6", "explicit_length"]


def data(artist):
    return [list(map(float, values)) for values in artist.get_data()]


def shown(axes):
    """Return the points of each line that has a label."""
    lines = axes.get_lines()
    return {
        line.get_label(): data(line) for line in lines if line.get_label()[0] != "_"
    }


def texts(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_against_beam_size():
    # of 12 words 2 are lost, then 8
    lost = {**REFERENCES, "s1-u2": ""}
    more = {**lost, "s1-u1": ""}
    steps = {"s1-u1": 9, "s1-u2": 4, "s2-u3": 5}
    found = cells(
        (system("simple", 64), {"texts": more}),
        (system("simple", 4), {"texts": lost, "steps": steps}),
        (system("explicit_length", 4), {"texts": REFERENCES, "steps": steps}),
    )
    figure = beam_figure([score_line(cell) for cell in found], LABELS)
    wer, ratio, steps = figure.axes
    assert shown(wer) == {
        "simple": [[4, 64], pytest.approx([100 * 2 / 12, 100 * 8 / 12])],
        "explicit_length": [[4], [0.0]],
    }
    assert shown(ratio) == {
        "simple": [[4, 64], pytest.approx([10 / 12, 4 / 12])],
        "explicit_length": [[4], [1.0]],
    }
    _, known = shown(steps)["simple"]
    assert known[0] == 6.0 and math.isnan(known[1])
    assert [text.get_text() for text in wer.get_xticklabels()] == ["4", "64"]
    assert texts(figure) == ["simple", "explicit_length"]


def test_by_length_of_the_reference():
    def line(search, beam, shortest, longest, wer, lm=0.0):
        return LengthLine("dev", search, lm, beam, shortest, longest, 5, wer, 1.0)

    figure = length_figure(
        [
            line("simple", 4, 1, 3, 10.0),
            line("simple", 4, 4, 4, 20.0),
            line("simple", 4, 1, 3, 7.0, lm=0.6),
            line("simple", 4, 4, 4, 8.0, lm=0.6),
            line("explicit_length", 64, 1, 3, 5.0),
            line("explicit_length", 64, 4, 4, 6.0),
        ],
        LABELS,
    )
    small, large = figure.axes
    assert (small.get_title(), large.get_title()) == ("beam 4", "beam 64")
    assert shown(small) == {
        "simple": [[0, 1], [10.0, 20.0]],
        "simple, LM 0.6": [[0, 1], [7.0, 8.0]],
    }
    assert shown(large) == {"explicit_length": [[0, 1], [5.0, 6.0]]}
    assert [text.get_text() for text in small.get_xticklabels()] == ["1-3", "4"]
    assert texts(figure) == LABELS


def test_a_search_looks_the_same_in_all_panels():
    lines = [
        LengthLine("dev", "explicit_length", 0.0, beam, 1, 3, 5, 5.0, 1.0)
        for beam in (4, 64)
    ]
    lines.insert(0, LengthLine("dev", "simple", 0.0, 4, 1, 3, 5, 5.0, 1.0))
    small, large = length_figure(lines, LABELS).axes
    assert small.get_lines()[1].get_color() == large.get_lines()[0].get_color()
    assert small.get_lines()[0].get_color() != small.get_lines()[1].get_color()


def test_reliability():
    def line(search, measure, confidence, right):
        low = math.floor(10 * confidence) / 10
        head = ("dev", search, 0.0, 4, measure, low, low + 0.1, 9)
        return ReliabilityLine(*head, confidence, right)

    figure = reliability_figure(
        [
            line("simple", PER_LABEL, 0.85, 0.3),
            line("explicit_length", FINAL, 0.35, 0.4),
            line("explicit_length", FINAL, 0.95, 0.9),
        ],
        LABELS,
    )
    (axes,) = figure.axes
    assert shown(axes) == {
        f"simple: {PER_LABEL}": [[0.85], [0.3]],
        f"explicit_length: {FINAL}": [[0.35, 0.95], [0.4, 0.9]],
    }
    assert data(axes.get_lines()[0]) == [[0, 1], [0, 1]]  # where confidence is right


def test_five_beams_are_two_rows_of_panels():
    lines = [
        LengthLine("dev", "simple", 0.0, beam, 1, 3, 5, 5.0, 1.0)
        for beam in (1, 2, 3, 4, 5)
    ]
    figure = length_figure(lines, LABELS)
    assert [axes.get_title() for axes in figure.axes] == [
        f"beam {beam}" for beam in (1, 2, 3, 4, 5)
    ]
