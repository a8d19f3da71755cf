"""The limit of repetitions: which labels would repeat a cycle once too often.

========  =====================================================================
n         running hypotheses of all utterances
V         vocabulary size
P         longest cycle that is looked for
W         cycles that can have begun: min(P, labels of the text so far)
========  =====================================================================

The last labels of a text are so many copies of a cycle of p labels where enough of them,
one after the other, are equal to the one p places before. How many is kept for every p
and hypothesis, so that a position costs one comparison with the last labels.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F

from espnet_lenbias.options.repeat_limit import RepeatLimit


class Repeats(NamedTuple):
    """How far running hypotheses repeat themselves; the primer does not count."""

    limit: RepeatLimit
    # (n, W): for p = W, ..., 1 how many labels, the last ones, one after the other, are
    # equal to the one p places before
    counts: torch.Tensor

    def extend(
        self, parents: torch.Tensor, before: torch.Tensor, labels: torch.Tensor
    ) -> "Repeats":
        """Return what holds of extensions.

        Args:
            parents: (m,) which hypotheses are extended.
            before: (m, L) primer and labels of these.
            labels: (m,) the label that each gets.
        """
        width = self.counts.size(1)
        same = self._last(before) == labels.unsqueeze(1)
        counts = (self.counts[parents] + 1) * same
        if width < self.limit.labels:  # for p = W + 1, with no label so far before
            counts = F.pad(counts, (1, 0))
        return Repeats(self.limit, counts)

    def mask(self, scores: torch.Tensor, yseq: torch.Tensor) -> torch.Tensor:
        """Return scores that are -inf for labels that would complete a copy too many.

        Args:
            scores: (n, V) of labels; stay as they are.
            yseq: (n, L) primer and labels of the hypotheses.
        """
        width, times = self.counts.size(1), self.limit.times
        # after `times` copies and all but one label of another: times * p - 1 labels
        # are equal to the one p places before
        most = torch.arange(times * width - 1, -1, -times, device=scores.device)
        added = torch.zeros_like(self.counts, dtype=scores.dtype)
        added = added.masked_fill(self.counts >= most, -math.inf)
        return scores.scatter_add(1, self._last(yseq), added)

    def _last(self, yseq: torch.Tensor) -> torch.Tensor:
        """Return the labels p places before the next one: (n, W), views of (n, L)."""
        return yseq[:, yseq.size(1) - self.counts.size(1) :]


def no_repeats(
    limit: RepeatLimit | None, n: int, device: torch.device
) -> Repeats | None:
    """Return what holds of n hypotheses without labels; None: there is no limit."""
    if limit is None:
        return None
    return Repeats(limit, torch.zeros(n, 0, dtype=torch.int32, device=device))
