import math

import numpy as np
import pytest

from espnet_lenbias.report.scoring import (
    Errors,
    ResampledErrors,
    align,
    count_errors,
    read_text,
)

REFERENCES = {"u1": "the cat sat on the mat", "u2": "yes", "u3": ""}


def test_counts_of_every_kind_of_error():
    # u1: "the bat sat on mat": cat -> bat, the second "the" deleted, 4 hits; u2 and one
    # word more; u3 two words more
    hypotheses = {"u1": "the bat sat on mat", "u2": "yes sir", "u3": "oh no"}
    errors = count_errors(REFERENCES, hypotheses)
    assert errors == Errors(
        utterances=3, hits=5, substitutions=1, deletions=1, insertions=3
    )
    assert errors.reference_words == 7
    assert errors.hypothesis_words == 9
    assert errors.wer == pytest.approx(100 * 5 / 7)
    assert errors.length_ratio == pytest.approx(9 / 7)
    assert errors.mean_words == 3.0
    assert errors.mean_reference_words == pytest.approx(7 / 3)


def test_empty_hypotheses_are_deletions():
    errors = count_errors(REFERENCES, {"u1": "", "u2": "", "u3": ""})
    assert errors == Errors(
        utterances=3, hits=0, substitutions=0, deletions=7, insertions=0
    )
    assert errors.wer == 100.0
    assert errors.length_ratio == 0.0


def test_rates_without_reference_words_are_not_numbers():
    errors = count_errors({"u1": ""}, {"u1": "a b"})
    assert errors.insertions == 2
    assert math.isnan(errors.wer)
    assert math.isnan(errors.length_ratio)
    assert errors.mean_words == 2.0


def test_no_utterances_at_all():
    assert count_errors({}, {}) == Errors(0, 0, 0, 0, 0)
    assert math.isnan(count_errors({}, {}).mean_words)


def test_a_hypothesis_without_reference_does_not_count():
    assert count_errors({"u2": "yes"}, {"u2": "yes", "u9": "no"}) == Errors(
        1, 1, 0, 0, 0
    )


def test_a_missing_hypothesis_is_an_error_that_names_it():
    with pytest.raises(
        ValueError, match="no hypothesis for 1 of 3 utterances, e.g. u2"
    ):
        count_errors(REFERENCES, {"u1": "the cat", "u3": ""})


def test_text_file_with_empty_texts(tmp_path):
    path = tmp_path / "text"
    path.write_text("u1 the cat  sat \nu2\nu3 \n\nu4\tÜber alles\n", encoding="utf-8")
    assert read_text(path) == {
        "u1": "the cat  sat",
        "u2": "",
        "u3": "",
        "u4": "Über alles",
    }


def test_text_file_with_a_key_twice(tmp_path):
    path = tmp_path / "text"
    path.write_text("u1 a\nu1 b\n")
    with pytest.raises(ValueError, match="two lines for u1"):
        read_text(path)


def test_align_counts_utterance_by_utterance():
    said = ["the cat sat on the mat", "yes", ""]
    heard = ["the bat sat on mat", "yes sir", "oh no"]
    # hits, substitutions, deletions, insertions
    assert align(said, heard).tolist() == [[4, 1, 1, 0], [1, 0, 0, 1], [0, 0, 0, 2]]


def test_words_are_what_white_space_parts_and_nothing_is_normalised():
    assert align(["a\tb  c"], ["a b\u3000c"]).tolist() == [[3, 0, 0, 0]]
    assert align(["Don't stop."], ["don't stop"]).tolist() == [[0, 2, 0, 0]]


def test_rates_of_several_selections_at_once():
    errors = ResampledErrors(2, *np.array([[3, 0], [1, 0], [0, 0], [1, 2]]))
    assert errors.wer[0] == pytest.approx(50.0)
    assert math.isnan(errors.wer[1])
    assert errors.mean_words.tolist() == [2.5, 1.0]


def test_a_carriage_return_alone(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"k0 A\r\nk1 A\rB C\n")
    message = f"{path}, line 2 holds a carriage return alone"
    with pytest.raises(ValueError, match=message):
        read_text(path)


def test_a_text_file_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfu1 a b\r\nu2 \xc3\xa9\n\nu3\n")
    assert read_text(path) == {"u1": "a b", "u2": "\u00e9", "u3": ""}


def test_a_text_file_with_a_nul(tmp_path):
    (tmp_path / "text").write_bytes(b"a one\nb two\n\0\0")
    with pytest.raises(ValueError, match="text, line 3 holds a NUL, which is no text"):
        read_text(tmp_path / "text")


@pytest.mark.parametrize("data", [b"u1 a\nu2 \xe9t\xe9\n", "u1 a\nu".encode("utf-16")])
def test_a_text_file_in_another_encoding(tmp_path, data):
    path = tmp_path / "text"
    path.write_bytes(data)
    line = 2 if data.startswith(b"u1") else 1
    with pytest.raises(ValueError, match=f"text, line {line} is no text in UTF-8"):
        read_text(path)
