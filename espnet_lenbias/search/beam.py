"""The running hypotheses of several utterances as tensors.

========  =====================================================================
n         running hypotheses of all utterances, flat, utterance after utterance
V         vocabulary size, the end label included
L         length of the prefixes, the primer included
T, D      encoder frames, decoder dimension
========  =====================================================================

Nothing here knows of ESPnet or of how hypotheses end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

from espnet_lenbias.options.repeat_limit import RepeatLimit
from espnet_lenbias.scorers.base import Selection, Span, make_spans
from espnet_lenbias.search.repeats import Repeats, no_repeats


@dataclass(frozen=True)
class Beam:
    """The running hypotheses of all utterances that are still being decoded."""

    yseq: torch.Tensor  # (n, L) primer and labels
    q: torch.Tensor  # (n,) accumulated weighted score (eq. 1)
    scores: dict[str, torch.Tensor]  # scorer name -> (n,) accumulated log-prob
    spans: list[Span]  # the rows of each utterance
    hs: torch.Tensor | None = None  # (n, N, D) decoder states, if they are asked for
    # (n, T) attention that each frame has got so far, if it is asked for
    attended: torch.Tensor | None = None
    repeats: Repeats | None = None  # if there is a limit of them
    # (n, N) weighted log-prob of each label, if it is asked for
    label_log_probs: torch.Tensor | None = None

    def __len__(self) -> int:
        return self.yseq.size(0)

    def extend(
        self,
        selection: Selection,
        q: torch.Tensor,
        by_scorer: Mapping[str, torch.Tensor],
        hs: torch.Tensor | None = None,
        attended: torch.Tensor | None = None,
    ) -> "Beam":
        """Return `m` selected one-label extensions of these hypotheses.

        Args:
            selection: Which.
            q: (n, V) scores of all extensions.
            by_scorer: Scorer name -> (n, V) log-prob of each label at this position.
            hs: (n, D) decoder states at this position.
            attended: (n, T) attention that each frame has got, this position counted.
        """
        parents, labels = selection.parents, selection.labels
        if hs is not None:
            hs = hs.unsqueeze(1)
            hs = hs if self.hs is None else torch.cat([self.hs, hs], dim=1)
            hs = hs[parents]
        before = self.yseq[parents]
        repeats = self.repeats
        log_probs = self.label_log_probs
        if log_probs is not None:
            newest = (q[parents, labels] - self.q[parents]).unsqueeze(1)
            log_probs = torch.cat([log_probs[parents], newest], dim=1)
        return Beam(
            yseq=torch.cat([before, labels.unsqueeze(1)], dim=1),
            q=q[parents, labels],
            scores={
                name: self.scores[name][parents] + s[parents, labels]
                for name, s in by_scorer.items()
            },
            spans=selection.spans,
            hs=hs,
            attended=None if attended is None else attended[parents],
            repeats=repeats and repeats.extend(parents, before, labels),
            label_log_probs=log_probs,
        )


def first_beam(
    scorers: Iterable[str],
    x: torch.Tensor,
    primers: torch.Tensor,
    repeat_limit: RepeatLimit | None = None,
    label_log_probs: bool = False,
) -> Beam:
    """Return one hypothesis for each utterance: its primer, with a score of 0.

    Args:
        scorers: Their names.
        x: (B, T, D) encoder output.
        primers: (B, P) labels.
        repeat_limit: How often cycles of labels may repeat; None: as often as they
            like.
        label_log_probs: Whether that of each label is to be kept.
    """
    n_utts = len(x)
    dtype = torch.promote_types(x.dtype, torch.float32)
    zeros = torch.zeros(n_utts, dtype=dtype, device=x.device)
    return Beam(
        yseq=primers,
        q=zeros,
        scores=dict.fromkeys(scorers, zeros),
        spans=make_spans(list(range(n_utts)), [1] * n_utts),
        repeats=no_repeats(repeat_limit, n_utts, x.device),
        label_log_probs=zeros.new_zeros(n_utts, 0) if label_log_probs else None,
    )
