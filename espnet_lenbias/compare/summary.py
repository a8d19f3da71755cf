"""Results of a comparison in the two forms of the paper: its Table 1 and Table 2."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from espnet_lenbias.compare.compare import Result
from espnet_lenbias.report.scoring import Errors, align
from espnet_lenbias.report.tables import column


@dataclass(frozen=True)
class ErrorLine:
    """How a search did on a set."""

    dataset: str = column("set")
    search: str = column("search")
    beam_size: int = column("beam")
    wer: float = column("WER %", ".1f")
    insertions: int = column("ins")
    deletions: int = column("del")
    substitutions: int = column("sub")
    mean_words: float = column("words", ".1f")  # an utterance
    length_ratio: float = column("length ratio", ".3f")
    steps: float = column("steps", ".1f")  # mean over utterances, like the next
    seconds: float = column("s/utterance", ".3f")


@dataclass(frozen=True)
class TranscriptLine:
    """What a search made of one utterance."""

    search: str = column("search")
    beam_size: int = column("beam")
    original_score: float = column("original score", ".2f")
    score: float = column("final score", ".2f")
    steps: int = column("steps")
    text: str = column("text")


def by_row(results: Iterable[Result]) -> dict[tuple[str, int], list[Result]]:
    """Sort results by search and beam size, in the order in which they come."""
    rows: dict[tuple[str, int], list[Result]] = {}
    for result in results:
        rows.setdefault((result.search, result.beam_size), []).append(result)
    return rows


def error_lines(results: Iterable[Result], dataset: str) -> list[ErrorLine]:
    """Return a line for each search and beam size, in the order of the results.

    Args:
        results: All count.
        dataset: What the lines call the set.
    """
    return [_error_line(dataset, *row, own) for row, own in by_row(results).items()]


def errors_of(results: Sequence[Result]) -> Errors:
    """Count the word errors of one search's results."""
    counts = align([r.reference for r in results], [r.text for r in results])
    return Errors(len(results), *counts.sum(axis=0).tolist())


def most_shortened(results: Iterable[Result], search: str) -> tuple[str, str]:
    """Return set and key of the utterance of which a search loses most words.

    At its largest beam. Sets can share keys.

    Args:
        results: Those of any searches.
        search: The label of the one that counts.
    """
    own = [result for result in results if result.search == search]
    largest = max(result.beam_size for result in own)
    worst = max(
        (result for result in own if result.beam_size == largest),
        key=lambda r: len(r.reference.split()) - len(r.text.split()),
    )
    return worst.dataset, worst.utterance


def transcript_lines(
    results: Iterable[Result], dataset: str, utterance: str
) -> list[TranscriptLine]:
    """Return a line for each result of an utterance of a set."""
    return [
        TranscriptLine(
            r.search, r.beam_size, r.original_score, r.score, r.steps, r.text
        )
        for r in results
        if (r.dataset, r.utterance) == (dataset, utterance)
    ]


def _error_line(
    dataset: str, search: str, beam_size: int, results: Sequence[Result]
) -> ErrorLine:
    errors = errors_of(results)
    return ErrorLine(
        dataset=dataset,
        search=search,
        beam_size=beam_size,
        wer=errors.wer,
        insertions=errors.insertions,
        deletions=errors.deletions,
        substitutions=errors.substitutions,
        mean_words=errors.mean_words,
        length_ratio=errors.length_ratio,
        steps=mean(r.steps for r in results),
        seconds=mean(r.seconds for r in results),
    )
