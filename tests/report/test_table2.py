import pytest

from espnet_lenbias.report.table2 import (
    ExampleLine,
    example_lines,
    find_utterances,
    home,
    most_different,
    steps_table,
)
from tests.report.made import REFERENCES, cells, system

SIMPLE, PROPOSED = system("simple"), system("explicit_length")

SHORT = {"s1-u1": "the", "s1-u2": "oh yes", "s2-u3": "a b"}


def test_most_different_in_length():
    # 6, 2 and 4 words against 1, 2 and 2
    found = cells((SIMPLE, {"texts": SHORT}), (PROPOSED, {"texts": REFERENCES}))
    assert most_different(found, 2) == ["s1-u1", "s2-u3"]
    assert most_different(found, 9) == ["s1-u1", "s2-u3", "s1-u2"]


def test_utterances_that_are_level_are_taken_by_id():
    found = cells((PROPOSED, {"texts": REFERENCES}))
    assert most_different(found, 2) == ["s1-u1", "s1-u2"]


def test_unfinished_rows_do_not_choose():
    rows = [(SIMPLE, {"texts": {"s2-u3": ""}}), (PROPOSED, {"texts": REFERENCES})]
    assert most_different(cells(*rows), 1) == ["s1-u1"]
    assert most_different(cells(rows[0]), 1) == []


def test_example_lines_have_scores_and_steps():
    files = {
        "texts": SHORT,
        "score": {"s1-u1": -0.5},
        "original_score": {"s1-u1": -2.5},
        "steps": {"s1-u1": 7},
    }
    found = cells((SIMPLE, files), (PROPOSED, {"texts": {"s2-u3": "a"}}))
    assert example_lines(found, "s1-u1") == [
        ExampleLine("dev", "simple", 0.0, 4, "s1-u1", -2.5, -0.5, 7, "the")
    ]


def test_utterances_that_are_in_no_set():
    decodings = [cell.decoding for cell in cells((SIMPLE, {"texts": {}}))]
    find_utterances(decodings, ["s1-u1", "s2-u3"])
    with pytest.raises(ValueError, match="--utterances: no set has zz-1, zz-2$"):
        find_utterances(decodings, ["s1-u1", "zz-1", "zz-2"])


def test_mean_steps_by_system_and_set():
    steps = {"s1-u1": 9, "s1-u2": 4, "s2-u3": 5}
    found = cells((SIMPLE, {"texts": SHORT, "steps": steps}))
    half = {"texts": {"s1-u1": "the"}, "steps": {"s1-u1": 9}}
    found += cells((PROPOSED, half), dataset="other")
    assert steps_table([SIMPLE, PROPOSED], found).splitlines() == [
        "| search          |  LM | beam | dev | other |",
        "| --------------- | --: | ---: | --: | ----: |",
        "| simple          |   0 |    4 | 6.0 |     - |",
        "| explicit_length |   0 |    4 |   - |  9.0† |",
    ]


def test_an_utterance_of_several_sets_is_shown_from_the_first():
    rows = (SIMPLE, {"texts": SHORT})
    one_more = {**REFERENCES, "s9": "z"}
    sets = {
        "dev": cells(rows, dataset="dev"),
        "other": cells(rows, dataset="other", references=one_more),
    }
    assert home("s1-u1", sets, "other") is sets["other"]
    assert home("s1-u1", sets, "dev") is sets["dev"]
    assert home("s9", sets, "dev") is sets["other"]
