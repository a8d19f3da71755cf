"""What is made of an n-best list: which one is the result, how sure and when its words are.

These options stand beside `nbest`, not in `search_conf`: they are about what any search
has found. No torch in here.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.espnet_tools import OTHER_DECODING
from espnet_lenbias.options.formats import LEAVE_TIMES_OUT
from espnet_lenbias.options.values import count, number, switch

# The values of `decide`: the most probable hypothesis, or the one with the least
# expected word errors (minimum Bayes risk).
MAP, MBR = "map", "mbr"

# The values of `confidence`, beside a switch: the share of the n-best list's
# probability, the mean probability of the labels, or their product.
POSTERIOR, LABEL_PROBABILITY = "posterior", "label_probability"
COMBINED = "combined"
CONFIDENCES = (COMBINED, POSTERIOR, LABEL_PROBABILITY)

# The values of `times`, beside a switch: by forced alignment with CTC, or by the
# attention of the decoder.
CTC, ATTENTION = "ctc", "attention"

# So many hypotheses at most are compared with one another unless more are asked for:
# what comes behind them has hardly any probability.
_MOST = 256

# The only search whose scores are probabilities of whole texts.
_WITH_PROBABILITIES = "explicit_length"


@dataclass(frozen=True)
class PosteriorOptions:
    """What is made of an n-best list."""

    # "map": the hypothesis of the best score is the first. "mbr": that of which the
    # fewest words are expected to be wrong.
    decide: str = MAP
    # Whether words and labels get a confidence, and which: one of `CONFIDENCES`; true:
    # that which is usual for the search.
    confidence: bool | str = False
    # How many hypotheses posteriors are made of; None: as many as the beam has places,
    # 256 at most.
    posterior_nbest: int | None = None
    # What scores are divided by before they become posteriors.
    posterior_temperature: float = 1.0
    # Confidences are raised to the power of 1 / this: above 1 words are surer.
    confidence_temperature: float = 1.0
    # Whether words and labels get times, and how: `CTC` or `ATTENTION`; true: by CTC
    # where the model has it.
    times: bool | str = False

    def __post_init__(self) -> None:
        if self.decide not in (MAP, MBR):
            raise ValueError(f"decide must be {MAP} or {MBR}, not {self.decide!r}")
        for key, names in (("confidence", CONFIDENCES), ("times", (CTC, ATTENTION))):
            chosen = _switch_or_name(key, getattr(self, key), names)
            object.__setattr__(self, key, chosen)
        if self.posterior_nbest is not None:
            n = count("posterior_nbest", self.posterior_nbest)
            object.__setattr__(self, "posterior_nbest", n)
        for key in ("posterior_temperature", "confidence_temperature"):
            wanted = "a number above 0"
            value = number(key, getattr(self, key), wanted, lambda t: t > 0)
            object.__setattr__(self, key, value)

    @property
    def changes_results(self) -> bool:
        """Whether results are other than those of ESPnet."""
        return self.decide == MBR or bool(self.confidence) or bool(self.times)

    def measure(self, search: str) -> str | None:
        """Return which confidence a search's words get, one of `CONFIDENCES`, if any."""
        if self.confidence is True:
            return COMBINED if search == _WITH_PROBABILITIES else LABEL_PROBABILITY
        return self.confidence or None

    def uses_posteriors(self, search: str) -> bool:
        """Tell whether more hypotheses are needed than are returned."""
        return self.decide == MBR or self.measure(search) in (COMBINED, POSTERIOR)

    def uses_labels(self, search: str) -> bool:
        """Tell whether the probability of each label is needed."""
        return self.measure(search) in (COMBINED, LABEL_PROBABILITY)

    def n_compared(self, search: str, beam_size: int, nbest: int) -> int:
        """Return how many hypotheses the search has to give.

        Args:
            search: Its name.
            beam_size: K.
            nbest: How many are returned in the end.
        """
        if not self.uses_posteriors(search):
            return nbest
        return max(self.posterior_nbest or min(beam_size, _MOST), nbest)


POSTERIOR_OPTIONS = tuple(field.name for field in fields(PosteriorOptions))


