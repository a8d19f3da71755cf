"""A search of one table, worked out by hand. Labels: the blank, a, b and the end label.

At beam 2, N = 1 leaves a and $, N = 2 ab and aa, N = 3 aba and aa$, N = 4 aba$ and abaa.
"""

import math
import re

import numpy as np
import pytest

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.espnet_compat import BeamSearch
from espnet_lenbias.report.explanation import (
    SimpleStepLine,
    StepLine,
    explain,
    step_lines,
    why_stopped,
)
from espnet_lenbias.report.running import recorded_running
from espnet_lenbias.search.trace import Trace
from tests.tables import TableModel


def rows(text):
    """The cells of the Markdown tables in a text."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_explicit_length_step_by_step():
    explanation = explain(
        TableModel(ExplicitLengthBeamSearch), {"speech": np.zeros(5)}, "x"
    )
    # ending probabilities .25/.85, 0, .096/.39, .2058/.2646; not ended before N: .7059
    # from N = 2, .5321 at N = 4; final .2941 from N = 1, .4139 at N = 4
    assert rows(explanation.text)[2:6] == [
        ["1", "0.2941", "0.000", "2", "1", "-1.224", "a"],
        ["2", "0.0000", "-0.348", "2", "2", "-1.224", "a b"],
        ["3", "0.2462", "-0.348", "2", "1", "-1.224", "a b a"],
        ["4", "0.7778", "-0.631", "2", "1", "-0.882", "a b a a"],
    ]
    assert rows(explanation.text)[8:] == [
        ["1", "-1.581", "-0.882", "a b a"],  # ln .2058, ln .4139
        ["2", "-1.386", "-1.224", ""],  # ln .25, ln .2941
        ["3", "-2.343", "-1.750", "a a"],  # ln .096, ln .1738
    ]
    # .5321 * (1 - .7778) is left
    assert "after N = 4: the output is longer with a probability of 0.118" in (
        explanation.text
    )
    assert "a probability of 0.414, found at N = 4" in explanation.text
    (axes,) = explanation.figure.axes
    assert axes.get_title() == "x"
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(
        [0.25 / 0.85, 0.0, 0.096 / 0.39, 0.2058 / 0.2646], abs=1e-6
    )


def test_simple_step_by_step():
    explanation = explain(TableModel(SimpleBeamSearch), {"speech": np.zeros(5)}, "x")
    # $ keeps a place from N = 1, so the other is a, ab, aba and at N = 4 aba$
    assert rows(explanation.text)[2:6] == [
        ["1", "2", "1", "-1.386", "a"],
        ["2", "2", "1", "-1.386", "a b"],
        ["3", "2", "1", "-1.386", "a b a"],
        ["4", "2", "0", "-1.386", ""],
    ]
    assert rows(explanation.text)[8:] == [
        ["1", "-1.386", "-1.386", ""],
        ["2", "-1.581", "-1.581", "a b a"],
    ]
    assert "after N = 4: all hypotheses that were kept have ended" in explanation.text
    places, best = explanation.figure.axes
    heights = [bar.get_height() for bar in places.patches]
    assert heights == [1, 1, 1, 2, 1, 1, 1, 0]  # ended, then running
    assert [bar.get_y() for bar in places.patches[4:]] == [1, 1, 1, 2]  # on top
    assert best.get_lines()[0].get_ydata() == pytest.approx([math.log(0.25)] * 4)


def test_recording_changes_nothing():
    plain, recorded = TableModel(SimpleBeamSearch), TableModel(SimpleBeamSearch)
    with recorded_running(recorded.beam_search) as running:
        theirs = recorded(None)
    ours = plain(None)
    assert recorded.beam_search.make_rule() == plain.beam_search.make_rule()
    assert len(running) == recorded.beam_search.trace[0].steps
    assert [x[0] for x in ours] == [x[0] for x in theirs]
    assert plain.beam_search.trace == recorded.beam_search.trace


def test_an_utterance_without_frames_has_no_steps():
    model = TableModel(ExplicitLengthBeamSearch, frames=0)
    explanation = explain(model, {"speech": np.zeros(0)}, "x")
    assert explanation.text.startswith("There was nothing to search")
    assert explanation.figure is None


def test_a_search_without_a_trace():
    with pytest.raises(ValueError, match="search: BeamSearch keeps no trace"):
        explain(TableModel(BeamSearch), {"speech": np.zeros(5)}, "x")


def test_long_texts_show_their_end():
    trace = Trace("ended", kept=[2], running=[1], best_final=[-1.0])
    (line,) = step_lines(trace, ["x" * 60 + "end"])
    assert isinstance(line, SimpleStepLine)
    assert line.best_running == "..." + "x" * 44 + "end"
    trace = Trace("bound", [0.5], [0.0], [2], [1], [-1.0])
    assert step_lines(trace, ["a"]) == [StepLine(1, 0.5, 0.0, 2, 1, -1.0, "a")]


def test_the_best_may_have_ended_before_the_search_could_stop():
    # .4 ends at N = 1; of the .6 left half at N = 2, which leaves .3
    best = [math.log(0.4), math.log(0.4)]
    trace = Trace("bound", [0.4, 0.5], [0.0, math.log(0.6)], [2, 2], [1, 1], best)
    assert why_stopped(trace) == (
        "The search stopped after N = 2: the output is longer with a probability of "
        "0.3, the product of 1 - p_end, and the best final score is -0.916, a "
        "probability of 0.4, found at N = 1. No longer output can win."
    )


@pytest.mark.parametrize(
    "stopped, kept, running, words",
    [
        (
            "ended",
            [2, 2],
            [1, 0],
            "after N = 2: all hypotheses that were kept have ended",
        ),
        (
            "limit",
            [2, 2],
            [2, 1],
            "that is the length limit .*, with 1 still running",
        ),
        (
            "early",
            [2, 4],
            [2, 2],
            "after N = 2: as many hypotheses had ended as it waits for .patience., with 2 ",
        ),
        (
            "forced",
            [2, 1],
            [2, 0],
            "nothing had ended at the length limit .*, N = 1, so",
        ),
        ("forced", [2, 0], [2, 0], "no label was possible"),
        # of a rule without ending probabilities, as another package may have it
        ("bound", [2, 2], [2, 1], "no hypothesis that ends later can win, by the rule"),
    ],
)
def test_why_it_stopped(stopped, kept, running, words):
    trace = Trace(stopped, kept=kept, running=running, best_final=[-math.inf, -2.0])
    assert re.search(words, why_stopped(trace))


def test_why_an_explicit_length_search_stopped_early():
    trace = Trace(
        "early",
        p_end=[0.0, 0.1],
        log_not_ended=[0.0, 0.0],
        kept=[2, 2],
        running=[2, 1],
        best_final=[-math.inf, -2.0],
    )
    assert "search_conf gives up here, with 1 still running" in why_stopped(trace)
