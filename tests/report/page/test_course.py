import math

import pytest

from espnet_lenbias.report.page.course import course_charts, positions
from espnet_lenbias.search.trace import Trace

# .4 ends at N = 1; of the .6 left half at N = 2, which leaves .3
PROPOSED = Trace(
    "bound",
    p_end=[0.4, 0.5],
    log_not_ended=[0.0, math.log(0.6)],
    kept=[2, 3],
    running=[1, 3],
    best_final=[-math.inf, math.log(0.4)],
)
SIMPLE = Trace("ended", kept=[2, 2], running=[2, 0], best_final=[-math.inf, -1.5])


def test_what_there_is_at_each_position():
    first, second = positions(PROPOSED)
    assert first == {
        "n": 1,
        "p_end": 0.4,
        "not_ended": pytest.approx(0.6),
        "kept": 2,
        "running": 1,
        "ended": 1,
        "best_final": None,  # nothing yet: JSON has no infinity
    }
    assert second["not_ended"] == pytest.approx(0.3)
    assert second["best_final"] == math.log(0.4)
    assert positions(SIMPLE)[1] == {
        "n": 2,
        "kept": 2,
        "running": 0,
        "ended": 2,
        "best_final": -1.5,
    }
    assert positions(Trace("empty")) == []


def test_the_chart_of_an_explicit_length_model():
    (chart,) = course_charts(positions(PROPOSED))
    values = chart["spec"]["data"]["values"]
    assert [(x["n"], x["series"], x["value"]) for x in values] == [
        (1, "ending probability", 0.4),
        (1, "not ended yet", pytest.approx(0.6)),
        (1, "best final score", 0.0),  # exp of minus infinity
        (2, "ending probability", 0.5),
        (2, "not ended yet", pytest.approx(0.3)),
        (2, "best final score", pytest.approx(0.4)),
    ]
    assert chart["spec"]["params"] == [{"name": "N", "value": 2}]


def test_the_charts_of_simple_search():
    places, best = (chart["spec"] for chart in course_charts(positions(SIMPLE)))
    assert [(x["n"], x["series"], x["value"]) for x in places["data"]["values"]] == [
        (1, "ended", 0),
        (1, "running", 2),
        (2, "ended", 2),
        (2, "running", 0),
    ]
    assert [(x["n"], x["value"]) for x in best["data"]["values"]] == [(2, -1.5)]
