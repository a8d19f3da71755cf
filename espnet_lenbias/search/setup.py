"""What a search consists of, as the loop over positions needs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from espnet_lenbias.options.repeat_limit import RepeatLimit
from espnet_lenbias.scorers import Adapter
from espnet_lenbias.search.pre_beam import PreBeam
from espnet_lenbias.search.rules import EndingRule


@dataclass(frozen=True)
class SearchSetup:
    """The scorers and the rule of a search.

    Attributes:
        adapters: Scorer name -> its adapter, in the order in which they are asked: the
            full scorers, then the partial ones.
        weights: Scorer name -> its weight.
        pre_beam: None: partial scorers are asked for all labels.
        rule: What becomes of hypotheses that end.
        beam_size: K.
        eos: The end label.
        nbest: How many hypotheses are returned; None: all that can be.
        label_smoothing: Scorer name -> the label smoothing that is taken out of its
            log-probs; others keep theirs.
        repeat_limit: How often a cycle of labels may repeat; None: as often as it likes.
        keep_label_scores: Whether hypotheses carry the score of each label.
    """

    adapters: Mapping[str, Adapter]
    weights: Mapping[str, float]
    pre_beam: PreBeam | None
    rule: EndingRule
    beam_size: int
    eos: int
    nbest: int | None
    label_smoothing: Mapping[str, float] = field(default_factory=dict)
    repeat_limit: RepeatLimit | None = None
    keep_label_scores: bool = False
