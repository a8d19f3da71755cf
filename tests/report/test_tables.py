import math
from dataclasses import dataclass

import pytest

from espnet_lenbias.report.tables import (
    column,
    escape,
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


@pytest.mark.parametrize(
    "text, markdown",
    [
        ("<unk> <space>", r"\<unk\> \<space\>"),
        ("*x* **y**", r"\*x\* \*\*y\*\*"),
        ("a|b `c` \\", r"a\|b \`c\` \\"),
        ("_a_ explicit_length __b a_", r"\_a\_ explicit_length \_\_b a\_"),
        ("[a](b) ~~c~~ &lt; $d$", r"\[a\](b) \~\~c\~\~ \&lt; \$d\$"),
        ("two\nlines  here", "two lines here"),
        ("NINETEEN BOOTS, LM 0.6 (1.5)", "NINETEEN BOOTS, LM 0.6 (1.5)"),
        ("\u4f60_\u597d", "\u4f60_\u597d"),
    ],
)
def test_what_markdown_shows_is_the_text(text, markdown):
    assert escape(text) == markdown
    table = markdown_table([Line(text, 4, 9.26)]).splitlines()
    assert table[2] == f"| {markdown.ljust(6)} |    4 |   9.3 |"
    grid = markdown_grid([text, "dev"], [[text, "**7.0**"]]).splitlines()
    assert grid[0].startswith(f"| {markdown} ")
    assert grid[2] == f"| {markdown} | **7.0** |"
    on_terminal = markdown_table([Line(text, 4, 9.26)], on_terminal=True)
    assert on_terminal.splitlines()[2] == f"| {text.ljust(6)} |    4 |   9.3 |" or (
        "\n" in text
    )


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
