"""Frames cut into runs by the attention of labels: by hand and against all cuts."""

import itertools

import numpy as np
import pytest

from espnet_lenbias.alignment.attention import attention_spans, cut, following_heads
from espnet_lenbias.alignment.spans import NotAlignedError, Span

# Two labels and the end: frame 0 is silence, the end takes the last one.
BY_HAND = np.array(
    [
        [0.0, 0.5, 0.5, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.1, 0.1, 0.8, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.3, 0.7],
    ]
)


def held(attention, starts) -> float:
    ends = [*starts[1:], attention.shape[1]]
    return sum(w[a:b].sum() for w, a, b in zip(attention, starts, ends))


def test_a_cut_by_hand():
    """The first label's run ends before frame 3: that is worth 1.0 + 0.9 + 0.7."""
    assert cut(BY_HAND) == [0, 3, 5]
    assert held(BY_HAND, [0, 3, 5]) == pytest.approx(2.6)


@pytest.mark.parametrize("seed", range(10))
def test_no_cut_holds_more(seed):
    rng = np.random.default_rng(seed)
    n, t = int(rng.integers(1, 5)), int(rng.integers(5, 8))
    attention = rng.dirichlet(np.ones(t), size=n)
    cuts = [[0, *c] for c in itertools.combinations(range(1, t), n - 1)]
    best = max(held(attention, starts) for starts in cuts)
    starts = cut(attention)
    assert starts in cuts
    assert held(attention, starts) == pytest.approx(best)


def test_as_many_labels_as_frames():
    assert cut(np.eye(3)[::-1]) == [0, 1, 2]
    assert cut(np.ones((1, 1))) == [0]


def test_silence_before_a_label_is_not_the_labels():
    """Of six frames one that gets less than a sixth is not listened to.

    The second label's run starts with frame 3, which gets 0.1.
    """
    spans = attention_spans(BY_HAND[None], 0.04)
    assert spans == [Span(1, 4), Span(4, 5), Span(5, 6)]


def test_a_label_that_listens_to_nothing_in_its_run():
    """It is where it listens most."""
    one = [[1.0, 0, 0, 0], [0.9, 0, 0.1, 0], [0, 0, 0, 1.0]]
    assert attention_spans(np.array([one]), 0.04) == [
        Span(0, 2),
        Span(2, 3),
        Span(3, 4),
    ]


def test_heads_that_follow_the_audio():
    """One does, one listens to all frames alike, one to the first only."""
    t = 8
    follows = np.eye(4).repeat(2, axis=1) / 2
    alike = np.full((4, t), 1 / t)
    first = np.zeros((4, t))
    first[:, 0] = 1.0
    # all of its attention; 8/8 of 1/8 each by 4 labels: a quarter; one label of four
    assert following_heads(np.stack([alike, follows, first])) == [1]
    assert following_heads(np.stack([alike, alike])) == [0, 1]


def test_a_head_follows_with_half_of_what_the_best_one_holds():
    more = np.array([[0.51, 0.49], [0.49, 0.51]])
    assert following_heads(np.stack([np.eye(2), more, more[::-1]])) == [0, 1]


def test_heads_are_averaged():
    """Their mean is cut where neither head is, nor the larger weight of both.

    A cut before frame 1, 2 or 3 is worth, to both labels together,
    1.6, 1.5 and 1.2 of the early head; 1.1, 1.3 and 1.5 of the late one;
    1.35, 1.4 and 1.35 of the mean; 1.9, 1.8 and 2.0 of the larger weights.
    """
    early = np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 0.5, 0.3, 0.2]])
    late = np.array([[0.1, 0.4, 0.5, 0.0], [0.0, 0.2, 0.3, 0.5]])
    assert (cut(early), cut(late)) == ([0, 1], [0, 3])
    assert attention_spans(np.stack([early, late]), 0.04) == [Span(0, 2), Span(2, 4)]


def test_nan():
    with pytest.raises(NotAlignedError, match="the attention holds NaN"):
        attention_spans(np.full((1, 2, 4), np.nan), 0.04)


def test_more_labels_than_frames():
    with pytest.raises(NotAlignedError, match="3 labels, the end counted, .* 2 frames"):
        attention_spans(np.full((1, 3, 2), 0.5), 0.04)
