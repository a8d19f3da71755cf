"""What a search logs of each utterance, in the lines that ESPnet's scripts look for."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from espnet_lenbias.search.loops import loops

if TYPE_CHECKING:  # what reads these records in a command line waits for no torch
    from espnet_lenbias.search.hypotheses import Hypothesis
    from espnet_lenbias.search.length_limits import LengthLimits
    from espnet_lenbias.search.trace import Trace

logger = logging.getLogger(__name__)

# Attribute of the records that warn of an output: which of its batch it is, None: there
# is no batch. Whoever knows it by name can put that in the place of the first argument.
UTTERANCE = "espnet_lenbias_utterance"
# Attribute of those that warn of an output that the length limit may have cut.
LIMIT = "espnet_lenbias_limit"

_BREAK_LOOPS = "search_conf: {repeat_limit: 3} breaks such loops"


def log_best(
    best: "Hypothesis",
    weights: Mapping[str, float],
    token_list: Sequence[str] | None,
    primer_length: int,
    trace: "Trace",
    limits: "LengthLimits",
    utt: int | None,
) -> None:
    """Log the best hypothesis of an utterance, and a warning if it was cut.

    Args:
        best: The hypothesis.
        weights: Scorer name -> its weight.
        token_list: The tokens of the labels; None: no text is logged.
        primer_length: How many labels of `yseq` are the primer.
        trace: How the search went.
        limits: Of the length of its output.
        utt: Which of the batch it is; None: there is no batch.
    """
    tag = "" if utt is None else f"utt {utt}: "
    for name, score in best.scores.items():
        weight = weights[name]
        logger.info(
            f"{tag}{score:6.2f} * {weight:3} = {score * weight:6.2f} for {name}"
        )
    # in brackets the names that result files and Python have for these
    logger.info(
        f"{tag}total log probability: {best.original_score:.2f} (original_score)"
    )
    logger.info(f"{tag}ranking score: {best.score:.2f} (score)")
    logger.info(f"{tag}stopped after {trace.steps} positions (steps): {trace.stopped}")
    if token_list is not None:
        text = "".join(token_list[i] for i in best.yseq[primer_length:-1].tolist())
        # asr.sh's real-time factor wants this marker right after the level
        logger.info(f"best hypo: {text}" + (f" (utt {utt})" if tag else "") + "\n")
    warning = _limit_warning(best, primer_length, trace, limits)
    if warning:
        logger.warning("%s%s", tag, warning, extra={UTTERANCE: utt, LIMIT: True})
    elif warning := _other_warning(trace):
        logger.warning("%s%s", tag, warning, extra={UTTERANCE: utt})


def _limit_warning(
    best: "Hypothesis", primer_length: int, trace: "Trace", limits: "LengthLimits"
) -> str:
    """Return what the length limit may have done to a result; "" if nothing."""
    if limits.capped and trace.stopped in ("forced", "limit"):
        return (
            f"the search ended at position {limits.max_position}: the decoder has no "
            "positions for a longer output, whatever maxlenratio; is there speech in the "
            "audio, and no more than the model takes at once?"
        )
    if trace.stopped == "forced" and trace.kept[-1]:
        remedy = "a larger maxlenratio leaves it more room"
        if loops(best.yseq[primer_length:-1].tolist()):
            remedy = (
                f"it repeats itself: {_BREAK_LOOPS}; audio without speech does that, and "
                "so does what is longer than all that the model was trained on"
            )
        return (
            f"no hypothesis had ended within {trace.steps - 1} positions, so the output "
            f"was cut there; {remedy}"
        )
    if trace.stopped == "limit" and trace.p_end:
        score, log_running = float(best.score), trace.log_running
        if score < log_running:
            return (
                f"the best hypothesis that had ended within {trace.steps} positions has "
                f"a probability of {math.exp(score):.2g}, less than the "
                f"{math.exp(log_running):.2g} of what was still running, so the output "
                "may be too short; a larger maxlenratio leaves it more room, and if what "
                f"runs on repeats itself, {_BREAK_LOOPS}"
            )
    if trace.stopped == "limit" and trace.best_running:
        score, running = float(best.score), trace.best_running[-1]
        if score < running:
            return (
                f"the best hypothesis that had ended within {trace.steps} positions has "
                f"the ranking score {score:.2f}, less than the {running:.2f} of what was "
                "still running, so the output may be too short; a larger maxlenratio "
                "leaves it more room"
            )
    return ""


def _other_warning(trace: "Trace") -> str:
    """Return what else a person should know of a result; "" if nothing."""
    if trace.stopped == "forced":
        return (
            f"at position {trace.steps} no label was possible (every score was -inf), "
            "so the output was cut there"
        )
    if trace.stopped == "empty":
        return "the encoder makes no frame of the audio, so the text is empty"
    return ""
