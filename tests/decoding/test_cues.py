"""Which words are shown together."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from espnet_lenbias.decoding.cues import Cue, cues
from espnet_lenbias.decoding.transcript import Word


def words(text, start=0.0, each=0.3, gap=0.1):
    """Return the words of a text that is spoken evenly."""
    step = each + gap
    return [
        Word(word, round(start + i * step, 3), round(start + i * step + each, 3))
        for i, word in enumerate(text.split())
    ]


def shown(words):
    return [(round(c.start, 3), round(c.end, 3), list(c.lines)) for c in cues(words)]


def test_nothing_is_said():
    assert cues([]) == []


def test_a_pause_ends_a_cue():
    """Half a second; no cue is shown for less than one, if the next one leaves room."""
    spoken = [*words("a b"), *words("c", 1.2), *words("d", 2.05)]
    assert shown(spoken) == [
        (0.0, 1.0, ["a b"]),
        (1.2, 2.05, ["c"]),
        (2.05, 3.05, ["d"]),
    ]


def test_a_cue_ends_where_a_recording_was_cut():
    """However short the gap."""
    spoken = [*words("a b c"), *words("d e", 1.2)]
    spoken[3] = replace(spoken[3], begins=True)
    assert shown(spoken) == [(0.0, 1.1, ["a b c"]), (1.2, 2.2, ["d e"])]


def test_pieces_that_overlap_are_shown_in_the_order_of_time():
    """As of two people who speak at once: neither's words are among the other's."""
    first, second = words("a b c d e", each=0.6), words("f", 1.5)
    second[0] = replace(second[0], begins=True)
    late = [
        *first[:3],
        *(replace(w, start=w.start + 3, end=w.end + 3) for w in first[3:]),
    ]
    assert shown([*late, *second]) == [
        (0.0, 2.0, ["a b c"]),
        (1.5, 2.5, ["f"]),
        (5.1, 6.4, ["d e"]),
    ]


def test_lines_have_42_signs():
    text = "123456789 123456789 123456789 123456789 12"
    assert shown(words(text, each=0.1, gap=0.0)) == [(0.0, 1.0, [text])]
    assert shown(words(f"{text}3", each=0.1, gap=0.0)) == [
        (0.0, 1.0, [text[:-3], "123"])
    ]


def test_no_cue_is_longer_than_seven_seconds():
    """Of words of 0.5 s 14 are 7 s long; where gaps are the same cues are, too."""
    spoken = words("a b c d e f g h i j k l m n o p q r", each=0.5, gap=0.0)
    assert shown(spoken[:14]) == [(0.0, 7.0, ["a b c d e f g h i j k l m n"])]
    assert shown(spoken) == [
        (0.0, 4.5, ["a b c d e f g h i"]),
        (4.5, 9.0, ["j k l m n o p q r"]),
    ]


def test_the_longest_gap_of_the_second_half_ends_a_cue():
    first = words("a b c d e", each=0.5, gap=0.0)  # to 2.5 s
    second = words("f g h i j", 2.9, each=0.5, gap=0.0)  # to 5.4 s
    third = words("k l m n o", 5.6, each=0.5, gap=0.0)  # to 8.1 s
    assert shown([*first, *second, *third]) == [
        (0.0, 5.4, ["a b c d e f g h i j"]),
        (5.6, 8.1, ["k l m n o"]),
    ]


def test_text_without_spaces_is_cut_into_equal_parts():
    sign = "\u4f60"
    (first, second) = cues([Word(sign * 120, 10.0, 20.0)])
    assert first == Cue(10.0, 15.0, [sign * 42, sign * 18])
    assert second == Cue(15.0, 20.0, [sign * 42, sign * 18])


@pytest.mark.parametrize(
    "sign",
    [
        "e\u0301",  # a letter and its accent
        "\u0e01\u0e34\u0e48",  # of Thai, with a vowel and a tone above
        "\u1780\u17d2\u1781",  # of Khmer, with one below it
        "\U0001f469\u200d\U0001f467",  # a picture of two people
        "\U000f0000",  # what stands in for others
    ],
)
def test_no_line_parts_a_letter_from_what_combines_with_it(sign):
    """What a reader takes for one sign counts as one, too: as the last test but one."""
    (first, second) = cues([Word(sign * 120, 10.0, 20.0)])
    assert first == Cue(10.0, 15.0, [sign * 42, sign * 18])
    assert second == Cue(15.0, 20.0, [sign * 42, sign * 18])
    assert shown([Word("a" + sign * 41, 0.0, 1.0)]) == [(0.0, 1.0, ["a" + sign * 41])]


def test_a_word_that_lasts_too_long_is_shown_for_seven_seconds():
    assert shown([Word("oh", 1.0, 10.0)]) == [(1.0, 8.0, ["oh"])]


def test_words_without_times_are_left_out():
    assert shown([Word("a"), Word("b", 0.0, 1.5)]) == [(0.0, 1.5, ["b"])]


@pytest.mark.parametrize("seed", range(5))
def test_every_word_is_shown_once_and_in_time(seed):
    noise = np.random.default_rng(seed)
    lengths, times = noise.integers(1, 12, 300), noise.exponential(0.4, (300, 2))
    spoken, now = [], 0.0
    for length, (gap, seconds) in zip(lengths, times):
        start = now + gap
        now = start + seconds
        spoken.append(Word("x" * length, start, now))
    found = cues(spoken)
    assert [w for c in found for x in c.lines for w in x.split()] == [
        word.text for word in spoken
    ]
    for cue in found:
        assert 1 <= len(cue.lines) <= 2
        assert max(map(len, cue.lines)) <= 42
        assert 0 < cue.end - cue.start <= 7.0
    for cue, following in pairwise(found):
        assert cue.end <= following.start
