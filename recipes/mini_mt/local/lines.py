"""Results of a comparison as lines of tables, by BLEU."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from sacrebleu.metrics import BLEU

from espnet_lenbias.compare.compare import Result
from espnet_lenbias.compare.summary import by_row
from espnet_lenbias.report.tables import column


@dataclass(frozen=True)
class TranslationLine:
    """How a search translated a set."""

    search: str = column("search")
    beam_size: int = column("beam")
    bleu: float = column("BLEU", ".1f")
    length_ratio: float = column("length ratio", ".3f")  # output over reference
    words: float = column("words", ".1f")  # of output; means of sentences from here on
    steps: float = column("steps", ".1f")
    seconds: float = column("s/sentence", ".3f")


def translation_lines(results: Iterable[Result]) -> list[TranslationLine]:
    """Return a line for each search and beam size, in the order of the results."""
    return [_translation_line(*row, own) for row, own in by_row(results).items()]


def _translation_line(
    search: str, beam_size: int, results: Sequence[Result]
) -> TranslationLine:
    texts = [r.text for r in results]
    bleu = BLEU().corpus_score(texts, [[r.reference for r in results]])
    return TranslationLine(
        search=search,
        beam_size=beam_size,
        bleu=bleu.score,
        length_ratio=bleu.sys_len / bleu.ref_len,
        words=bleu.sys_len / len(texts),
        steps=mean(r.steps for r in results),
        seconds=mean(r.seconds for r in results),
    )
