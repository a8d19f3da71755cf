from dataclasses import replace

import pytest

from espnet_lenbias.compare.compare import Result
from espnet_lenbias.compare.summary import (
    ErrorLine,
    TranscriptLine,
    error_lines,
    errors_of,
    most_shortened,
    transcript_lines,
)


def result(utterance, search, beam, reference, text, steps=1, seconds=1.0, score=-1.0):
    return Result(
        "dev", utterance, search, beam, reference, text, -2.0, score, steps, seconds
    )


RESULTS = [
    result("u1", "simple", 4, "a b c", "a b", steps=3, seconds=0.1),
    result("u1", "simple", 64, "a b c", "b", steps=4, seconds=0.4),
    result("u1", "explicit_length", 4, "a b c", "a b c d", steps=5, seconds=0.2),
    result("u2", "simple", 4, "a b", "", steps=2, seconds=0.3),
    result("u2", "simple", 64, "a b", "x", steps=8, seconds=0.6),
    result("u2", "explicit_length", 4, "a b", "a b", steps=2, seconds=0.2, score=-0.5),
]


def test_error_lines_pool_the_utterances_of_each_search_and_beam():
    simple4, simple64, explicit = error_lines(RESULTS, "all")
    # 3 of 5 reference words deleted; 1 hit, 1 substituted, 3 deleted; 5 hits, 1 inserted
    assert simple4 == ErrorLine(
        "all", "simple", 4, 60.0, 0, 3, 0, 1.0, 0.4, 2.5, pytest.approx(0.2)
    )
    assert simple64 == ErrorLine(
        "all", "simple", 64, 80.0, 0, 3, 1, 1.0, 0.4, 6.0, pytest.approx(0.5)
    )
    assert explicit == ErrorLine(
        "all", "explicit_length", 4, 20.0, 1, 0, 0, 3.0, 1.2, 3.5, pytest.approx(0.2)
    )


def test_most_shortened_counts_words_lost_at_the_largest_beam():
    # at beam 64 u1 loses 2 words and u2 one; at beam 4 u2 loses more
    assert most_shortened(RESULTS, "simple") == ("dev", "u1")
    of_4 = [r for r in RESULTS if r.beam_size == 4]
    assert most_shortened(of_4, "simple") == ("dev", "u2")


def test_transcript_lines_are_those_of_one_utterance():
    assert transcript_lines(RESULTS, "dev", "u2") == [
        TranscriptLine("simple", 4, -2.0, -1.0, 2, ""),
        TranscriptLine("simple", 64, -2.0, -1.0, 8, "x"),
        TranscriptLine("explicit_length", 4, -2.0, -0.5, 2, "a b"),
    ]


def test_sets_can_share_keys():
    """10 words without an error in one set, and 2 of 2 deleted in the other: 2 of 12."""
    ten = " ".join("abcdefghij")
    results = [
        replace(result("u1", "simple", 4, "a b", ""), dataset="other"),
        result("u1", "simple", 4, ten, ten),
    ]
    errors = errors_of(results)
    assert (errors.reference_words, errors.deletions) == (12, 2)
    assert errors.wer == pytest.approx(100 * 2 / 12)
    assert most_shortened(results, "simple") == ("other", "u1")
    (line,) = transcript_lines(results, "dev", "u1")
    assert line.text == ten
