"""What a search returns: hypotheses, and what they carry."""

import math
from collections.abc import Iterable
from typing import Any, Self

import torch

from espnet_lenbias.espnet_compat import Hypothesis as EspnetHypothesis


class Score(float):
    """A log-prob: a float that can be used as the tensors () of ESPnet's hypotheses."""

    def item(self) -> float:
        """Return the number."""
        return float(self)

    tolist = item

    def cpu(self) -> torch.Tensor:
        """Return the number as a tensor (), float64."""
        return torch.tensor(float(self), dtype=torch.float64)

    detach = cpu


class RatedHypothesis(EspnetHypothesis):
    """ESPnet's hypothesis, with how sure it is and when it is said, where asked for.

    Attributes:
        posterior: The probability of the hypothesis among those of its n-best list;
            None: not asked for.
        word_confidence: A number from 0 to 1 for each word of its text; likewise.
        label_confidence: Likewise for each label of the result.
        word_times: (start, end) in seconds of each word of its text; None: not asked
            for, or not known.
        label_times: Likewise for each label of the result.
    """

    posterior: float | None = None
    word_confidence: list[float] | None = None
    label_confidence: list[float] | None = None
    word_times: list[tuple[float, float]] | None = None
    label_times: list[tuple[float, float]] | None = None

    def _replace(self, **kwargs: Any) -> Self:
        own = {name: kwargs.pop(name, value) for name, value in vars(self).items()}
        replaced: Self = super()._replace(**kwargs)
        replaced.__dict__.update(own)
        return replaced


def as_rated(hypothesis: Any) -> Any:
    """Return a hypothesis that can carry confidence and times.

    Raises:
        TypeError: It is none of ESPnet's beam search.
    """
    if isinstance(hypothesis, RatedHypothesis):
        return hypothesis
    if isinstance(hypothesis, EspnetHypothesis):
        return RatedHypothesis(*hypothesis)
    raise TypeError(f"a {type(hypothesis).__name__} carries no confidence and no times")


class Hypothesis(RatedHypothesis):
    """ESPnet's hypothesis, with more of what the search knows.

    `yseq` is primer, labels, end label; `score` the score it is ranked by (for
    ``explicit_length`` the final score, eq. 4); `scores` the accumulated, unweighted
    log-prob of each scorer; `states` is empty.

    Attributes:
        original_score: q, the weighted sum of `scores` (eq. 1).
        forced: Whether the search had to end it (at the length limit, with nothing
            ended), rather than it having won a place by its end label.
        steps: How many positions the search of its utterance expanded.
        stopped: Why that search stopped, see :class:`espnet_lenbias.Trace`.
        label_scores: The weighted log-prob of each label, the end label counted; None:
            not asked for.
    """

    original_score: float
    forced: bool
    steps: int
    stopped: str
    label_scores: list[float] | None

    def __new__(
        cls,
        *args: Any,
        original_score: float = math.nan,
        forced: bool = False,
        steps: int = 0,
        stopped: str = "",
        label_scores: list[float] | None = None,
        **kwargs: Any,
    ) -> "Hypothesis":
        """Make one; ESPnet's arguments, then its own."""
        self: Hypothesis = super().__new__(cls, *args, **kwargs)
        self.original_score = original_score
        self.forced = forced
        self.steps = steps
        self.stopped = stopped
        self.label_scores = label_scores
        return self


def nothing_heard(
    yseq: torch.Tensor, scorers: Iterable[str], score: float = 0.0
) -> Hypothesis:
    """Return the only output that an utterance without frames can have.

    Args:
        yseq: The primer and the end label.
        scorers: The names of those that were not asked.
        score: -inf where the utterance could not be decoded.
    """
    return Hypothesis(
        yseq=yseq,
        score=Score(score),
        scores={name: Score(score) for name in scorers},
        original_score=score,
        forced=True,
        stopped="empty",
    )
