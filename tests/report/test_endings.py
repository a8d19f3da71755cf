"""How outputs end, counted by hand."""

import math

from espnet_lenbias.report.command import main
from espnet_lenbias.report.endings import ending_line, worth_showing
from tests.report.made import REFERENCES, cells, system, write_lines, write_system


def line(**files):
    (cell,) = cells((system("simple"), {"texts": REFERENCES, **files}))
    return ending_line(cell)


def counts(x):
    return (x.utterances, x.loops, x.empty, x.at_limit, x.forced)


def test_counts():
    texts = {"s1-u1": "a a a a", "s1-u2": "", "s2-u3": ""}
    score = {"s1-u1": -1.0, "s1-u2": -1.0, "s2-u3": math.nan}  # the last one failed
    stopped = {"s1-u1": "forced", "s1-u2": "limit", "s2-u3": ""}
    found = line(texts=texts, score=score, stopped=stopped, loops={"s1-u1"})
    assert counts(found) == (3, 1, 1, 1, 1)
    assert worth_showing([line(), found])


def test_a_search_that_says_nothing_of_how_it_stopped():
    found = line()
    assert counts(found)[:3] == (3, 0, 0)
    assert math.isnan(found.at_limit) and math.isnan(found.forced)
    assert math.isnan(line(stopped=dict.fromkeys(REFERENCES, "")).forced)
    assert not worth_showing([found])


def test_nothing_of_the_kind():
    found = line(stopped=dict.fromkeys(REFERENCES, "bound"))
    assert counts(found) == (3, 0, 0, 0, 0)
    assert not worth_showing([found])


def test_in_the_report(tmp_path):
    write_lines(tmp_path / "data" / "dev" / "text", REFERENCES)
    config = {"search": "explicit_length", "ctc_weight": 0.0, "lm_weight": 0.0}
    texts = {**REFERENCES, "s1-u2": "oh oh oh oh yes"}
    for beam, why in ((4, "bound"), (8, "forced")):
        files = {"text": texts, "stopped": dict.fromkeys(texts, why)}
        row = {**config, "beam_size": beam}
        write_system(tmp_path / "exp", f"row_{beam}", row, {"dev": files})
    assert main([str(tmp_path / "exp"), "--data", str(tmp_path / "data")]) == 0
    report = tmp_path / "exp" / "report"
    text = (report / "report.md").read_text()
    assert "repeat_limit: 3" in text
    rows = [x.replace(" ", "") for x in text.splitlines()]
    assert "|dev|explicit_length|0|4|3|1|0|0|0|" in rows
    assert "|dev|explicit_length|0|8|3|1|0|0|3|" in rows
    assert (report / "endings.csv").read_text().splitlines() == [
        "dataset,search,lm_weight,beam_size,utterances,loops,empty,at_limit,forced",
        "dev,explicit_length,0.0,4,3,1,0,0,0",
        "dev,explicit_length,0.0,8,3,1,0,0,3",
    ]
