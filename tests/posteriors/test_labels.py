"""Where labels stand, and of which word they are."""

import pytest

from espnet_lenbias.posteriors.labels import (
    label_positions,
    labels_that_say,
    words_of_labels,
)

SOS, EOS, BLANK = 9, 9, 0


def test_positions_of_labels():
    """Of labels that stand twice the last ones count, as nothing but beginnings is cut."""
    assert label_positions([SOS, 1, BLANK, 2, 2, EOS], [1, 2, 2]) == [1, 3, 4]
    assert label_positions([SOS, 1, 2, 1, EOS], [2, 1]) == [2, 3]
    assert label_positions([SOS, EOS], []) == []


def test_spaces_say_nothing():
    text_of = "".join
    assert labels_that_say(["A", " ", "B", "C"], text_of) == [True, False, True, True]
    assert labels_that_say([], text_of) == []


def pieces(tokens):
    return "".join(tokens).replace("▁", " ").strip()


def letters(tokens):
    return "".join(tokens).replace("<space>", " ")


@pytest.mark.parametrize(
    "tokens, text_of, places",
    [
        (["▁the", "▁c", "at"], pieces, [0, 1, 1]),
        (["▁the", "▁", "c", "at", "▁"], pieces, [0, 1, 1, 1, 1]),
        (["a", "<space>", "b", "c"], letters, [0, 0, 1, 1]),
        (["the", "cat"], " ".join, [0, 1]),
        ([], pieces, []),
    ],
)
def test_words_of_labels(tokens, text_of, places):
    n_words = len(text_of(tokens).split())
    assert words_of_labels(tokens, n_words, text_of) == places


def test_texts_that_do_not_grow_word_by_word():
    assert words_of_labels(["b", "a"], 2, lambda tokens: " ".join(tokens[1:])) is None


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\r"])
def test_a_label_of_several_words(space):
    """White space within a label is none to sentencepiece; a word would have no label."""
    for tokens in ([f"a{space}b", "c"], ["c", f"a{space}b"]):
        text = " ".join(tokens)
        assert words_of_labels(tokens, len(text.split()), " ".join) is None
