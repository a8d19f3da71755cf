"""How one utterance was searched: in a table, in words and as a figure."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from espnet_lenbias.report.figures.trace import ending_figure, places_figure
from espnet_lenbias.report.label_text import text_of
from espnet_lenbias.report.running import Running, best_running, recorded_running
from espnet_lenbias.report.tables import column, markdown_table
from espnet_lenbias.search.trace import Trace

_SHOWN = 50  # characters of a running hypothesis


class Rated(NamedTuple):
    """What is known of the words of a hypothesis, where it is asked for."""

    times: Sequence[tuple[float, float]] | None  # start and end, s
    confidence: Sequence[float] | None


class Searched(NamedTuple):
    """A search of an utterance, and what is to be said of it."""

    trace: Trace
    running: Sequence[Running]  # of each position
    nbest: Sequence["NbestLine"]
    rated: Sequence[Rated]  # the same hypotheses
    why: str  # it stopped
    trusted: str  # how well the best fits the audio; "" where there was no position
    source: str  # the text that was searched before, of a translator of speech; or ""
    to_text: Callable[[Sequence[int]], str]  # makes text of labels


class Explanation(NamedTuple):
    """What a search has done with an utterance."""

    text: str
    figure: Figure | None  # None: there was no position to show
    searched: Searched


@dataclass(frozen=True)
class StepLine:
    """What a search with explicit length model has at a position."""

    position: int = column("N")
    p_end: float = column("p_end", ".4f")
    log_not_ended: float = column("sum log(1-p_end), n<N", ".3f")
    kept: int = column("kept")
    running: int = column("running")
    best_final: float = column("best final score", ".3f")
    best_running: str = column("best running")


@dataclass(frozen=True)
class SimpleStepLine:
    """What simple search has at a position."""

    position: int = column("N")
    kept: int = column("kept")
    running: int = column("running")
    best_final: float = column("best score", ".3f")
    best_running: str = column("best running")


@dataclass(frozen=True)
class NbestLine:
    """A hypothesis that has ended."""

    rank: int = column("rank")
    original_score: float = column("original score", ".3f")
    score: float = column("final score", ".3f")
    text: str = column("text")


def explain(
    model: Any, data: Mapping[str, Any], title: str, doubtful: float | None = None
) -> Explanation:
    """Decode an utterance and tell how.

    Args:
        model: One of our inference objects, with a search of this package.
        data: What it is called with, by name, e.g. `speech`, (samples,).
        title: Of the plot.
        doubtful: A result with a lower original score per label is not to be trusted;
            None: not known.

    Raises:
        ValueError: The search keeps no trace.
    """
    if not hasattr(model.beam_search, "trace"):
        raise ValueError(f"search: {model.search} keeps no trace of how it goes")
    with recorded_running(model.beam_search) as running:
        results = model(**data)
    more = None  # intermediate CTC, or the source text
    if isinstance(results, tuple):
        results, more = results
    trace = model.beam_search.trace[0]
    nbest = [
        NbestLine(rank, hyp.original_score, hyp.score, text or " ".join(tokens))
        for rank, (text, tokens, *_, hyp) in enumerate(results, 1)
    ]
    rated = [
        Rated(
            getattr(hyp, "word_times", None) or None,
            getattr(hyp, "word_confidence", None),
        )
        for *_, hyp in results
    ]
    source = ""
    if isinstance(more, list):
        text, tokens, *_ = more[0]
        source = text or " ".join(tokens)
    trusted = ""
    if trace.steps:
        _, _, ids, *_, best = results[0]
        labels = len(ids) + 1  # and the end label
        trusted = how_trusted(best.original_score / labels, trace, doubtful)
    searched = Searched(
        trace,
        running,
        nbest,
        rated,
        why_stopped(trace),
        trusted,
        source,
        partial(text_of, model),
    )
    draw = ending_figure if trace.p_end else places_figure
    figure = draw(trace, title) if trace.steps else None
    return Explanation(_told(searched), figure, searched)


def _told(searched: Searched) -> str:
    """Return all of it as text."""
    nbest = markdown_table(searched.nbest, on_terminal=True)
    found = f"{searched.why}\n\n{nbest}"
    if searched.source:
        found += f"\nThe source text, searched before: {searched.source}\n"
    if not searched.trace.steps:
        return found
    texts = [searched.to_text(labels) for labels in best_running(searched.running)]
    steps = markdown_table(step_lines(searched.trace, texts), on_terminal=True)
    return f"{steps}\n{found}\n{searched.trusted}\n"


def step_lines(trace: Trace, texts: Sequence[str]) -> list[StepLine | SimpleStepLine]:
    """Return a line for each position.

    Args:
        trace: Of a search.
        texts: The best running hypothesis after each position.
    """
    columns: list[Iterable[Any]] = [
        trace.kept,
        trace.running,
        trace.best_final,
        map(_shorten, texts),
    ]
    line: type[StepLine | SimpleStepLine] = SimpleStepLine
    if trace.p_end:
        columns = [trace.p_end, trace.log_not_ended, *columns]
        line = StepLine
    return [line(n, *row) for n, row in enumerate(zip(*columns, strict=True), 1)]


def why_stopped(trace: Trace) -> str:
    """Say why a search stopped, in words."""
    last = trace.steps
    if trace.stopped == "empty":
        return "There was nothing to search: the encoder made no frame of the audio."
    stop = f"The search stopped after N = {last}: "
    if trace.stopped == "bound" and not trace.p_end:  # by a rule of another package
        return (
            f"{stop}no hypothesis that ends later can win, by the rule of the search."
        )
    if trace.stopped == "bound":
        left = math.exp(trace.log_not_ended[-1]) * (1 - trace.p_end[-1])
        best = trace.best_final[-1]
        return (
            f"{stop}the output is longer with a probability of {left:.3g}, the product "
            f"of 1 - p_end, and the best final score is {best:.3f}, a probability of "
            f"{math.exp(best):.3g}, found at N = {_found_at(trace)}. No longer output "
            "can win."
        )
    if trace.stopped == "ended":
        return f"{stop}all hypotheses that were kept have ended, and none runs on."
    if trace.stopped == "early" and not trace.p_end:
        return (
            f"{stop}as many hypotheses had ended as it waits for (patience), with "
            f"{trace.running[-1]} still running. The best that had ended won."
        )
    if trace.stopped == "early":
        return (
            f"{stop}stop_margin or stop_length of search_conf gives up here, with "
            f"{trace.running[-1]} still running, one of which could have won. The best "
            "that had ended won."
        )
    if trace.stopped == "limit":
        return (
            f"{stop}that is the length limit (maxlenratio), with {trace.running[-1]} "
            f"still running. The best that had ended won{_beyond_limit(trace)}."
        )
    if trace.kept[-1]:
        return (
            f"{stop}nothing had ended at the length limit (maxlenratio), N = {last - 1}, "
            "so the running hypotheses were made to end."
        )
    return f"{stop}no label was possible, so the running hypotheses were made to end."


def _beyond_limit(trace: Trace) -> str:
    """Say if what was still running at the limit is likely to be a longer output."""
    if trace.p_end and trace.log_running > trace.best_final[-1]:
        longer, best = math.exp(trace.log_running), math.exp(trace.best_final[-1])
        return (
            f", with a probability of {best:.3g}; the output is longer with one of "
            f"{longer:.3g}"
        )
    if trace.best_running and trace.best_running[-1] > trace.best_final[-1]:
        return (
            f", with the score {trace.best_final[-1]:.3f}; the best still running had "
            f"{trace.best_running[-1]:.3f}"
        )
    return ""


def how_trusted(score: float, trace: Trace, doubtful: float | None) -> str:
    """Say how well the best hypothesis fits the audio, in words.

    Args:
        score: Its original score per label.
        trace: Of the search.
        doubtful: Below it a result is not to be trusted; None: not known.
    """
    said = f"The original score of the best is {score:.2f} per label"
    if trace.p_end and trace.stopped not in ("limit", "forced"):  # more is not known
        said += f", and its length is spread over {length_spread(trace):.1f} positions"
    if doubtful is None:
        return f"{said}. A report of a development set says which scores not to trust."
    if score < doubtful:
        return f"{said}. NOT TO BE TRUSTED: scores below {doubtful:g} are doubtful."
    return f"{said}. Only scores below {doubtful:g} are doubtful."


def length_spread(trace: Trace) -> float:
    """Return over how many positions the probability of the length is spread.

    It is the exponential of the entropy of p(len = N): 1 where the length is certain. Of
    lengths that were not searched nothing is known: they do not count.
    """
    total = sum(trace.p_length)
    shares = [p / total for p in trace.p_length if p > 0]
    return math.exp(-sum(p * math.log(p) for p in shares))


def _found_at(trace: Trace) -> int:
    return trace.best_final.index(trace.best_final[-1]) + 1


def _shorten(text: str) -> str:
    """Return the end of a text: what a position has changed."""
    return text if len(text) <= _SHOWN else f"...{text[3 - _SHOWN :]}"
