import math

import pytest

from espnet_lenbias.report.scoring import Errors
from espnet_lenbias.report.table1 import score_line, table1, wer_by_beam
from tests.report.made import REFERENCES, cells, system

SIMPLE4, SIMPLE64 = system("simple", 4), system("simple", 64)
PROPOSED4 = system("explicit_length", 4, lm_weight=0.6)
SYSTEMS = [SIMPLE4, SIMPLE64, PROPOSED4]

# of 12 reference words: u2 deleted; u1 and u2 deleted; one word too many
TWO_DELETED = {**REFERENCES, "s1-u2": ""}
EIGHT_DELETED = {"s1-u1": "", "s1-u2": "", "s2-u3": "a b c d"}
ONE_INSERTED = {**REFERENCES, "s2-u3": "a b c d e"}
# one word of u3 is wrong; u1 and u2 are still to come
UNFINISHED = {"s2-u3": "a b c x"}


def dev():
    rows = [
        (SIMPLE4, TWO_DELETED),
        (SIMPLE64, EIGHT_DELETED),
        (PROPOSED4, ONE_INSERTED),
    ]
    return cells(*((row, {"texts": texts}) for row, texts in rows))


def test_a_cell_knows_its_counts_and_which_utterances_are_right():
    simple, _, proposed = dev()
    assert simple.errors == Errors(3, 10, 0, 2, 0)
    assert proposed.errors == Errors(3, 12, 0, 0, 1)
    assert simple.keys == ("s1-u1", "s1-u2", "s2-u3")
    assert simple.right.tolist() == [True, False, True]
    assert simple.complete


def test_an_unfinished_cell_counts_only_what_is_decoded():
    (cell,) = cells((SIMPLE4, {"texts": UNFINISHED}))
    assert (cell.missing, cell.complete) == (2, False)
    assert cell.errors == Errors(1, 3, 1, 0, 0)


def test_a_cell_of_nothing_yet():
    (cell,) = cells((SIMPLE4, {"texts": {}}))
    line = score_line(cell)
    assert (line.utterances, line.missing) == (0, 3)
    assert math.isnan(line.wer) and math.isnan(line.wer_low)


def test_steps_and_failures():
    failed = {"s1-u1": -1.0, "s1-u2": math.nan, "s2-u3": -2.0}
    steps = {"s1-u1": 9, "s1-u2": 0, "s2-u3": 4}
    files = {"texts": TWO_DELETED, "score": failed, "steps": steps}
    (cell,) = cells((SIMPLE4, files))
    line = score_line(cell)
    assert (line.failed, line.steps) == (1, 6.5)


def test_the_line_of_a_cell():
    simple, _, proposed = dev()
    line = score_line(simple)
    assert (line.dataset, line.search, line.beam_size, line.tag) == (
        "dev",
        "simple",
        4,
        "simple_4",
    )
    assert line.wer == pytest.approx(100 * 2 / 12)
    assert (line.insertions, line.deletions, line.substitutions) == (0, 2, 0)
    assert line.mean_reference_words == 4.0
    assert line.mean_words == pytest.approx(10 / 3)
    assert line.length_ratio == pytest.approx(10 / 12)
    assert math.isnan(line.steps)
    # a resample may lack the utterance that is deleted, with (2/3)^3 = 0.3 of chance,
    # and may consist of it alone, with (1/3)^3 = 0.04
    assert (line.wer_low, line.wer_high) == pytest.approx((0.0, 100.0))
    assert (line.deletions_low, line.deletions_high) == (0.0, 6.0)
    assert (line.insertions_low, line.insertions_high) == (0.0, 0.0)
    assert score_line(proposed).lm_weight == 0.6


def test_table_1_has_the_papers_layout_with_the_best_of_each_set_in_bold():
    other = cells(
        (SIMPLE4, {"texts": REFERENCES}),
        (PROPOSED4, {"texts": UNFINISHED}),
        dataset="other",
    )
    table = table1(SYSTEMS, dev() + other, "other")
    assert [line.replace(" ", "") for line in table.splitlines()] == [
        "|search|LM|beam|dev|other|otherins|otherdel|othersub|otherwords|",
        "|---------------|--:|---:|------:|------:|--------:|--------:|--------:|----------:|",
        "|simple|0|4|16.7|**0.0**|0|0|0|4.0|",
        "|simple|0|64|66.7|-|-|-|-|-|",
        "|explicit_length|0.6|4|**8.3**|25.0†|0†|0†|1†|4.0†|",
    ]


def test_an_unfinished_row_is_not_the_best():
    found = cells(
        (SIMPLE4, {"texts": TWO_DELETED}), (PROPOSED4, {"texts": {"s1-u2": "oh yes"}})
    )
    rows = table1([SIMPLE4, PROPOSED4], found, "dev").splitlines()[2:]
    assert "**16.7**" in rows[0]
    assert " 0.0† " in rows[1]


def test_what_is_shown_alike_is_best_alike():
    found = cells((SIMPLE4, {"texts": TWO_DELETED}), (SIMPLE64, {"texts": TWO_DELETED}))
    assert table1([SIMPLE4, SIMPLE64], found, "dev").count("**16.7**") == 2


def test_error_rates_by_beam_have_the_best_of_each_beam_in_bold():
    assert wer_by_beam(SYSTEMS, dev()).splitlines() == [
        "| search          |  LM |  beam 4 |  beam 64 |",
        "| --------------- | --: | ------: | -------: |",
        "| simple          |   0 |    16.7 | **66.7** |",
        "| explicit_length | 0.6 | **8.3** |        - |",
    ]
