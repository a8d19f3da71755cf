"""How often the confidence of a word is right, and how well it tells right from wrong.

`kinds` has all searches of the report by label, in order: a search looks the same in all
its figures. All lines are of one set, and of finished decodings.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from espnet_lenbias.report.figures.drawing import THIN, Curve, grid, head
from espnet_lenbias.report.figures.grouping import beams, by_label, panels_of
from espnet_lenbias.report.figures.labels import draw, room
from espnet_lenbias.report.figures.looks import GREY, Kind, looks
from espnet_lenbias.report.word_confidence import RocLine, WordReliabilityLine

_NOTE = f"Dashed: as it should be, and chance. Hollow: fewer than {THIN} words."


def word_confidence_figure(
    lines: Sequence[WordReliabilityLine],
    curves: Sequence[RocLine],
    kinds: Mapping[str, Kind],
) -> Figure | None:
    """Plot reliability and ROC curves of words at the largest beam.

    Returns:
        None where every point would be of too few words to say anything.
    """
    if all(line.words < THIN for line in lines):
        return None
    look, beam = looks(kinds), beams(lines)[-1]
    lines = [line for line in lines if line.beam_size == beam]
    shown = panels_of(by_label(lines, kinds), kinds)
    labels = room(panel.labels for panel in shown)
    title = f"{lines[0].dataset}, words, beam {beam}"
    figure, rows = grid(len(shown), 2, labels, title, _NOTE)
    for panel, (left, right) in zip(shown, rows, strict=True):
        own = {label: kinds[label] for label in panel.labels}
        bins = by_label(lines, own)
        points = by_label((c for c in curves if c.beam_size == beam), own)
        for axes, what in ((left, "share that is right"), (right, "right words taken")):
            axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, zorder=1)
            axes.set(xlim=(0, 1), ylim=(0, 1))
            head(axes, f"{what}, {panel.title}")
        left.set_xlabel("confidence", fontsize=8)
        right.set_xlabel("share of the wrong words taken", fontsize=8)
        draw(
            left,
            [
                Curve(
                    label,
                    look[label],
                    [line.mean_confidence for line in of_it],
                    [line.right for line in of_it],
                    [line.words for line in of_it],
                )
                for label, of_it in bins.items()
            ],
        )
        for label, of_it in points.items():
            right.plot(
                [line.wrong_taken for line in of_it],
                [line.right_taken for line in of_it],
                label=label,
                color=look[label].colour,
                linestyle=look[label].line,
                linewidth=look[label].width,
            )
    return figure
