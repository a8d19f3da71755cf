import pytest

from espnet_lenbias.compare.compare import Result
from espnet_lenbias.compare.summary import (
    ErrorLine,
    TranscriptLine,
    error_lines,
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
    assert most_shortened(RESULTS, "simple") == "u1"
    assert most_shortened([r for r in RESULTS if r.beam_size == 4], "simple") == "u2"


def test_transcript_lines_are_those_of_one_utterance():
    assert transcript_lines(RESULTS, "u2") == [
        TranscriptLine("simple", 4, -2.0, -1.0, 2, ""),
        TranscriptLine("simple", 64, -2.0, -1.0, 8, "x"),
        TranscriptLine("explicit_length", 4, -2.0, -0.5, 2, "a b"),
    ]
