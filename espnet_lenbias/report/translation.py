"""Translations scored: BLEU and chrF, with confidence intervals and a paired test."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from espnet_lenbias.report.bleu import bleu, chrf, length_ratio, translation_counts
from espnet_lenbias.report.bootstrap import difference, interval
from espnet_lenbias.report.cells import Cell, CellLine, resampled_by_set
from espnet_lenbias.report.holm import with_holm
from espnet_lenbias.report.paired import best_others
from espnet_lenbias.report.scoring import Array
from espnet_lenbias.report.systems import PROPOSED
from espnet_lenbias.report.tables import column, markdown_table


@dataclass(frozen=True, eq=False)
class Translation:
    """A decoding with what BLEU and chrF are made of."""

    cell: Cell
    counts: Array  # (C,) of all its texts; see bleu.translation_counts
    resampled: Array  # (R, C)

    @property
    def bleu(self) -> float:
        """In %."""
        return float(bleu(self.counts))


@dataclass(frozen=True)
class TranslationLine(CellLine):
    """A translation in numbers: a measure, and the ends of its 95 % interval."""

    tag: str = column("tag")
    utterances: int = column("utterances")
    missing: int = column("not decoded")
    bleu: float = column("BLEU", ".1f")
    bleu_low: float = column("from", ".1f")
    bleu_high: float = column("to", ".1f")
    chrf: float = column("chrF", ".1f")
    chrf_low: float = column("from", ".1f")
    chrf_high: float = column("to", ".1f")
    length_ratio: float = column("length ratio", ".3f")
    length_ratio_low: float = column("from", ".3f")
    length_ratio_high: float = column("to", ".3f")


@dataclass(frozen=True)
class PairedBleuLine(CellLine):
    """How much higher the BLEU of a system is than that of another."""

    bleu: float = column("BLEU", ".1f")
    other: str = column("best other")
    other_lm_weight: float = column("its LM", "g")
    other_beam_size: int = column("its beam")
    other_bleu: float = column("its BLEU", ".1f")
    difference: float = column("difference", "+.2f")
    low: float = column("from", "+.2f")
    high: float = column("to", "+.2f")
    p: float = column("p", ".4f")
    p_holm: float = column("p (Holm)", ".4f")  # corrected for all tests on the set


def translations(
    cells: Iterable[Cell], metric: str | None, tokenizer: str
) -> list[Translation]:
    """Count what BLEU and chrF of decodings are made of, in their order.

    Args:
        cells: The decodings.
        metric: "bleu": of all; "wer": of none; None: of those that a translation tool
            has made.
        tokenizer: See :func:`translation_counts`.
    """
    wanted = {"bleu": True, "wer": False}
    chosen = [c for c in cells if wanted.get(metric or "", c.decoding.translates)]
    counts = [_count(cell, tokenizer) for cell in chosen]
    resampled = resampled_by_set([(c.dataset, c.keys) for c in chosen], counts)
    return [
        Translation(cell, of_texts.sum(axis=0), of_resamples)
        for cell, of_texts, of_resamples in zip(chosen, counts, resampled, strict=True)
    ]


def translation_line(translation: Translation) -> TranslationLine:
    """Return what a translation comes to."""
    cell = translation.cell
    measures = {"bleu": bleu, "chrf": chrf, "length_ratio": length_ratio}
    numbers: dict[str, Any] = {}
    for name, measure in measures.items():
        low, high = interval(measure(translation.resampled))
        value = float(measure(translation.counts))
        numbers |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return TranslationLine(
        **cell.head,
        tag=cell.system.tag,
        utterances=len(cell.keys),
        missing=cell.missing,
        **numbers,
    )


def translation_table(lines: Iterable[TranslationLine], **shown: Any) -> str:
    """Return translations as Markdown; options are those of :func:`markdown_table`.

    What is not decoded has a column only where something is missing.
    """
    lines = list(lines)
    whole = () if any(line.missing for line in lines) else ("missing",)
    return markdown_table(lines, leave_out=("tag", *whole), **shown)


def paired_bleu_lines(of_all: Sequence[Translation]) -> list[PairedBleuLine]:
    """Compare each finished translation of the proposed search with the best others.

    See :func:`espnet_lenbias.report.paired.paired_lines`; the best has the highest BLEU.
    """
    by_cell = {t.cell: t for t in of_all if t.cell.complete}
    finished = sorted(by_cell, key=lambda cell: cell.dataset)
    lines = [
        _paired_line(by_cell[cell], by_cell[other])
        for cell in finished
        if cell.system.search == PROPOSED
        for other in best_others(cell, finished, lambda c: -by_cell[c].bleu)
    ]
    return with_holm(lines)


def _paired_line(translation: Translation, other: Translation) -> PairedBleuLine:
    result = difference(
        translation.bleu, other.bleu, bleu(translation.resampled), bleu(other.resampled)
    )
    system = other.cell.system
    return PairedBleuLine(
        **translation.cell.head,
        bleu=translation.bleu,
        other=system.name,
        other_lm_weight=system.lm_weight,
        other_beam_size=system.beam_size,
        other_bleu=other.bleu,
        difference=result.value,
        low=result.low,
        high=result.high,
        p=result.p,
        p_holm=result.p,
    )


def _count(cell: Cell, tokenizer: str) -> Array:
    """Return the counts of each text, (n, C)."""
    references = [cell.references.texts[key] for key in cell.keys]
    hypotheses = [cell.decoding.texts[key] for key in cell.keys]
    return translation_counts(references, hypotheses, tokenizer)
