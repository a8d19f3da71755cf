import pytest

from espnet_lenbias.report.bootstrap import RESAMPLES
from espnet_lenbias.report.paired import paired_lines
from tests.report.made import REFERENCES, cells, system

SIMPLE4, SIMPLE64 = system("simple", 4), system("simple", 64)
TUNED4 = system("simple + x", 4, search="simple")
PROPOSED64 = system("explicit_length", 64)
THRESHOLD4 = system("explicit_length + x", 4, search="explicit_length")
WITH_LM = system("simple", 32, lm_weight=0.6)

ALL_WRONG = dict.fromkeys(REFERENCES, "")
TWO_WRONG = {**REFERENCES, "s1-u2": ""}


def lines(*rows):
    return paired_lines(cells(*((row, {"texts": texts}) for row, texts in rows)))


def test_against_the_best_of_the_same_beam_and_of_any():
    same_beam, any_beam = lines(
        (SIMPLE4, ALL_WRONG),
        (TUNED4, TWO_WRONG),
        (SIMPLE64, ALL_WRONG),
        (PROPOSED64, REFERENCES),
    )
    assert (same_beam.search, same_beam.beam_size) == ("explicit_length", 64)
    assert (same_beam.other, same_beam.other_beam_size) == ("simple", 64)
    assert (same_beam.wer, same_beam.other_wer) == (0.0, 100.0)
    assert same_beam.difference == same_beam.low == same_beam.high == -100.0
    assert same_beam.p == pytest.approx(2 / (RESAMPLES + 1))
    assert (any_beam.other, any_beam.other_beam_size) == ("simple + x", 4)
    assert any_beam.difference == pytest.approx(-100 * 2 / 12)


def test_p_values_are_corrected_for_all_tests_on_the_set():
    same_beam, any_beam = lines(
        (TUNED4, TWO_WRONG), (SIMPLE64, ALL_WRONG), (PROPOSED64, REFERENCES)
    )
    # no resample has fewer errors than none: of two, the smaller p counts twice
    assert same_beam.p < any_beam.p < 1
    assert same_beam.p_holm == pytest.approx(2 * same_beam.p)
    assert any_beam.p_holm == any_beam.p
    (alone,) = lines((SIMPLE64, ALL_WRONG), (PROPOSED64, REFERENCES))
    assert alone.p_holm == alone.p == same_beam.p


def test_rows_with_the_same_output_do_not_differ():
    (line,) = lines((SIMPLE64, TWO_WRONG), (PROPOSED64, TWO_WRONG))
    assert (line.difference, line.low, line.high, line.p) == (0.0, 0.0, 0.0, 1.0)


def test_rows_with_other_models_and_other_rows_of_the_search_are_no_rivals():
    found = lines(
        (WITH_LM, REFERENCES),
        (SIMPLE64, ALL_WRONG),
        (PROPOSED64, TWO_WRONG),
        (THRESHOLD4, REFERENCES),
    )
    assert [(x.search, x.other, x.other_lm_weight) for x in found] == [
        ("explicit_length", "simple", 0.0),
        ("explicit_length + x", "simple", 0.0),
    ]


def test_a_best_other_of_the_same_beam_is_there_once():
    (line,) = lines(
        (SIMPLE64, TWO_WRONG), (SIMPLE4, ALL_WRONG), (PROPOSED64, REFERENCES)
    )
    assert (line.other, line.other_beam_size) == ("simple", 64)


def test_rows_that_are_not_finished_are_not_compared():
    half = {"s1-u1": ""}
    assert lines((SIMPLE64, half), (PROPOSED64, REFERENCES)) == []
    assert lines((SIMPLE64, REFERENCES), (PROPOSED64, half)) == []


def test_sets_come_one_after_the_other():
    rows = [(SIMPLE64, {"texts": TWO_WRONG}), (PROPOSED64, {"texts": REFERENCES})]
    found = cells(*rows, dataset="other") + cells(*rows, dataset="dev")
    assert [line.dataset for line in paired_lines(found)] == ["dev", "other"]
