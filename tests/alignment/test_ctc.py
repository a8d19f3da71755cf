"""Forced alignment with CTC, by hand and against all paths that there are."""

import itertools

import pytest
import torch

from espnet_lenbias.alignment.ctc import best_path, ctc_spans, emitted
from espnet_lenbias.alignment.spans import NotAlignedError, Span

BLANK, A, B = 0, 1, 2


def certain(*frames: int) -> torch.Tensor:
    """Return log-probs of CTC that is certain of a label in each frame, (T, 3)."""
    return (
        torch.full((len(frames), 3), 0.01)
        .scatter(1, torch.tensor(frames).unsqueeze(1), 0.98)
        .log()
    )


def test_nan():
    log_probs = certain(A, BLANK, B)
    log_probs[1, 1] = torch.nan
    with pytest.raises(NotAlignedError, match="CTC gives NaN"):
        ctc_spans(log_probs, [A, B], BLANK, 0.04)


def said_by(path, blank: int) -> list[int]:
    """Return the labels that a path puts out."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


@pytest.mark.parametrize(
    "blank, labels",
    [(0, [1]), (0, [1, 1]), (0, [2, 1, 2]), (0, [1, 2, 2]), (2, [0, 1]), (1, [2, 2])],
)
@pytest.mark.parametrize("seed", range(3))
def test_no_path_through_the_labels_is_better(seed, blank, labels):
    torch.manual_seed(seed)
    log_probs = torch.randn(6, 3).log_softmax(-1)

    def score(path):
        return float(sum(row[label] for row, label in zip(log_probs, path)))

    paths = itertools.product(range(3), repeat=6)
    best = max(score(path) for path in paths if said_by(path, blank) == labels)
    found = best_path(log_probs, labels, blank)
    assert said_by(found, blank) == labels
    assert score(found) == pytest.approx(best, abs=1e-5)


def test_frames_of_labels_on_a_path():
    path = [BLANK, A, A, BLANK, A, B, BLANK]
    assert emitted(path, BLANK) == [Span(1, 3), Span(4, 5), Span(5, 6)]
    assert emitted([A], BLANK) == [Span(0, 1)]
    assert emitted([BLANK, BLANK], BLANK) == []


def test_spans_by_hand():
    """A in frame 2, B in frames 5 and 6; all is a frame and a half late.

    So A is from 0.5 to 3.5, where B starts. Frames are of 0.25 s: behind B's last frame,
    which ends at 5.5, there are two more in half a second.
    """
    log_probs = certain(BLANK, BLANK, A, BLANK, BLANK, B, B, *[BLANK] * 5)
    spans = ctc_spans(log_probs, [A, B], BLANK, 0.25)
    assert spans == [Span(0.5, 3.5), Span(3.5, 7.5)]


def test_nothing_starts_before_the_first_frame():
    spans = ctc_spans(certain(A, B, BLANK, BLANK), [A, B], BLANK, 0.04)
    assert spans == [Span(0, 0), Span(0, 4)]


def test_as_many_frames_as_it_takes():
    assert best_path(certain(A, BLANK, A), [A, A], BLANK) == [A, BLANK, A]
    assert best_path(certain(A, B), [A, B], BLANK) == [A, B]


@pytest.mark.parametrize(
    "n_frames, labels, message",
    [
        (2, [A, A], "a frame for each of 2 labels and 1 blanks .* are 2 frames"),
        (2, [A, B, A], "a frame for each of 3 labels, and there are 2 frames"),
    ],
)
def test_too_few_frames(n_frames, labels, message):
    with pytest.raises(NotAlignedError, match=message):
        ctc_spans(certain(*[BLANK] * n_frames), labels, BLANK, 0.04)
