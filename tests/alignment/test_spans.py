"""Spans of frames, by hand."""

import pytest

from espnet_lenbias.alignment.spans import (
    FrameRate,
    Span,
    filled,
    frame_rate,
    until_next,
    word_spans,
)


def test_frames_and_audio_end_together():
    assert frame_rate(2.0, 0.0, 50) == FrameRate(0.04, 50, 2.0)


@pytest.mark.parametrize(
    "duration, expected",
    [
        (10.0, FrameRate(0.02, 500, 10.0)),
        (10.01, FrameRate(0.02, 501, 10.01)),  # half a frame more
        (0.14, FrameRate(0.02, 7, 0.14)),  # 7.000000000000001 by division
        (0.001, FrameRate(0.02, 1, 0.001)),
        (31.0, FrameRate(0.02, 1500, 30.0)),  # the last second is cut off
    ],
)
def test_a_window_has_silence_behind_the_audio(duration, expected):
    assert frame_rate(duration, 30.0, 1500) == expected


def test_no_time_lies_behind_the_end():
    rate = FrameRate(0.04, 3, 0.1)
    assert rate.times([Span(0, 1.5), Span(2, 3)]) == [(0.0, 0.06), (0.08, 0.1)]


def test_a_label_goes_on_until_the_next_but_not_through_a_silence():
    """Frames of 0.1 s: five of them may follow the last one that tells of a label."""
    assert until_next([0, 4, 20], [2, 6, 22], 24, 0.1) == [
        Span(0, 4),
        Span(4, 11),
        Span(20, 24),
    ]


def test_labels_that_are_not_said_take_no_time():
    a, b = Span(2, 4), Span(5, 6)
    assert filled([None, a, None, b, None]) == [
        Span(2, 2),
        a,
        Span(4, 4),
        b,
        Span(6, 6),
    ]
    assert filled([None]) == [Span(0, 0)]
    assert filled([]) == []


def test_words_have_the_time_of_their_labels():
    spans = [Span(0, 2), Span(2, 5), Span(7, 8)]
    assert word_spans(list(zip(spans, [0, 0, 1])), 2) == [Span(0, 5), Span(7, 8)]


def test_a_symbol_in_a_word_does_not_count_beside_what_is_said():
    """A word of OWSM's can have a symbol before it, such as one of a language."""
    spans = [Span(0, 0), Span(3, 5), Span(5, 5), Span(5, 5)]
    assert word_spans(list(zip(spans, [0, 0, 0, 1])), 2) == [Span(3, 5), Span(5, 5)]


def test_no_words():
    assert word_spans([], 0) == []
