"""The running hypotheses of several utterances as tensors: expand, prune, reorder.

========  =====================================================================
A         utterances still being decoded, each with a slot 0 .. A-1
K         beam size
n         running hypotheses of all slots, flat and slot after slot (ragged)
V         vocabulary size, the end label included
L         length of the prefixes, the primer included
C         candidates kept for each slot
========  =====================================================================

Nothing here knows of ESPnet or of how hypotheses end.
"""

from dataclasses import dataclass

import torch

from espnet_lenbias.scorers.base import Span


@dataclass(frozen=True)
class Beam:
    """The running hypotheses of all slots."""

    yseq: torch.Tensor  # (n, L) primer and labels
    q: torch.Tensor  # (n,) accumulated weighted score (eq. 1)
    scores: dict[str, torch.Tensor]  # scorer name -> (n,) accumulated log-prob
    spans: list[Span]  # one for each slot
    hs: torch.Tensor | None = None  # (n, N, D) decoder states, if they are asked for
    # (n, T) attention that each frame has got so far, if it is asked for
    attended: torch.Tensor | None = None

    def __len__(self) -> int:
        return self.yseq.size(0)

    def extend(
        self,
        parents: torch.Tensor,
        labels: torch.Tensor,
        spans: list[Span],
        q: torch.Tensor,
        label_scores: dict[str, torch.Tensor],
        hs: torch.Tensor | None = None,
        attended: torch.Tensor | None = None,
    ) -> "Beam":
        """Return `m` chosen one-label extensions of these hypotheses.

        Args:
            parents: (m,) rows of the hypotheses that are extended.
            labels: (m,) what each is extended by.
            spans: Where the extensions of each utterance lie among the m.
            q: (n, V) scores of all extensions.
            label_scores: Scorer name -> (n, V) log-prob of each label at this position.
            hs: (n, D) decoder states at this position.
            attended: (n, T) attention that each frame has got, this position counted.
        """
        if hs is not None:
            hs = hs.unsqueeze(1)
            hs = hs if self.hs is None else torch.cat([self.hs, hs], dim=1)
            hs = hs[parents]
        return Beam(
            yseq=torch.cat([self.yseq[parents], labels.unsqueeze(1)], dim=1),
            q=q[parents, labels],
            scores={
                name: self.scores[name][parents] + s[parents, labels]
                for name, s in label_scores.items()
            },
            spans=spans,
            hs=hs,
            attended=None if attended is None else attended[parents],
        )
