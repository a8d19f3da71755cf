from espnet_lenbias.report.missing import notes
from tests.report.made import REFERENCES, cells, system


def test_nothing_is_missing():
    row = system()
    assert notes([row], cells((row, {"texts": REFERENCES}))) == []


def test_sixty_rows_are_one_line():
    rows = [system("simple", beam) for beam in range(1, 61)]
    whole = system("explicit_length")
    files = {"texts": REFERENCES}
    found = cells((whole, files), dataset="dev") + cells((whole, files), dataset="test")
    found += cells(*((row, files) for row in rows), dataset="dev")
    (note,) = notes([*rows, whole], found)
    assert note.summary == "nothing is decoded of test (60 rows)"
    assert len(note.details) == 60
    assert note.details[0] == "`simple_1`: nothing of test"


def test_utterances_without_a_hypothesis():
    scores = {"s1-u1": float("nan"), "s1-u2": -1.0, "s2-u3": float("nan")}
    # another one has a text, which counts, whatever its score
    files = {"texts": {**REFERENCES, "s1-u1": ""}, "score": scores}
    row = system()
    (note,) = notes([row], cells((row, files)))
    assert note.summary == (
        "utterances without a hypothesis: dev (1 row); their score is nan, and they "
        "count as empty output"
    )
    assert note.details == ["`simple_4`, dev: 1 of 3 utterances have no hypothesis"]
