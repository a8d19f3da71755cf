import math
from dataclasses import dataclass

from espnet_lenbias.report.tables import (
    column,
    markdown_grid,
    markdown_table,
    write_csv,
)


@dataclass(frozen=True)
class Line:
    name: str = column("search")
    beam: int = column("beam")
    wer: float = column("WER %", ".1f")


LINES = [Line("simple", 4, 9.26), Line("a|b", 256, 100.0)]


def test_markdown_lines_up_with_numbers_to_the_right():
    assert markdown_table(LINES).splitlines() == [
        "| search | beam | WER % |",
        "| ------ | ---: | ----: |",
        "| simple |    4 |   9.3 |",
        r"| a\|b   |  256 | 100.0 |",
    ]


def test_csv_has_field_names_and_unrounded_values(tmp_path):
    write_csv(tmp_path / "t.csv", LINES)
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "name,beam,wer",
        "simple,4,9.26",
        "a|b,256,100.0",
    ]


def test_markdown_of_some_fields_and_of_what_is_not_known():
    lines = [Line("simple", 4, math.nan), Line("x", 16, 9.0)]
    assert markdown_table(lines, leave_out=["name"]).splitlines() == [
        "| beam | WER % |",
        "| ---: | ----: |",
        "|    4 |     - |",
        "|   16 |   9.0 |",
    ]


def test_a_grid_of_texts():
    table = markdown_grid(["search", "LM", "dev"], [["a|b", "0", "**7.0**"]])
    assert table.splitlines() == [
        "| search |  LM |     dev |",
        "| ------ | --: | ------: |",
        r"| a\|b   |   0 | **7.0** |",
    ]
