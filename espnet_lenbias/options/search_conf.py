"""What each search can be told beyond ESPnet's own options; no torch in here.

These are the keys of ``search_conf`` in a decode config. Values are verified once, when
an options object is made, so that a mistake shows before any model is loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from espnet_lenbias.options.espnet_options import LARGE
from espnet_lenbias.options.repeat_limit import RepeatLimit, read_repeat_limit
from espnet_lenbias.options.values import check_keys, count, number, switch

# The values of `keep_ended`; see :class:`SimpleOptions`.
KEEP_ENDED = ("joint", "separate")

# What the options below can be, for people to read.
POSSIBLE_VALUES = {
    "nbest": "a whole number of 1 or more",
    "score_threshold": "a number of 0 or more",
    "exact_nbest": "true or false",
    "stop_margin": "a number of 0 or more",
    "stop_length": "a number of 1 or more",
    "repeat_limit": "a whole number of 1 or more, or {times: such a number, labels: "
    "such a number}",
    "length_norm": "true or false",
    "eos_threshold": "a number above 0",
    "length_reward": "a number from -1e6 to 1e6",
    "keep_ended": " or ".join(KEEP_ENDED),
    "coverage": "{weight: a number, threshold: a number of 0 or more, or left out}",
    "length_penalty": "a number from -10 to 10",
    "patience": "a number above 0, up to 1000",
    "label_smoothing": "a number from 0 to 1",
}


@dataclass(frozen=True)
class ExplicitLengthOptions:
    """Options of the search with an explicit length model (the paper's Algorithm 1)."""

    # How many hypotheses are returned, best first; None: all that have ended.
    nbest: int | None = None
    # Candidates more than this below the best of their position are dropped before the
    # beam size applies (8 is the paper's value for its "optimal" row); None: no
    # pruning.
    score_threshold: float | None = None
    # Stop only when no later hypothesis can enter the n-best list (of `nbest`); without
    # it, as soon as none can become the best one.
    exact_nbest: bool = False
    # The label smoothing that the decoder was trained with, which is taken out of its
    # distribution (see :mod:`espnet_lenbias.search.rectification`); 0: nothing is.
    label_smoothing: float = 0.0
    # Earlier stops, none of them safe by proof; None: none. Stop when no running
    # hypothesis has a q above that of the best ended one minus this: some of the length
    # bias comes back with it.
    stop_margin: float | None = None
    # Stop behind the position that is this factor times the labels of the best ended
    # one, and 20 more.
    stop_length: float | None = None
    # No cycle of labels stands more often than so many times in a row; None: any may.
    repeat_limit: RepeatLimit | None = None

    def __post_init__(self) -> None:
        if self.nbest is not None:
            _put(self, nbest=count("nbest", self.nbest))
        _put(self, label_smoothing=_smoothing(self.label_smoothing))
        if self.score_threshold is not None:
            wanted = "a number of 0 or more (a log-prob)"
            threshold = number(
                "score_threshold", self.score_threshold, wanted, lambda t: t >= 0
            )
            _put(self, score_threshold=threshold)
        _put(self, exact_nbest=switch("exact_nbest", self.exact_nbest))
        if self.exact_nbest and self.nbest is None:
            raise ValueError(
                "exact_nbest needs nbest: it is the nbest-th best it waits for"
            )
        for key, least in (("stop_margin", 0), ("stop_length", 1)):
            value = getattr(self, key)
            if value is None:
                continue
            _put(self, **{key: _at_least(least, key, value)})
            if self.exact_nbest:
                raise ValueError(
                    f"{key} may stop before the n-best list is certain, which "
                    "exact_nbest waits for: leave one of them out"
                )
        _put(self, repeat_limit=read_repeat_limit(self.repeat_limit))

    @property
    def stops_early(self) -> bool:
        """Whether the search may stop while a later hypothesis could still win."""
        return self.stop_margin is not None or self.stop_length is not None


@dataclass(frozen=True)
class Coverage:
    """How much of the audio the attention has seen, as a term of the ranking score."""

    # What the term is multiplied by.
    weight: float
    # The term is the number of frames whose summed attention is above this (Chorowski
    # and Jaitly); None: the sum over frames of log(min(summed attention, 1)) (Wu et
    # al.).
    threshold: float | None = None

    def __post_init__(self) -> None:
        _put(self, weight=_within(LARGE, "coverage.weight", self.weight))
        if self.threshold is not None:
            wanted = "a number of 0 or more"
            threshold = number(
                "coverage.threshold", self.threshold, wanted, lambda t: t >= 0
            )
            _put(self, threshold=threshold)


def coverage_term(value: Any) -> Coverage | None:
    """Return what the `coverage` of a config says; None: there is none."""
    if value is None or isinstance(value, Coverage):
        return value
    form = "{weight: ..., threshold: ...}"
    if not isinstance(value, Mapping):
        raise ValueError(f"coverage must be a mapping {form}, not {value!r}")
    check_keys("coverage", value, [field.name for field in fields(Coverage)])
    if "weight" not in value:
        raise ValueError(f"coverage needs a weight: say coverage: {form}")
    return Coverage(**value)


@dataclass(frozen=True)
class SimpleOptions:
    """Options of simple beam search: the heuristics that the paper compares with."""

    # How many hypotheses are returned, best first; None: all that are in the beam.
    nbest: int | None = None
    # Rank and prune by the score divided by the length N (an ended one by its own N).
    length_norm: bool = False
    # The end label is allowed only where its log-prob exceeds this factor times the
    # best other log-prob (around 1.5); None: always.
    eos_threshold: float | None = None
    # Added to the ranking score for each label, the end label included. Beside
    # `length_norm` it shifts every rank alike and so changes nothing.
    length_reward: float = 0.0
    # "joint": ended and running hypotheses compete for the same K places. "separate":
    # each kind has K places of its own, and only the length limit stops the search, or
    # `patience`.
    keep_ended: str = "joint"
    # A coverage term, {weight: ..., threshold: ...}; None: none.
    coverage: Coverage | None = None
    # Rank and prune by the score divided by the length N to the power of this: 1 is
    # `length_norm`; None: not.
    length_penalty: float | None = None
    # With ended ones kept apart: stop as soon as this times K hypotheses have ended,
    # each of them better than the worst one that runs on (Kasai et al.); None: go on.
    patience: float | None = None
    # As for the search with an explicit length model.
    label_smoothing: float = 0.0
    # No cycle of labels stands more often than so many times in a row; None: any may.
    repeat_limit: RepeatLimit | None = None

    @property
    def length_exponent(self) -> float:
        """The power of the length N that scores are divided by; 0: they are not."""
        return 1.0 if self.length_norm else self.length_penalty or 0.0

    def __post_init__(self) -> None:
        if self.nbest is not None:
            _put(self, nbest=count("nbest", self.nbest))
        _put(self, label_smoothing=_smoothing(self.label_smoothing))
        _put(self, length_norm=switch("length_norm", self.length_norm))
        if self.eos_threshold is not None:
            wanted = "a factor above 0 (around 1.5)"
            factor = number(
                "eos_threshold", self.eos_threshold, wanted, lambda f: f > 0
            )
            _put(self, eos_threshold=factor)
        _put(self, length_reward=_within(LARGE, "length_reward", self.length_reward))
        if self.keep_ended not in KEEP_ENDED:
            names = " or ".join(map(repr, KEEP_ENDED))
            raise ValueError(f"keep_ended must be {names}, not {self.keep_ended!r}")
        _put(self, coverage=coverage_term(self.coverage))
        if self.length_penalty is not None:
            _put(
                self, length_penalty=_within(10, "length_penalty", self.length_penalty)
            )
            if self.length_norm:
                raise ValueError(
                    "length_norm is length_penalty: 1: leave one of the two out"
                )
        if self.patience is not None:
            wanted = "a number above 0, up to 1000 (1 to 5 is usual)"
            patience = number(
                "patience", self.patience, wanted, lambda p: 0 < p <= 1000
            )
            _put(self, patience=patience)
            if self.keep_ended != "separate":
                raise ValueError(
                    "patience counts hypotheses that have ended and are kept apart: say "
                    "keep_ended: separate"
                )
        _put(self, repeat_limit=read_repeat_limit(self.repeat_limit))


def _smoothing(value: float) -> float:
    """Return the label smoothing, checked."""
    wanted = "a number from 0 to 1 (the lsm_weight of the training)"
    return number("label_smoothing", value, wanted, lambda s: 0 <= s <= 1)


def _at_least(least: int, key: str, value: object) -> float:
    """Return a number that has to be no less than `least`."""
    return number(key, value, f"a number of {least} or more", lambda x: x >= least)


def _within(most: float, key: str, value: object) -> float:
    """Return a number that is no larger than `most`, nor smaller than minus that."""
    wanted = f"a number from {-most:g} to {most:g}"
    return number(key, value, wanted, lambda x: abs(x) <= most)


def _put(options: object, **values: object) -> None:
    """Set fields of a frozen options object that is being made."""
    for name, value in values.items():
        object.__setattr__(options, name, value)
