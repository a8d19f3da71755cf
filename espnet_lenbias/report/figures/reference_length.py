"""Word error rate by the length of the reference.

`kinds` has all searches of the report by label, in order: a search looks the same in all
its figures. All lines are of one set, and of finished decodings.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from espnet_lenbias.report.figures.beam_size import WER
from espnet_lenbias.report.figures.drawing import THIN, Curve, from_zero
from espnet_lenbias.report.figures.grouping import at_outermost_beams
from espnet_lenbias.report.figures.labels import draw
from espnet_lenbias.report.figures.looks import Kind, looks
from espnet_lenbias.report.lengths import LengthLine


def length_figure(
    lines: Sequence[LengthLine], kinds: Mapping[str, Kind]
) -> Figure | None:
    """Plot error rate by the length of the reference, at the outermost beam sizes.

    Returns:
        None where every point would be of too few utterances to say anything.
    """
    if all(line.utterances < THIN for line in lines):
        return None
    spans = list(dict.fromkeys((line.shortest, line.longest) for line in lines))
    names = [f"{a}-{b}" if a < b else str(a) for a, b in spans]
    look = looks(kinds)
    figure, places = at_outermost_beams(lines, kinds, WER)
    curves = [
        [
            Curve(
                label,
                look[label],
                range(len(own)),
                [line.wer for line in own],
                [line.utterances for line in own],
            )
            for label, own in place.lines.items()
        ]
        for place in places
    ]
    for place, own in zip(places, curves, strict=True):
        from_zero(place.axes, [curve for group in curves for curve in group])
        place.axes.set_xlim(-0.2, len(spans) - 0.8)
        place.axes.set_xticks(range(len(names)), names)
        place.axes.set_xlabel("words of the reference", fontsize=8)
        draw(place.axes, own)
    return figure
