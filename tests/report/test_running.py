from espnet_lenbias.report.running import (
    Ended,
    Kept,
    Running,
    best_running,
    kept_labels,
)

A, B = 1, 2


def test_all_that_is_kept_follows_the_parents():
    # a and b; then bb before aa, while b ends; then aab, while bb and aa end
    positions = [
        Running([0, 0], [A, B], [-1.0, -2.0]),
        Running([1, 0], [B, A], [-2.0, -3.0], [Ended(1, -4.0)]),
        Running([1], [B], [-5.0], [Ended(0, -2.5), Ended(1, -3.5)]),
    ]
    assert list(kept_labels(positions)) == [
        Kept([[A], [B]], []),
        Kept([[B, B], [A, A]], [[B]]),
        Kept([[A, A, B]], [[B, B], [A, A]]),
    ]


def test_best_running_follows_the_parents():
    # a, b; then bb before aa; then nothing of bb but aab
    positions = [Running([0, 0], [A, B]), Running([1, 0], [B, A]), Running([1], [B])]
    assert list(best_running(positions)) == [[A], [B, B], [A, A, B]]
    assert list(best_running([Running([], [])])) == [[]]
