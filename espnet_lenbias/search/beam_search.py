"""The two searches, as ESPnet's inference objects take them.

:mod:`espnet_lenbias.search.loop` holds the loop over positions that both share, and
:mod:`.explicit_length_rule` and :mod:`.simple_rule` the rules in which they differ.
"""

from collections.abc import Mapping
from typing import Any

from espnet_lenbias.options.repeat_limit import RepeatLimit, read_repeat_limit
from espnet_lenbias.options.search_conf import (
    Coverage,
    ExplicitLengthOptions,
    SimpleOptions,
    coverage_term,
)
from espnet_lenbias.search.explicit_length_rule import ExplicitLengthRule
from espnet_lenbias.search.label_synchronous import LabelSynchronousSearch
from espnet_lenbias.search.simple_rule import SimpleRule


class ExplicitLengthBeamSearch(LabelSynchronousSearch):
    """Beam search with an explicit length model (the paper's Algorithm 1).

    Ended hypotheses are ranked by log p(a, len=N | x), the final score of eq. 4, and
    leave the beam; the search stops as soon as none that runs on could win.
    """

    options: ExplicitLengthOptions

    def __init__(
        self,
        *args: Any,
        nbest: int | None = None,
        score_threshold: float | None = None,
        exact_nbest: bool = False,
        label_smoothing: float = 0.0,
        stop_margin: float | None = None,
        stop_length: float | None = None,
        repeat_limit: RepeatLimit | Mapping[str, int] | int | None = None,
        **kwargs: Any,
    ):
        """Make a search.

        Args:
            *args: As for :class:`LabelSynchronousSearch`: those of ESPnet's BeamSearch.
            nbest: How many hypotheses to return; None: all that have ended.
            score_threshold: Drop candidates so far below the best of their position.
            exact_nbest: Search on until the whole n-best list is certain.
            stop_margin: Stop when no running q is above the best ended one's minus this;
                not safe by proof.
            stop_length: Stop behind this factor times the length of the best ended one,
                and 20 positions more; not safe by proof.
            label_smoothing: Of the decoder's training, to be taken out of its scores.
            repeat_limit: How many times a cycle of labels may stand in a row, see
                :class:`espnet_lenbias.options.repeat_limit.RepeatLimit`.
            **kwargs: Likewise.
        """
        options = ExplicitLengthOptions(
            nbest,
            score_threshold,
            exact_nbest,
            label_smoothing,
            stop_margin,
            stop_length,
            read_repeat_limit(repeat_limit),
        )
        super().__init__(*args, **kwargs, options=options)
        self.label_smoothing = options.label_smoothing
        self.repeat_limit = options.repeat_limit

    def make_rule(self) -> ExplicitLengthRule:
        """Return what becomes of hypotheses that end."""
        return ExplicitLengthRule(self.options, self.beam_size, self.eos)


class SimpleBeamSearch(LabelSynchronousSearch):
    """Simple beam search, with the heuristics that the paper compares with.

    Ended hypotheses stay in the beam with their score frozen and compete for its places;
    the best is the one of highest ranking score.
    """

    options: SimpleOptions

    def __init__(
        self,
        *args: Any,
        nbest: int | None = None,
        length_norm: bool = False,
        eos_threshold: float | None = None,
        length_reward: float = 0.0,
        keep_ended: str = "joint",
        coverage: Coverage | Mapping[str, float] | None = None,
        length_penalty: float | None = None,
        patience: float | None = None,
        label_smoothing: float = 0.0,
        repeat_limit: RepeatLimit | Mapping[str, int] | int | None = None,
        **kwargs: Any,
    ):
        """Make a search.

        Args:
            *args: As for :class:`LabelSynchronousSearch`: those of ESPnet's BeamSearch.
            nbest: How many hypotheses to return; None: all ended ones in the beam.
            length_norm: Rank and prune by the score divided by the length.
            eos_threshold: Let a hypothesis end only where the end label's log-prob is
                above this factor times the best other label's.
            length_reward: Added to the ranking score for each label.
            keep_ended: "joint" or "separate" places for ended and running hypotheses.
            coverage: {weight: ..., threshold: ...} of the coverage term, see
                :class:`espnet_lenbias.options.search_conf.Coverage`.
            length_penalty: Rank and prune by the score divided by the length to the
                power of this.
            patience: With "separate" places: stop when this times K hypotheses have
                ended.
            label_smoothing: Of the decoder's training, to be taken out of its scores.
            repeat_limit: How many times a cycle of labels may stand in a row, see
                :class:`espnet_lenbias.options.repeat_limit.RepeatLimit`.
            **kwargs: Likewise.
        """
        options = SimpleOptions(
            nbest,
            length_norm,
            eos_threshold,
            length_reward,
            keep_ended,
            coverage_term(coverage),
            length_penalty=length_penalty,
            patience=patience,
            label_smoothing=label_smoothing,
            repeat_limit=read_repeat_limit(repeat_limit),
        )
        super().__init__(*args, **kwargs, options=options)
        self.label_smoothing = options.label_smoothing
        self.repeat_limit = options.repeat_limit

    def make_rule(self) -> SimpleRule:
        """Return what becomes of hypotheses that end."""
        return SimpleRule(self.options, self.beam_size, self.eos)