def add_posterior_options(group: argparse._ArgumentGroup) -> None:
    """Add the options to a parser; see :func:`check_posteriors`."""
    group.add_argument(
        "--decide",
        default=MAP,
        help=f"Which hypothesis is the first: {MAP}, that of the best score, or {MBR}, "
        "that of which the fewest words are expected to be wrong (minimum Bayes risk)",
    )
    group.add_argument(
        "--confidence",
        default=False,
        help="Whether the files word_confidence and label_confidence are written: true, "
        f"false, or which confidence: {' or '.join(CONFIDENCES)}",
    )
    group.add_argument(
        "--times",
        default=False,
        help="Whether the files word_times and label_times are written, when each word "
        f"is said: true, false, or how it is found: {CTC} or {ATTENTION}",
    )
    group.add_argument(
        "--posterior_nbest",
        help="How many hypotheses are compared with one another for it, by default as "
        f"many as the beam has places, {_MOST} at most",
    )
    group.add_argument(
        "--posterior_temperature",
        default=1.0,
        help="What scores are divided by before they become probabilities",
    )
    group.add_argument(
        "--confidence_temperature",
        default=1.0,
        help="Confidences are raised to the power of 1 / this, which makes words surer "
        "above 1; `espnet-lenbias report --temperature_from SET` fits it",
    )


def check_posteriors(
    search: str,
    search_conf: Mapping[str, Any],
    own: Mapping[str, Any],
    options: Mapping[str, Any],
) -> PosteriorOptions:
    """Verify the options of this module, alone and with all others.

    Args:
        search: Its name.
        search_conf: Its own options.
        own: Those of `POSTERIOR_OPTIONS`; what is not there has its default.
        options: ESPnet's own inference options, as far as they are given.

    Raises:
        ValueError: Names the option that is wrong, or does not go with the others.
    """
    read = PosteriorOptions(
        **{key: own[key] for key in POSTERIOR_OPTIONS if key in own}
    )
    asked = _asked(read)
    for key in _idle(read, search):
        if getattr(read, key) != getattr(PosteriorOptions, key):
            raise ValueError(
                f"{key} has no effect without confidence: {COMBINED}"
                + ("" if key == "confidence_temperature" else f" or decide: {MBR}")
            )
    if not read.changes_results:
        return read
    for key, what in OTHER_DECODING.items():
        if options.get(key):
            raise ValueError(
                f"{asked}: {key}: {what} gives no n-best list to make it of: leave one of "
                "them out"
            )
    if not read.uses_posteriors(search):
        return read
    if search_conf.get("nbest") is not None:
        raise ValueError(
            f"search_conf: nbest would take from {asked} what it is made of: say nbest "
            "outside of search_conf, and posterior_nbest if you mean that"
        )
    for key in ("beam_size", "posterior_nbest"):
        given = options.get(key) if key == "beam_size" else read.posterior_nbest
        if given is not None and count(key, given) == 1:
            raise ValueError(
                f"{asked} compares hypotheses with one another, and {key} 1 leaves one "
                "alone: set it to 2 or more"
            )
    compared, returned = read.posterior_nbest, options.get("nbest")
    if compared is not None and returned is not None and compared < returned:
        raise ValueError(
            f"posterior_nbest {compared} are compared, fewer than the {returned} that "
            f"nbest returns: set posterior_nbest to {returned} or more"
        )
    return read


def _idle(options: PosteriorOptions, search: str) -> list[str]:
    """Return the options that have no effect beside the others."""
    idle = []
    if not options.uses_posteriors(search):
        idle += ["posterior_nbest", "posterior_temperature"]
    if not options.confidence:
        idle += ["confidence_temperature"]
    return idle


def _asked(options: PosteriorOptions) -> str:
    """Return what asks for an n-best list, as a decode config says it."""
    if options.decide == MBR:
        return f"decide: {MBR}"
    key = "confidence" if options.confidence else "times"
    value = getattr(options, key)
    return f"{key}: {str(value).lower() if value is True else value}"


def _switch_or_name(key: str, value: object, names: Sequence[str]) -> bool | str:
    if value in names:
        return str(value)
    if value is None:
        return False
    try:
        return switch(key, value)
    except ValueError:
        raise ValueError(
            f"{key} must be true, false, {' or '.join(names)}, not {value!r}"
        ) from None


def check_times(times: object, streams: bool, hears: bool) -> None:
    """Verify that words of a tool can have times.

    Args:
        times: The option, as :class:`PosteriorOptions` has it.
        streams: Whether the tool takes an utterance chunk by chunk.
        hears: Whether it takes audio.

    Raises:
        OptionError: They cannot.
    """
    asked = f"times: {str(times).lower()}"
    if times and not hears:
        raise OptionError(
            f"{asked}: a text has no times, only audio has: {LEAVE_TIMES_OUT}"
        )
    if times and streams:
        raise OptionError(
            f"{asked}: in streaming the audio of a word may be gone when it is certain: "
            f"{LEAVE_TIMES_OUT}, or decode whole utterances"
        )
