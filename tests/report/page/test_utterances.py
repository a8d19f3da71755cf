import math

from espnet_lenbias.report.page.utterances import (
    Chosen,
    asked_for,
    spoken,
    utterance,
    worst,
)
from tests.report.made import REFERENCES, cells, system

# of 6, 2 and 4 words: 6, 0 and 1 errors, then 0, 1 and 1
BAD = {"s1-u1": "", "s1-u2": "oh yes", "s2-u3": "a b c"}
GOOD = {**REFERENCES, "s1-u2": "oh", "s2-u3": "a b c"}
FOUND = cells(
    (system("simple", 4), {"texts": BAD}),
    (system("simple", 8), {"texts": GOOD}),
    (
        system("explicit_length", 8),
        {"texts": GOOD, "word_confidence": {"s2-u3": [0.9, 0.12345, 1.0]}},
    ),
)
OTHER = cells((system("simple", 4), {"texts": {"s1-u2": ""}}), dataset="eval")


def test_those_with_the_most_errors_come_first():
    # s1-u1 has 6, 0, 0; s1-u2 0, 1, 1; s2-u3 1, 1, 1; of eval s1-u2 has 2
    ranked = [
        Chosen("dev", "s1-u1"),
        Chosen("eval", "s1-u2"),
        Chosen("dev", "s2-u3"),
        Chosen("dev", "s1-u2"),
    ]
    assert worst([*FOUND, *OTHER], 4) == ranked
    assert worst([*FOUND, *OTHER], None) == ranked
    assert worst([*FOUND, *OTHER], 1) == ranked[:1]


def test_those_that_are_asked_for():
    assert asked_for([*FOUND, *OTHER], ["s2-u3", "s1-u2"]) == [
        Chosen("dev", "s2-u3"),
        Chosen("dev", "s1-u2"),
        Chosen("eval", "s1-u2"),
    ]
    assert asked_for(OTHER, ["s2-u3"]) == []  # in the references, and not decoded


def test_an_utterance():
    found = utterance(
        FOUND, Chosen("dev", "s2-u3"), lambda chosen: {"problem": chosen.key}
    )
    assert {
        k: found[k] for k in ("dataset", "key", "words", "errors", "fewest", "most")
    } == {
        "dataset": "dev",
        "key": "s2-u3",
        "words": 4,
        "errors": 1.0,
        "fewest": 1,
        "most": 1,
    }
    (line,) = found["grid"]["rows"]  # all three have found the same
    names = ["simple, beam 4", "simple, beam 8", "explicit_length, beam 8"]
    assert (line["names"], line["errors"]) == (names, 1)
    assert [cell["kind"] for cell in line["cells"]] == ["C", "C", "C", "D"]
    player = found["player"]
    assert player["audio"] == {"problem": "s2-u3"}
    # of the last more is known, which is shown first
    assert player["rows"] == [
        {
            "names": names[:2],
            "text": "a b c",
            "kinds": "CCC",
            "times": None,
            "confidence": None,
        },
        {
            "names": names[2:],
            "text": "a b c",
            "kinds": "CCC",
            "times": None,
            "confidence": [0.9, 0.123, 1.0],
        },
    ]
    assert player["shown"] == 1


def test_errors_are_counted_for_each_search():
    found = utterance(FOUND, Chosen("dev", "s1-u1"), lambda _: None)
    assert (found["errors"], found["fewest"], found["most"]) == (2.0, 0, 6)
    assert [line["errors"] for line in found["grid"]["rows"]] == [6, 0]


def test_words_at_their_times():
    row = spoken("a b", "CS", [(0.1, 0.25), (0.3, 0.5)], [1.0, 0.5])
    assert row == {
        "text": "a b",
        "kinds": "CS",
        "times": [[0.1, 0.25], [0.3, 0.5]],
        "confidence": [1.0, 0.5],
    }
    assert spoken("")["times"] is None
    assert spoken("a b", confidence=[math.nan, 0.5])["confidence"] == [None, 0.5]


def test_cells_that_have_not_decoded_it_are_left_out():
    part = cells((system("simple", 16), {"texts": {"s1-u1": "the"}}))
    found = utterance([*FOUND, *part], Chosen("dev", "s1-u2"), lambda _: None)
    assert [row["names"] for row in found["grid"]["rows"]] == [
        ["simple, beam 4"],
        ["simple, beam 8", "explicit_length, beam 8"],
    ]
