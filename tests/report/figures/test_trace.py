import math

import pytest

from espnet_lenbias.report.figures.trace import ending_figure
from espnet_lenbias.search.trace import Trace


def data(artist):
    return [list(map(float, values)) for values in artist.get_data()]


def test_ending_figure_shows_the_two_sides_of_the_stop_bound():
    # p_end 0, 0.2, 0.75: left over are 1, 0.8 and 0.2; the best final probability is
    # 0.1, then 0.6
    trace = Trace(
        stopped="bound",
        p_end=[0.0, 0.2, 0.75],
        log_not_ended=[0.0, 0.0, math.log(0.8)],
        kept=[4, 4, 4],
        running=[4, 3, 1],
        best_final=[-math.inf, math.log(0.1), math.log(0.6)],
    )
    (axes,) = ending_figure(trace, "an utterance").axes
    left, best, stop = axes.get_lines()
    assert data(left) == [[1, 2, 3], pytest.approx([1.0, 0.8, 0.2])]
    assert data(best) == [[1, 2, 3], pytest.approx([0.0, 0.1, 0.6])]
    assert data(stop)[0] == [3, 3]
    assert stop.get_label() == "search stops, N = 3"
    assert [bar.get_height() for bar in axes.patches] == [0.0, 0.2, 0.75]
    assert axes.get_title() == "an utterance"
