from espnet_lenbias.report.page.alignment import (
    Aligned,
    align_words,
    grid,
    word_kinds,
)

REFERENCE = ["a", "b", "c", "d"]
FIRST = ["a", "x", "c", "d", "e"]  # x for b, and e at the end
SECOND = ["z", "a", "b", "d"]  # z before all, and no c


def cells(row):
    return [(cell["kind"], cell["word"]) for cell in row["cells"]]


def test_each_word_of_the_reference_and_what_is_between():
    assert align_words(REFERENCE, FIRST) == Aligned(
        ["a", "x", "c", "d"], [[], [], [], [], ["e"]]
    )
    assert align_words(REFERENCE, SECOND) == Aligned(
        ["a", "b", None, "d"], [["z"], [], [], [], []]
    )


def test_all_stand_in_the_same_columns():
    both = [align_words(REFERENCE, words) for words in (FIRST, SECOND)]
    found = grid(REFERENCE, both)
    assert found["reference"] == ["", "a", "b", "c", "d", ""]
    first, second = map(cells, found["rows"])
    assert first == [("", ""), *zip("CSCCI", "axcde")]
    assert second == [
        ("I", "z"),
        ("C", "a"),
        ("C", "b"),
        ("D", "c"),
        ("C", "d"),
        ("", ""),
    ]


def test_a_letter_for_each_word_of_the_hypothesis():
    assert word_kinds(REFERENCE, align_words(REFERENCE, FIRST)) == "CSCCI"
    assert word_kinds(REFERENCE, align_words(REFERENCE, SECOND)) == "ICCC"


def test_texts_without_words():
    nothing, said = align_words(["a"], []), align_words([], ["a", "b"])
    assert cells(grid(["a"], [nothing])["rows"][0]) == [("D", "a")]
    assert grid([], [said, align_words([], [])]) == {
        "reference": ["", ""],
        "rows": [
            {"cells": [{"word": "a", "kind": "I"}, {"word": "b", "kind": "I"}]},
            {"cells": [{"word": "", "kind": ""}] * 2},
        ],
    }


def test_words_with_signs_that_the_aligner_could_take_for_more():
    words = ["<unk>", "it's", "a|b", "{x}"]
    assert word_kinds(words, align_words(words, words[:3])) == "CCC"
