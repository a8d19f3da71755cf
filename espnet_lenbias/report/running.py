"""What a search has at each position: noted while it runs, and read afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from espnet_lenbias.search.rules import Decision, EndingRule


class Ended(NamedTuple):
    """A hypothesis that ends at a position."""

    parent: int  # its place among the hypotheses that ran on before
    score: float  # what it is ranked by


class Running(NamedTuple):
    """The hypotheses that run on after a position, best first, and those that end there."""

    parents: list[int]  # places among those of the position before
    labels: list[int]
    scores: Sequence[float] = ()  # accumulated (eq. 1)
    ended: Sequence[Ended] = ()


class Kept(NamedTuple):
    """The hypotheses that are kept at a position, in labels."""

    running: list[list[int]]  # best first
    ended: list[list[int]]  # without the end label


@contextmanager
def recorded_running(search: Any) -> Iterator[list[Running]]:
    """Have a search note the hypotheses of each position of one utterance.

    Args:
        search: Of this package.

    Yields:
        A list that fills while the search runs within the context.
    """
    make_rule = search.make_rule
    recording = _RecordingRule(make_rule())
    search.make_rule = lambda: recording
    try:
        yield recording.positions
    finally:
        search.make_rule = make_rule


class _RecordingRule:
    """A rule of ending that notes what is kept, and leaves all else to another one."""

    def __init__(self, rule: EndingRule):
        self._rule = rule
        self.positions: list[Running] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rule, name)

    def step(self, *args: Any) -> tuple[Any, Decision]:
        """See :meth:`EndingRule.step`."""
        state, decision = self._rule.step(*args)
        ended = decision.ended
        running = decision.kept & ~ended
        candidates = decision.candidates
        self.positions.append(
            Running(
                candidates.parents[running].tolist(),
                candidates.labels[running].tolist(),
                candidates.values[running].tolist(),
                [
                    Ended(*pair)
                    for pair in zip(
                        candidates.parents[ended].tolist(),
                        decision.ranking_score[ended].tolist(),
                    )
                ],
            )
        )
        return state, decision


def kept_labels(positions: Sequence[Running]) -> Iterator[Kept]:
    """Yield the labels of the hypotheses of each position."""
    before: list[list[int]] = [[]]
    for position in positions:
        ended = [before[hyp.parent] for hyp in position.ended]
        pairs = zip(position.parents, position.labels, strict=True)
        before = [[*before[parent], label] for parent, label in pairs]
        yield Kept(before, ended)


def best_running(positions: Sequence[Running]) -> Iterator[list[int]]:
    """Yield the labels of the best running hypothesis after each position."""
    for kept in kept_labels(positions):
        yield kept.running[0] if kept.running else []
