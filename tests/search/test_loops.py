"""What counts as a loop: some labels four times, one right behind the other."""

import random

import pytest

from espnet_lenbias.search.loops import loops


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", False),
        ("aaa", False),
        ("aaaa", True),
        ("xaaaay", True),
        ("aabaab" * 2, True),
        ("abcabcabcab", False),
        ("abcabcabcabc", True),
        ("xyabcabcabcabcz", True),
        ("abababa", False),
        ("aabbaabbaabb", False),
    ],
)
def test_by_hand(text, expected):
    assert loops(text) == loops(list(text)) == expected


@pytest.mark.parametrize("seed", range(50))
def test_against_all_parts_of_a_text(seed):
    draw = random.Random(seed)
    times = draw.choice([2, 3, 4])
    text = "".join(draw.choices("ab", k=draw.randint(0, 16)))
    parts = [
        text[i : i + n]
        for n in range(1, len(text) + 1)
        for i in range(len(text) - n + 1)
    ]
    assert loops(text, times) == any(part * times in text for part in parts)
