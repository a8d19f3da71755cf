"""Labels at the ends of curves, none upon another."""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from espnet_lenbias.report.figures.drawing import Curve, Room, draw_curve

FONT = 7.5  # points
_LINE = 1.25 * FONT  # height of a line of text, points
_LETTER = 0.58 * FONT  # mean width of a letter, points
_WRAP = 27  # letters of a line
_LONGEST = 40  # of a word that is not broken


def positions(
    wanted: Sequence[float], sizes: Sequence[float], low: float, high: float
) -> list[float]:
    """Return where the centres of labels are: near what is wanted, none on another.

    The sum of the squared moves is the smallest possible.

    Args:
        wanted: The centres that the labels would have if each were alone.
        sizes: Of the labels, in the same unit.
        low: Where the room begins.
        high: Where it ends; if the labels need more, they go beyond `low`.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    steps = [(sizes[a] + sizes[b]) / 2 for a, b in pairwise(order)]
    offsets = np.cumsum([0.0, *steps])[: len(order)]
    # Less its offset, a label only has to be no lower than the one below it.
    fitted = _ascending([wanted[i] - o for i, o in zip(order, offsets, strict=True)])
    centres = [0.0] * len(order)
    for i, offset, place in zip(order, offsets, fitted, strict=True):
        lowest = low + sizes[order[0]] / 2
        highest = high - offsets[-1] - sizes[order[-1]] / 2
        centres[i] = float(offset) + min(max(place, lowest), float(highest))
    return centres


def wrap(label: str) -> str:
    """Break a label into lines; ``simple + x`` is shown as ``+ x``."""
    short = label.removeprefix("simple ") if label.startswith("simple + ") else label
    short = re.sub(rf"(\S{{{_LONGEST}}})(?=\S)", r"\1 ", short)
    kept = re.sub(r" (?=[\d.])", "\u00a0", short)  # a number stays with its name
    return "\n".join(textwrap.wrap(kept, _WRAP, break_long_words=False))


def room(panels: Iterable[Sequence[str]]) -> Room:
    """Return what the labels of each panel need at most."""
    texts = [[wrap(label).split("\n") for label in labels] for labels in panels]
    widest = max(_letters(line) for panel in texts for lines in panel for line in lines)
    most = max(sum(map(len, panel)) for panel in texts)
    return Room(widest * _LETTER / 72 + 0.2, 1.05 * most * _LINE / 72)


def _letters(line: str) -> int:
    """Return the width of a line in letters: a sign of East Asia is as wide as two."""
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in line)


def draw(axes: Axes, curves: Sequence[Curve]) -> None:
    """Draw curves with their labels; see :func:`label_ends`."""
    for curve in curves:
        draw_curve(axes, curve)
    label_ends(axes, curves)


def label_ends(axes: Axes, curves: Sequence[Curve]) -> None:
    """Write the label of each curve at the right of the axes, at the height of its end.

    The limits of the axes must have been set, and where they are in the figure.
    """
    ends = [(curve, end) for curve in curves if (end := curve.end) is not None]
    to_axes = axes.transScale + axes.transLimits
    wanted = [float(to_axes.transform(end)[1]) for _, end in ends]
    height = axes.bbox.height / axes.figure.dpi * 72
    texts = [wrap(curve.label) for curve, _ in ends]
    sizes = [(text.count("\n") + 1) * _LINE / height for text in texts]
    centres = positions(wanted, sizes, 0.0, 1.0)
    for (curve, end), text, centre in zip(ends, texts, centres, strict=True):
        axes.annotate(
            text,
            xy=end,
            xytext=(1.05, centre),
            textcoords="axes fraction",
            va="center",
            fontsize=FONT,
            linespacing=1.0,
            color=_ink(curve.look.colour),
            fontweight="bold" if curve.look.is_highlighted else "normal",
            annotation_clip=False,
            parse_math=False,
            arrowprops={
                "arrowstyle": "-",
                "color": curve.look.colour,
                "linewidth": 0.6,
                "alpha": 0.6,
                "relpos": (0.0, 0.5),
                "shrinkA": 0.0,
                "shrinkB": 3.0,
            },
        )


def _ink(colour: str) -> tuple[float, float, float]:
    """Return a darker shade, in which letters can be read."""
    red, green, blue = (0.75 * part for part in to_rgb(colour))
    return red, green, blue


def _ascending(values: Sequence[float]) -> list[float]:
    """Return the nearest values, by least squares, of which none is below the one before.

    Neighbours that are out of order share their mean.
    """
    blocks: list[tuple[float, int]] = []  # mean, how many share it
    for value in values:
        mean, count = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, n = blocks.pop()
            mean = (before * n + mean * count) / (n + count)
            count += n
        blocks.append((mean, count))
    return [mean for mean, count in blocks for _ in range(count)]
