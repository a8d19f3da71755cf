"""The scores of one position: what all scorers say of the running hypotheses.

Symbols and shapes are those of :mod:`espnet_lenbias.search.beam`.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from espnet_lenbias.errors import ScorerError
from espnet_lenbias.scorers import Prefixes
from espnet_lenbias.search.beam import Beam
from espnet_lenbias.search.pre_beam import PreBeam
from espnet_lenbias.search.rectification import rectified
from espnet_lenbias.search.setup import SearchSetup


class LabelScores(NamedTuple):
    """What the scorers say of the labels at one position."""

    by_scorer: dict[str, torch.Tensor]  # name -> (n, V) log-probs
    # (n, V) their weighted sum, in float32 or better; -inf for one repetition too many
    weighted: torch.Tensor
    states: dict[str, Any]  # of the scorers, for `select`
    hs: torch.Tensor | None  # (n, D) hidden states of the decoder, if wanted
    # (n, T) attention that each frame has got, this position counted, if wanted
    attended: torch.Tensor | None

    @property
    def of_extensions(
        self,
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor | None, torch.Tensor | None]:
        """What the chosen extensions inherit, as :meth:`Beam.extend` takes it."""
        return self.by_scorer, self.hs, self.attended


def score_labels(
    setup: SearchSetup,
    beam: Beam,
    states: Mapping[str, Any],
    primer_length: int,
    end_masked: torch.Tensor | None,
) -> LabelScores:
    """Ask all scorers; the partial ones for what the pre-beam of the others leaves.

    Args:
        setup: Whose scorers are asked.
        beam: The n running hypotheses.
        states: Scorer name -> its state.
        primer_length: How many of their labels are the primer.
        end_masked: (n,) bool, which hypotheses may not end; None: all may.
    """
    prefixes = Prefixes(beam.yseq, beam.spans, primer_length)
    by_scorer: dict[str, torch.Tensor] = {}
    new_states: dict[str, Any] = {}
    weighted: torch.Tensor | None = None
    hs = attention = part_ids = None
    for name, adapter in setup.adapters.items():
        pre_beam = setup.pre_beam
        if pre_beam and part_ids is None and name in pre_beam.part_scorers:
            by = weighted if pre_beam.key == "full" else by_scorer[pre_beam.key]
            assert by is not None  # full scorers come first
            if beam.repeats is not None:
                by = beam.repeats.mask(by, beam.yseq)
            part_ids = _pre_beam_ids(by, pre_beam, end_masked, setup.eos)
        result = adapter.step(states[name], prefixes, part_ids)
        scores = result.scores.to(beam.q.dtype)
        if name in setup.label_smoothing:
            scores = rectified(scores, setup.label_smoothing[name])
        final = adapter.final(result.state)
        if final is not None:
            scores = scores.clone()
            scores[:, setup.eos] += final
        by_scorer[name], new_states[name] = scores, result.state
        hs = result.hs if result.hs is not None else hs
        if attention is None and result.attention is not None:
            attention = result.attention.to(beam.q.dtype)  # sums of many small numbers
        weighted = _add(weighted, scores, setup.weights[name])
    if attention is not None and beam.attended is not None:
        attention = beam.attended + attention
    assert weighted is not None  # a search has a scorer: see LabelSynchronousSearch
    if beam.repeats is not None:
        weighted = beam.repeats.mask(weighted, beam.yseq)
    return LabelScores(by_scorer, weighted, new_states, hs, attention)


def _add(
    total: torch.Tensor | None, scores: torch.Tensor, weight: float
) -> torch.Tensor:
    """Add weighted (n, V) scores to a total, None standing for zeros."""
    if total is None:
        return scores if weight == 1.0 else weight * scores
    return total.add(scores, alpha=weight)


def _pre_beam_ids(
    scores: torch.Tensor, pre_beam: PreBeam, end_masked: torch.Tensor | None, eos: int
) -> torch.Tensor:
    """Return the labels that partial scorers are asked for, (n, S).

    Args:
        scores: (n, V) what chooses them.
        pre_beam: How many.
        end_masked: (n,) bool, where the end label takes no place.
        eos: The end label.
    """
    if end_masked is not None:
        scores = scores.clone()
        scores[:, eos].masked_fill_(end_masked, -math.inf)
    return scores.topk(pre_beam.size, dim=1).indices


def with_possible_ends(
    scores: LabelScores, only_end: torch.Tensor, slot: torch.Tensor, eos: int
) -> LabelScores:
    """Return scores by which an utterance can end, for those that have to.

    Where the end label is impossible for all hypotheses of one, such as within a segment
    of OWSM's, it is not scored, as in ESPnet.

    Args:
        scores: Those of this position.
        only_end: (n,) bool, which hypotheses have to end.
        slot: (n,) the utterance of each, from 0 on.
        eos: The end label.
    """
    ends = scores.weighted[:, eos]
    best = torch.full_like(ends, -math.inf).scatter_reduce(0, slot, ends, "amax")
    unscored = only_end & (best[slot] == -math.inf)
    by_scorer = {name: s.clone() for name, s in scores.by_scorer.items()}
    weighted = scores.weighted.clone()
    for values in (weighted, *by_scorer.values()):
        values[:, eos].masked_fill_(unscored, 0.0)
    return scores._replace(by_scorer=by_scorer, weighted=weighted)


def extension_scores(
    beam: Beam,
    weighted: torch.Tensor,
    eos: int,
    end_masked: torch.Tensor | None,
    only_end: torch.Tensor | None,
) -> torch.Tensor:
    """Return q of all one-label extensions, the accumulated weighted score (eq. 1).

    Args:
        beam: The n running hypotheses.
        weighted: (n, V) weighted log-probs of the labels at this position.
        eos: The end label.
        end_masked: (n,) bool, which hypotheses may not end; None: all may.
        only_end: (n,) bool, which may do nothing else, masked or not; None: none.

    Returns:
        (n, V), -inf for what may not be at this position.
    """
    q = beam.q.unsqueeze(1) + weighted
    if end_masked is not None:
        masked = end_masked if only_end is None else end_masked & ~only_end
        q[:, eos].masked_fill_(masked, -math.inf)
    if only_end is not None:
        others = torch.arange(q.size(1), device=q.device) != eos
        q.masked_fill_(only_end.unsqueeze(1) & others, -math.inf)
    return q


def check_scores(scores: LabelScores, beam: Beam, length: int) -> None:
    """Verify scores before they are used: where nothing else looks at them."""
    weighted = scores.weighted
    if weighted.isnan().any() or (weighted == math.inf).any():
        raise_invalid_score(scores, beam, length)


def raise_invalid_score(scores: LabelScores, beam: Beam, length: int) -> None:
    """Raise a ScorerError that says which scorer returned what cannot be ranked.

    Args:
        scores: Those of position N, of which one is NaN or plus infinity.
        beam: The hypotheses that were scored.
        length: N.
    """
    for name, values in scores.by_scorer.items():
        for utt, start, stop in beam.spans:
            part = values[start:stop]
            if part.isnan().any() or (part == math.inf).any():
                raise ScorerError(
                    f"scorer '{name}' returned NaN or +inf at position {length} of "
                    f"utterance {utt} of the batch: look at its weights and its dtype"
                )
    raise ScorerError(
        f"the weighted sum of {sorted(scores.by_scorer)}, and of what search_conf adds to "
        f"it, is NaN or +inf at position {length}: a weight is too large, or one is "
        "negative of a scorer that returned -inf"
    )
