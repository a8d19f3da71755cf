"""Where the labels at the ends of curves stand: positions worked out by hand."""

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from espnet_lenbias.report.figures.drawing import Curve
from espnet_lenbias.report.figures.labels import draw, positions, room, wrap
from espnet_lenbias.report.figures.looks import Look


@pytest.mark.parametrize(
    "wanted, sizes, placed",
    [
        ([], [], []),
        ([5.0], [1.0], [5.0]),
        # far enough apart: where they want to be
        ([2.0, 5.0, 3.0], [1.0, 1.0, 1.0], [2.0, 5.0, 3.0]),
        # two at one place move by half of a size each, the first one down
        ([5.0, 5.0], [1.0, 1.0], [4.5, 5.5]),
        ([5.5, 5.0], [1.0, 1.0], [5.75, 4.75]),
        # three at one place: the one in the middle stays
        ([5.0, 5.0, 5.0], [2.0, 2.0, 2.0], [3.0, 5.0, 7.0]),
        # less their offsets 0 and 1.5 they want 5 and 3.5, mean 4.25
        ([5.0, 5.0], [1.0, 2.0], [4.25, 5.75]),
        # the lower two share a place and push nobody: 8 stays
        ([3.0, 8.0, 3.0], [1.0, 1.0, 1.0], [2.5, 8.0, 3.5]),
        # 4 and 4.2 become 3.6 and 4.6, which is too near to 5: with offsets 0, 1, 2
        # they want 4, 3.2 and 3, mean 3.4
        ([4.0, 4.2, 5.0], [1.0, 1.0, 1.0], [3.4, 4.4, 5.4]),
        # not below 0 nor above 10
        ([0.0, 0.0], [1.0, 1.0], [0.5, 1.5]),
        ([10.0, 10.0], [1.0, 2.0], [7.5, 9.0]),
    ],
)
def test_positions(wanted, sizes, placed):
    assert positions(wanted, sizes, 0.0, 10.0) == pytest.approx(placed)


def test_eight_labels_at_one_place_do_not_overlap():
    placed = positions([0.1] * 8, [0.1] * 8, 0.0, 1.0)
    assert placed == pytest.approx([0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75])


def test_long_labels_are_broken_between_words_and_before_no_number():
    assert wrap("explicit_length") == "explicit_length"
    long = "simple + length_norm + eos_threshold 1.25, LM 0.1"
    assert wrap(long).split("\n") == [
        "+ length_norm +",
        "eos_threshold\u00a01.25, LM\u00a00.1",
    ]


def test_a_long_word_is_broken():
    """As a row's name without blanks is, for which there would be no room."""
    assert wrap("x" * 90).split("\n") == ["x" * 40, "x" * 40, "x" * 10]
    assert wrap("x" * 40) == "x" * 40


def test_room_is_that_of_the_panel_with_most_lines():
    one, two = [["a"] * 3], [["a"] * 3, ["a"] * 6]
    assert room(two).height == pytest.approx(2 * room(one).height)
    assert room([["a" * 20]]).width > room([["a" * 10]]).width


def test_labels_of_drawn_curves_stand_apart_beside_their_ends():
    figure = Figure(figsize=(9, 3), dpi=100)
    axes = figure.subplots()
    axes.set_ylim(0, 100)
    axes.set_xlim(0, 3)
    look = Look("black", "o", "-")
    curves = [
        Curve(label, look, [1, 2], [50.0, end], [10, 10])
        for label, end in (("high", 90.0), ("low", 50.2), ("lower", 50.1))
    ]
    draw(axes, curves)
    figure.draw_without_rendering()
    places = {t.get_text(): Text.get_window_extent(t) for t in axes.texts}
    assert places["high"].y0 > places["low"].y1
    assert places["low"].y0 > places["lower"].y1
    assert all(place.x0 > axes.bbox.x1 for place in places.values())
    assert [text.xy for text in axes.texts] == [(2, 90.0), (2, 50.2), (2, 50.1)]
