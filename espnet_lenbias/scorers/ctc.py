"""CTC prefix scores of all hypotheses of an utterance in one call.

Each utterance has a prefix scorer of its own over its own frames, ESPnet's
`CTCPrefixScoreTH`. So padding plays no part, the window of `ctc_window_margin` follows one
utterance alone, and utterances may hold different numbers of hypotheses.
"""

from typing import Any, NamedTuple

import torch

from espnet_lenbias.espnet_compat import CTCPrefixScorer, CTCPrefixScoreTH
from espnet_lenbias.scorers.base import Memory, Prefixes, Scores, Selection

# CTCPrefixScoreTH writes -1e10 for log 0; no sum of real log-probs comes near it
_LOG_ZERO = -1.0e9


class State(NamedTuple):
    """The CTC state of all hypotheses, utterance by utterance."""

    impls: list[CTCPrefixScoreTH]  # one for each utterance of the memory
    # utterance -> its first row and the implementation's own state of its hypotheses
    by_utt: dict[int, tuple[int, Any]]


class CTCPrefix:
    """Adapter of ESPnet's `CTCPrefixScorer`."""

    def __init__(self, scorer: CTCPrefixScorer):
        self.scorer = scorer

    def start(self, memory: Memory) -> State:
        """Run the CTC output layer over each utterance."""
        return State(
            [self._impl(memory.first_frames(b)) for b in range(len(memory))], {}
        )

    def _impl(self, frames: torch.Tensor) -> CTCPrefixScoreTH:
        # float32 at least: the recursion sums many small terms, and float16 cannot
        # hold the value that the implementation uses for log 0
        log_probs = self.scorer.ctc.log_softmax(frames.unsqueeze(0))
        log_probs = log_probs.to(torch.promote_types(log_probs.dtype, torch.float32))
        lengths = torch.tensor([len(frames)], device=frames.device)
        margin = getattr(self.scorer, "window_margin", 0)
        return CTCPrefixScoreTH(log_probs, lengths, 0, self.scorer.eos, margin)

    def step(
        self, state: State, prefixes: Prefixes, wanted: torch.Tensor | None = None
    ) -> Scores:
        """Score the wanted labels, and the end label, after each prefix."""
        # the primer is no CTC output: keep one token of it in the place of <sos>
        yseq = prefixes.yseq[:, prefixes.primer_length - 1 :]
        parts, by_utt = [], {}
        for span in prefixes.spans:
            _, old = state.by_utt.get(span.utt, (0, None))
            scores, new = state.impls[span.utt](
                yseq[span.rows], old, None if wanted is None else wanted[span.rows]
            )
            parts.append(scores)
            by_utt[span.utt] = (span.start, new)
        scores = torch.cat(parts)
        scores = scores.masked_fill(scores < _LOG_ZERO, -torch.inf)
        return Scores(scores, State(state.impls, by_utt))

    def select(self, state: State, selection: Selection) -> State:
        """Return the state of the chosen extensions."""
        by_utt = {}
        for span in selection.spans:
            first, (r, log_psi, f_min, f_max, idmap) = state.by_utt[span.utt]
            hyps = selection.parents[span.rows] - first
            labels = selection.labels[span.rows]
            places = labels if idmap is None else idmap[hyps, labels]
            psi = log_psi[hyps, labels].unsqueeze(1).expand(-1, log_psi.size(1))
            by_utt[span.utt] = (span.start, (r[:, :, hyps, places], psi, f_min, f_max))
        return State(state.impls, by_utt)

    def final(self, state: State) -> None:
        """CTC adds nothing when a hypothesis ends."""
        return None
