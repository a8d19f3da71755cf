import math

import pytest

from espnet_lenbias.compare.summary import ErrorLine
from espnet_lenbias.report.plots import beam_figure, ending_figure
from espnet_lenbias.search.trace import Trace


def line(search, beam, wer, ratio):
    return ErrorLine("all", search, beam, wer, 0, 0, 0, 1.0, ratio, 1.0, 1.0)


def data(artist):
    return [list(map(float, values)) for values in artist.get_data()]


def test_beam_figure_has_a_line_per_search_in_both_panels():
    lines = [
        line("simple", 64, 40.0, 0.7),
        line("simple", 4, 20.0, 0.9),
        line("explicit_length", 4, 19.0, 1.0),
    ]
    figure = beam_figure(lines)
    wer, ratio = figure.axes
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "log"]
    assert [text.get_text() for text in wer.get_xticklabels()] == ["4", "64"]
    simple, explicit = wer.get_lines()
    assert data(simple) == [[4, 64], [20, 40]]
    assert data(explicit) == [[4], [19]]
    simple, explicit, one = ratio.get_lines()
    assert data(simple) == [[4, 64], [0.9, 0.7]]
    assert data(explicit) == [[4], [1.0]]
    assert data(one)[1] == [1.0, 1.0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "simple",
        "explicit_length",
    ]
    assert (wer.get_ylabel(), ratio.get_ylabel()) == (
        "word error rate (%)",
        "output words / reference words",
    )


def test_ending_figure_shows_the_two_sides_of_the_stop_bound():
    # p_end 0, 0.2, 0.75: left over are 1, 0.8 and 0.2; the best final probability is 0.1, then 0.6
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


def test_figures_can_be_saved_without_a_display(tmp_path):
    beam_figure([line("simple", 4, 20.0, 0.9)]).savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
