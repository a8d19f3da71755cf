"""How often a confidence is right.

`kinds` has all searches of the report by label, in order: a search looks the same in all
its figures. All lines are of one set, and of finished decodings.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from espnet_lenbias.report.confidence import FINAL, PER_LABEL, ReliabilityLine
from espnet_lenbias.report.figures.drawing import THIN, Curve
from espnet_lenbias.report.figures.grouping import at_outermost_beams
from espnet_lenbias.report.figures.labels import draw
from espnet_lenbias.report.figures.looks import GREY, Kind, looks
from espnet_lenbias.report.systems import PROPOSED


def reliability_figure(
    lines: Sequence[ReliabilityLine], kinds: Mapping[str, Kind]
) -> Figure | None:
    """Plot how many utterances are right against confidence, at the outermost beams.

    Returns:
        None where every point would be of too few utterances to say anything.
    """
    if all(line.utterances < THIN for line in lines):
        return None
    look = looks(kinds)
    note = (
        f"Confidence: {FINAL} of {PROPOSED}, else {PER_LABEL}. Dashed: as it should be."
    )
    figure, places = at_outermost_beams(lines, kinds, "share that is right", note)
    for place in places:
        axes = place.axes
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.0, zorder=1)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_xlabel("confidence", fontsize=8)
        curves = [
            Curve(
                label,
                look[label],
                [line.mean_confidence for line in own],
                [line.right for line in own],
                [line.utterances for line in own],
            )
            for label, own in place.lines.items()
        ]
        draw(axes, curves)
    return figure
