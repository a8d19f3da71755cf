"""Word error rate, length ratio and search steps against beam size.

`kinds` has all searches of the report by label, in order: a search looks the same in all
its figures. All lines are of one set, and of finished decodings.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from espnet_lenbias.report.bootstrap import LEVEL
from espnet_lenbias.report.figures.drawing import (
    THIN_NOTE,
    Curve,
    around_one,
    beam_axis,
    from_zero,
    grid,
    head,
)
from espnet_lenbias.report.figures.grouping import beams, by_label, panels_of, title
from espnet_lenbias.report.figures.labels import draw, room
from espnet_lenbias.report.figures.looks import Kind, looks
from espnet_lenbias.report.figures.panels import Panel, references
from espnet_lenbias.report.table1 import ScoreLine
from espnet_lenbias.report.translation import TranslationLine

WER = "word error rate (%)"
BLEU = "BLEU"
RATIO = "length ratio (dashed: the right length)"


def errors_figure(lines: Sequence[ScoreLine], kinds: Mapping[str, Kind]) -> Figure:
    """Plot word error rate and length ratio against beam size."""
    return _with_ratios("wer", WER, lines, kinds)


def bleu_figure(lines: Sequence[TranslationLine], kinds: Mapping[str, Kind]) -> Figure:
    """Plot BLEU and length ratio against beam size."""
    return _with_ratios("bleu", BLEU, lines, kinds)


def _with_ratios(
    measure: str,
    name: str,
    lines: Sequence[ScoreLine | TranslationLine],
    kinds: Mapping[str, Kind],
) -> Figure:
    """Plot a measure of that name and the length ratio against beam size."""
    groups = by_label(lines, kinds)
    shown = panels_of(groups, kinds)
    banded = references(shown)
    curves = _against_beam(measure, groups, kinds, banded)
    ratios = _against_beam("length_ratio", groups, kinds, banded)
    note = bands_note(kinds[label].search for label in banded)
    return draw_errors(shown, curves, ratios, title(lines), note, name)


def draw_errors(
    shown: Sequence[Panel],
    wers: Mapping[str, Curve],
    ratios: Mapping[str, Curve],
    title: str,
    note: str,
    name: str = WER,
) -> Figure:
    """Draw word error rates and length ratios against beam size.

    Args:
        shown: Which searches share a panel.
        wers: Label -> curve over beam sizes.
        ratios: Likewise.
        title: The set.
        note: How to read the figure.
        name: Of the measure, if it is another one than the word error rate.
    """
    curves = list(wers.values())
    beams = sorted({int(x) for curve in curves for x in curve.x})
    if any(curve.thin.any() for curve in curves):
        note = f"{note} {THIN_NOTE}".strip()
    figure, rows = grid(
        len(shown), 2, room(panel.labels for panel in shown), title, note
    )
    for panel, (wer, ratio) in zip(shown, rows, strict=True):
        head(wer, f"{name}, {panel.title}")
        head(ratio, RATIO)
        from_zero(wer, curves)
        around_one(ratio, list(ratios.values()))
        for axes, own in ((wer, wers), (ratio, ratios)):
            beam_axis(axes, beams)
            draw(axes, [own[label] for label in panel.labels])
    return figure


def bands_note(searches: Iterable[str]) -> str:
    """Say what the bands of a figure are."""
    names = " and ".join(dict.fromkeys(searches))
    return (
        f"Bands: {100 * LEVEL:.0f} % bootstrap intervals of {names}." if names else ""
    )


def steps_figure(
    lines: Sequence[ScoreLine], kinds: Mapping[str, Kind]
) -> Figure | None:
    """Plot search steps against beam size; None where no search has counted them."""
    known = [line for line in lines if not math.isnan(line.steps)]
    if not known:
        return None
    groups = by_label(known, kinds)
    shown = panels_of(groups, kinds)
    curves = _against_beam("steps", groups, kinds)
    n_columns = min(2, len(shown))
    n_rows = math.ceil(len(shown) / n_columns)
    note = "Mean number of positions that are searched."
    if any(curve.thin.any() for curve in curves.values()):
        note = f"{note} {THIN_NOTE}"
    figure, rows = grid(
        n_rows, n_columns, room(panel.labels for panel in shown), title(known), note
    )
    places = [axes for row in rows for axes in row]
    for panel, axes in zip(shown, places):
        head(axes, f"search steps, {panel.title}")
        from_zero(axes, list(curves.values()))
        beam_axis(axes, beams(known))
        draw(axes, [curves[label] for label in panel.labels])
    for axes in places[len(shown) :]:
        axes.remove()
    return figure


def _against_beam(
    measure: str,
    groups: Mapping[str, Sequence[Any]],
    kinds: Mapping[str, Kind],
    banded: Sequence[str] = (),
) -> dict[str, Curve]:
    """Return a curve of each search's lines, with intervals for those `banded`."""
    look, curves = looks(kinds), {}
    for label, lines in groups.items():
        own = sorted(lines, key=lambda line: line.beam_size)
        low, high = (
            [getattr(line, f"{measure}_{end}") for line in own]
            if label in banded
            else ()
            for end in ("low", "high")
        )
        curves[label] = Curve(
            label,
            look[label],
            [line.beam_size for line in own],
            [getattr(line, measure) for line in own],
            [line.utterances for line in own],
            low,
            high,
        )
    return curves
