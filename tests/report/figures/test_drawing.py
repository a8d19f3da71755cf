import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from espnet_lenbias.report.figures.drawing import (
    Curve,
    Room,
    around_one,
    draw_curve,
    from_zero,
    grid,
    ticks,
)
from espnet_lenbias.report.figures.looks import Look

LOOK = Look("#112233", "v", "--")


def drawn(curve):
    axes = Figure().subplots()
    draw_curve(axes, curve)
    return axes


def points(line):
    return list(zip(*(map(float, values) for values in line.get_data()), strict=True))


def test_points_of_fewer_than_ten_utterances_are_hollow_and_not_joined():
    curve = Curve("x", LOOK, [1, 2, 3, 4, 5], [5, 6, 7, 8, 9], [10, 9, 10, 11, 0])
    joined, alone = drawn(curve).get_lines()
    at_2, at_5 = (points(joined)[i] for i in (1, 4))
    assert math.isnan(at_2[1]) and math.isnan(at_5[1])  # where matplotlib lifts the pen
    assert [xy for xy in points(joined) if not math.isnan(xy[1])] == [
        (1, 5),
        (3, 7),
        (4, 8),
    ]
    assert joined.get_linestyle() == "--"
    assert joined.get_markerfacecolor() == "#112233"
    assert points(alone) == [(2, 6), (5, 9)]
    assert alone.get_linestyle() == "None"
    assert alone.get_markerfacecolor() == "none"
    assert alone.get_marker() == joined.get_marker() == "v"


def test_points_of_ten_or_more_and_those_of_no_utterances_are_joined():
    for utterances in ([10, 99], []):
        (line,) = drawn(Curve("x", LOOK, [1, 2], [5, 6], utterances)).get_lines()
        assert points(line) == [(1, 5), (2, 6)]


def test_markers_are_whole_at_the_edge_of_the_axes():
    axes = drawn(Curve("x", LOOK, [1, 2], [0, 1], [10, 3]))
    assert [line.get_clip_on() for line in axes.get_lines()] == [False, False]


def test_intervals_are_a_band():
    curve = Curve("x", LOOK, [1, 2], [5, 6], [10, 10], [4, 4], [6, 9])
    (band,) = drawn(curve).collections
    corners = {tuple(xy) for path in band.get_paths() for xy in path.vertices.tolist()}
    assert corners == {(1, 4), (2, 4), (1, 6), (2, 9)}


def test_a_curve_ends_at_its_last_known_point():
    assert Curve("x", LOOK, [1, 2, 3], [5.0, 6.0, math.nan], [10] * 3).end == (2, 6.0)
    assert Curve("x", LOOK, [1], [math.nan], [10]).end is None


def test_limits_hold_points_and_intervals():
    axes = Figure().subplots()
    from_zero(axes, [Curve("x", LOOK, [1, 2], [5, 6], [10, 10], [4, 4], [6, 50])])
    assert axes.get_ylim() == pytest.approx((0, 53))
    from_zero(axes, [Curve("x", LOOK, [1], [0.0], [10])])
    assert axes.get_ylim() == (0, 1)


def test_the_right_length_is_dashed_and_in_sight():
    axes = Figure().subplots()
    around_one(axes, [Curve("x", LOOK, [1], [0.5], [10])])
    low, high = axes.get_ylim()
    assert low < 0.5 and high > 1
    (line,) = axes.get_lines()
    assert (list(line.get_ydata()), line.get_linestyle()) == ([1, 1], "--")


def test_beam_sizes_below_the_axis_do_not_collide():
    assert ticks([4]) == ["4"]
    assert ticks([32, 64, 128, 5000]) == ["32", "64", "128", "5000"]
    # of log(1000) a tenth is a factor of 2: 900 and 600 are too near to 1000, 500 is not
    assert ticks([1, 100, 500, 600, 900, 1000]) == ["1", "100", "500", "", "", "1000"]


def test_panels_make_room_for_labels():
    figure, ((left, right),) = grid(1, 2, Room(1.5, 3.0), "dev", "a note")
    assert [text.get_text() for text in figure.texts] == ["dev", "a note"]
    width, height = figure.get_size_inches()
    places = [axes.get_position() for axes in (left, right)]
    assert (places[1].x0 - places[0].x1) * width > 1.5
    assert (1 - places[1].x1) * width == pytest.approx(1.5)
    assert places[0].height * height == pytest.approx(3.0)
    assert np.isclose(places[0].width, places[1].width)
