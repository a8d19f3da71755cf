import pytest

from espnet_lenbias.report.result_values import check_words, shares, times


def test_how_values_are_written():
    assert shares("0.98 1") == [0.98, 1.0]
    assert times("0.120-0.450 0.48-0.91") == [(0.12, 0.45), (0.48, 0.91)]
    assert (shares(""), times("")) == ([], [])


@pytest.mark.parametrize("value", ["0.12", "0.1-x", "0.1-0.2-0.3", "0-nan"])
def test_what_is_no_time(value):
    with pytest.raises(ValueError, match="unpack|float|no time"):
        times(value)


@pytest.mark.parametrize("value", ["nan", "inf", "1.01", "-0.1", "sure"])
def test_what_is_no_confidence(value):
    with pytest.raises(ValueError, match="not from 0 to 1|float"):
        shares(f"0.5 {value}")


def test_values_of_other_words(tmp_path):
    texts = {"a": "one two", "b": ""}
    check_words(tmp_path, texts, "word_times", {"a": [(0, 1), (1, 2)], "b": []})
    check_words(tmp_path, texts, "word_times", {"c": [(0, 1)]})
    message = "a has 2 words in `text` and 1 values in `word_times`"
    with pytest.raises(ValueError, match=message):
        check_words(tmp_path, texts, "word_times", {"a": [(0, 1)]})
