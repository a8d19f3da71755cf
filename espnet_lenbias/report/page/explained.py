"""The page of one utterance: how its search went, and its audio."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from espnet_lenbias.report.explanation import Searched, step_lines
from espnet_lenbias.report.page.course import course_charts, positions
from espnet_lenbias.report.page.tables import known, page_table
from espnet_lenbias.report.page.utterances import spoken
from espnet_lenbias.report.running import Running, best_running, kept_labels

# Hypotheses of a position that are shown, of those that run on and of those that end.
_SHOWN = 12


def explained_page(
    searched: Searched, title: str, audio: dict[str, Any] | None
) -> dict[str, Any]:
    """Return all that the page of an utterance shows.

    Args:
        searched: The search.
        title: Names utterance, search and beam.
        audio: See :func:`espnet_lenbias.report.page.audio.page_audio`; None: none.
    """
    rows = positions(searched.trace)
    kept = kept_texts(searched.running, searched.to_text)
    for row, hypotheses in zip(rows, kept):
        row["hypotheses"] = hypotheses
    texts = [searched.to_text(labels) for labels in best_running(searched.running)]
    tables = [
        ("nbest", "What the search returns", "", searched.nbest),
        ("steps", "All positions", "", step_lines(searched.trace, texts)),
    ]
    return {
        "title": title,
        "why": searched.why,
        "trusted": searched.trusted,
        "source": searched.source,
        "positions": rows,
        "charts": course_charts(rows) if rows else [],
        "tables": [page_table(*table) for table in tables if table[-1]],
        "player": {
            "key": title,
            "rows": [
                {
                    "names": [f"hypothesis {line.rank}"],
                    **spoken(
                        " ".join(line.text.split()),
                        times=rated.times,
                        confidence=rated.confidence,
                    ),
                }
                for line, rated in zip(searched.nbest, searched.rated, strict=True)
            ],
            "shown": 0,
            "audio": audio,
        },
    }


def kept_texts(
    running: Sequence[Running], to_text: Callable[[Sequence[int]], str]
) -> list[list[dict[str, Any]]]:
    """Return the best hypotheses of each position.

    Args:
        running: Of each position.
        to_text: Makes text of labels.

    Returns:
        Of each position those that end there, then those that run on, each with `text`,
        `ended` and `score`, the one that hypotheses of its kind are ranked by.
    """
    found = []
    for position, labels in zip(running, kept_labels(running), strict=True):
        ended = sorted(
            zip((hyp.score for hyp in position.ended), labels.ended),
            key=lambda pair: -pair[0],
        )
        both = [(ended, True), (zip(position.scores, labels.running), False)]
        found.append(
            [
                {"text": to_text(ids), "ended": is_ended, "score": known(score)}
                for hyps, is_ended in both
                for score, ids in islice(hyps, _SHOWN)
            ]
        )
    return found
