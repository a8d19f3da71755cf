"""What each search can be told beyond ESPnet's own options; no torch in here.

These are the keys of ``search_conf`` in a decode config. Values are verified once, when
an options object is made, so that a mistake shows before any model is loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, TypeGuard

# What the options of a tool's searches begin with: its own, and that for the source
# text of a translation.
_PREFIXES = ("", "asr_")


def _require(ok: bool, key: str, value: object, wanted: str) -> None:
    if not ok:
        raise ValueError(f"{key} must be {wanted}, not {value!r}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def _verify_count(key: str, value: object) -> None:
    ok = type(value) is int and value >= 1
    _require(ok, key, value, "a whole number of 1 or more")


def _verify_nbest(nbest: object) -> None:
    if nbest is not None:
        _verify_count("nbest", nbest)


def verify_counts(options: Mapping[str, object]) -> None:
    """Verify those of ESPnet's inference options that say how many.

    Raises:
        ValueError: Names the option.
    """
    for key in ("beam_size", "nbest", "batch_size", "asr_beam_size", "asr_nbest"):
        _verify_count(key, options.get(key, 1))


def verify_weights_and_lengths(options: Mapping[str, object]) -> None:
    """Verify those of ESPnet's inference options that no value of its own restricts.

    Raises:
        ValueError: Names the option.
    """
    for prefix in _PREFIXES:
        _verify_weight(f"{prefix}ctc_weight", options)
        for key in ("lm_weight", "ngram_weight", "penalty"):
            weight = options.get(f"{prefix}{key}", 0.0)
            _require(_is_number(weight), f"{prefix}{key}", weight, "a number")
        _verify_lengths(f"{prefix}minlenratio", f"{prefix}maxlenratio", options)


def _verify_weight(key: str, options: Mapping[str, Any]) -> None:
    weight = options.get(key, 0.5)
    ok = _is_number(weight) and 0 <= weight <= 1
    _require(ok, key, weight, f"from 0 to 1 (the decoder weighs 1 - {key})")


def _verify_lengths(minimum: str, maximum: str, options: Mapping[str, Any]) -> None:
    shortest, longest = options.get(minimum, 0.0), options.get(maximum, 0.0)
    for key, ratio in ((maximum, longest), (minimum, shortest)):
        _require(_is_number(ratio), key, ratio, "a number")
    if _exceeds(shortest, longest):
        raise ValueError(
            f"{minimum} {shortest} asks for a longer output than {maximum} {longest} "
            "allows (positive: labels per encoder frame, 0 standing for 1; negative: "
            "labels)"
        )


def _exceeds(shortest: float, longest: float) -> bool:
    """Tell whether a length ratio is above another one of its kind."""
    longest = longest or 1.0
    if shortest < 0 and longest < 0:
        return -shortest > -longest
    return shortest > longest > 0


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

    def __post_init__(self) -> None:
        _verify_nbest(self.nbest)
        t = self.score_threshold
        ok = t is None or (_is_number(t) and t >= 0)
        _require(ok, "score_threshold", t, "a number of 0 or more (a log-prob)")
        _require(
            isinstance(self.exact_nbest, bool),
            "exact_nbest",
            self.exact_nbest,
            "true or false",
        )
        if self.exact_nbest and self.nbest is None:
            raise ValueError(
                "exact_nbest needs nbest: it is the nbest-th best it waits for"
            )


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
        _require(_is_number(self.weight), "coverage.weight", self.weight, "a number")
        t = self.threshold
        ok = t is None or (_is_number(t) and t >= 0)
        _require(ok, "coverage.threshold", t, "a number of 0 or more")


def coverage_term(value: Any) -> Coverage | None:
    """Return what the `coverage` of a config says; None: there is none."""
    if value is None or isinstance(value, Coverage):
        return value
    keys = [field.name for field in fields(Coverage)]
    ok = isinstance(value, Mapping) and "weight" in value and set(value) <= set(keys)
    _require(ok, "coverage", value, "a mapping {weight: ..., threshold: ...}")
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
    # each kind has K places of its own, and only the length limit stops the search.
    keep_ended: str = "joint"
    # A coverage term, {weight: ..., threshold: ...}; None: none.
    coverage: Coverage | None = None

    def __post_init__(self) -> None:
        _verify_nbest(self.nbest)
        _require(
            isinstance(self.length_norm, bool),
            "length_norm",
            self.length_norm,
            "true or false",
        )
        f = self.eos_threshold
        ok = f is None or (_is_number(f) and f > 0)
        _require(ok, "eos_threshold", f, "a factor above 0 (around 1.5)")
        _require(
            _is_number(self.length_reward),
            "length_reward",
            self.length_reward,
            "a number",
        )
        _require(
            self.keep_ended in ("joint", "separate"),
            "keep_ended",
            self.keep_ended,
            "'joint' or 'separate'",
        )
        object.__setattr__(self, "coverage", coverage_term(self.coverage))
