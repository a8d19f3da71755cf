"""What a search returns: hypotheses that have ended."""

import math
from collections.abc import Iterable
from typing import Any, Self

import torch

from espnet_lenbias.espnet_compat import Hypothesis as EspnetHypothesis
from espnet_lenbias.search.beam import Beam


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


def nothing_heard(yseq: torch.Tensor, scorers: Iterable[str]) -> Hypothesis:
    """Return the only output that an utterance without frames can have.

    Args:
        yseq: The primer and the end label.
        scorers: The names of those that were not asked.
    """
    return Hypothesis(
        yseq=yseq,
        score=Score(0.0),
        scores={name: Score(0.0) for name in scorers},
        original_score=0.0,
        forced=True,
        stopped="empty",
    )


class EndedHypotheses:
    """All hypotheses that have ended, in the order in which they did.

    Adding costs what is added, however many there are already.
    """

    def __init__(self) -> None:
        self._beams: list[Beam] = []
        self._scores: list[torch.Tensor] = []
        self._utts: list[int] = []
        self._forced: list[bool] = []

    def __len__(self) -> int:
        return len(self._utts)

    def add(self, beam: Beam, score: torch.Tensor, forced: set[int]) -> None:
        """Put hypotheses away.

        Args:
            beam: m of them, the end label on; their spans name the utterances.
            score: (m,) ranking scores.
            forced: The utterances whose hypotheses were made to end: at the limit of
                the length, or because no label was possible.
        """
        if not len(beam):
            return
        self._beams.append(beam)
        self._scores.append(score)
        for utt, start, stop in beam.spans:
            self._utts += [utt] * (stop - start)
            self._forced += [utt in forced] * (stop - start)

    def nbest(
        self, n_utts: int, in_contest: torch.Tensor, nbest: int | None
    ) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each utterance, best first.

        Args:
            n_utts: B.
            in_contest: (len(self),) bool, False for those that no longer are, see
                :meth:`espnet_lenbias.search.rules.EndingRule.in_contest`.
            nbest: How many at most; None: all.
        """
        results: list[list[Hypothesis]] = [[] for _ in range(n_utts)]
        if not self._beams:
            return results
        scores_on_cpu = torch.cat(self._scores).cpu()
        names = list(self._beams[0].scores)
        by_name = [[b.q, *(b.scores[name] for name in names)] for b in self._beams]
        q, *values = torch.stack([torch.cat(x) for x in zip(*by_name)]).tolist()
        scores = dict(zip(names, values))
        flat = torch.cat([b.yseq.flatten() for b in self._beams]).cpu()
        parts = torch.split(flat, [b.yseq.numel() for b in self._beams])
        label_scores = self._label_scores()
        yseqs = [part.view_as(b.yseq) for part, b in zip(parts, self._beams)]
        place = [(k, i) for k, b in enumerate(self._beams) for i in range(len(b))]
        order = scores_on_cpu.argsort(descending=True, stable=True)
        score = scores_on_cpu.tolist()
        for i in order[in_contest[order]].tolist():
            result = results[self._utts[i]]
            if nbest is not None and len(result) >= nbest:
                continue
            k, row = place[i]
            hs = self._beams[k].hs
            result.append(
                Hypothesis(
                    yseq=yseqs[k][row].clone(),
                    score=Score(score[i]),
                    scores={name: Score(s[i]) for name, s in scores.items()},
                    hs=[] if hs is None else list(hs[row]),
                    original_score=q[i],
                    forced=self._forced[i],
                    label_scores=label_scores[k][row].tolist()
                    if label_scores
                    else None,
                )
            )
        return results

    def _label_scores(self) -> list[torch.Tensor] | None:
        """Return (m, N) log-probs of the labels of each beam; None: not asked for."""
        of_beams = [b.label_log_probs for b in self._beams]
        values = [v for v in of_beams if v is not None]
        if not values:
            return None
        flat = torch.cat([v.flatten() for v in values]).cpu()
        parts = torch.split(flat, [v.numel() for v in values])
        return [part.view_as(v) for part, v in zip(parts, values)]
