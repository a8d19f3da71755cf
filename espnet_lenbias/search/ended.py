"""The hypotheses that have ended, put away until the search stops."""

import torch

from espnet_lenbias.search.beam import Beam
from espnet_lenbias.search.hypotheses import Hypothesis, Score


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
        yseqs = _on_cpu([b.yseq for b in self._beams])
        log_probs = [b.label_log_probs for b in self._beams]
        # of each beam, or none: not asked for
        label_scores = _on_cpu([v for v in log_probs if v is not None])
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


def _on_cpu(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Fetch tensors of one dtype from the device, in one piece."""
    if not tensors:
        return []
    flat = torch.cat([t.flatten() for t in tensors]).cpu()
    parts = torch.split(flat, [t.numel() for t in tensors])
    return [part.view_as(t) for part, t in zip(parts, tensors)]
