import math
from dataclasses import dataclass

from espnet_lenbias.report.page.tables import page_table
from espnet_lenbias.report.tables import column


@dataclass(frozen=True)
class Line:
    name: str = column("name")
    text: str = column("transcript")
    wer: float = column("WER %", ".1f")
    wer_low: float = column("from", ".1f")
    wer_high: float = column("to", ".1f")
    count: int = column("ins")
    count_low: float = column("from", ".0f")
    count_high: float = column("to", ".0f")
    difference: float = column("difference", "+.2f")
    low: float = column("from", "+.2f")
    high: float = column("to", "+.2f")


LINES = [
    Line("a", "x" * 50, 12.345, 10.0, 15.0, 3, 1.0, 4.0, -1.5, -2.0, -1.0),
    Line("b", "y", math.nan, math.nan, math.nan, 0, 0.0, 0.0, math.inf, -1.0, 1.0),
]


def test_intervals_stand_beside_what_they_are_of():
    table = page_table("t", "Title", "About.", LINES)
    assert (table["name"], table["title"], table["about"]) == ("t", "Title", "About.")
    assert [(x["title"], x["kind"]) for x in table["columns"]] == [
        ("name", ""),
        ("transcript", "long"),
        ("WER %", "number"),
        ("ins", "number"),
        ("difference", "number"),
    ]
    first, second = table["rows"]
    assert [(x["text"], x["interval"]) for x in first[2:]] == [
        ("12.3", "10.0 to 15.0"),
        ("3", "1 to 4"),
        ("-1.50", "-2.00 to -1.00"),
    ]
    assert [(x["text"], x["interval"]) for x in second[2:4]] == [
        ("-", ""),
        ("0", "0 to 0"),
    ]


def test_columns_are_sorted_by_unrounded_values_and_json_has_them():
    first, second = page_table("t", "", "", LINES)["rows"]
    assert [x["value"] for x in first[2:]] == [12.345, 3, -1.5]
    assert [x["value"] for x in second[2:]] == [None, 0, None]  # NaN and infinity


def test_columns_that_are_left_out():
    table = page_table("t", "", "", LINES, {"text", "name"})
    assert [x["title"] for x in table["columns"]] == ["WER %", "ins", "difference"]
    assert [len(row) for row in table["rows"]] == [3, 3]
