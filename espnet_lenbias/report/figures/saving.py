"""Figures saved so that any name can stand in them."""

import logging
import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from espnet_lenbias.report.whole_files import replacing

logger = logging.getLogger(__name__)

# Fonts of many scripts, tried where matplotlib's own has no sign; those that are there.
_FURTHER_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Unifont",
)

_NO_GLYPH = re.compile(r"Glyph (\d+) .*missing from font")


def save(figure: Figure, path: Path, mark: str = "") -> None:
    """Save a figure; warn once of the signs in it that no font has.

    Args:
        figure: The figure.
        path: Of the PNG.
        mark: What its file is to say of itself, in ASCII.
    """
    known = {font.name for font in font_manager.fontManager.ttflist}
    further = [name for name in _FURTHER_FONTS if name in known]
    for text in figure.findobj(Text):
        if isinstance(text, Text) and not text.get_text().isascii():
            # A file name may hold bytes that are no text.
            words = text.get_text().encode("utf-8", "surrogateescape")
            text.set_text(words.decode("utf-8", "replace"))
            text.set_fontfamily([*text.get_fontfamily(), *further])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with replacing(path) as draft:
            figure.savefig(draft, metadata={"Description": mark} if mark else None)
    signs = set(_without_glyph(str(w.message) for w in caught))
    if signs:
        logger.warning(
            f"{path}: no font here has {' '.join(sorted(signs))}, which is shown as a "
            "box: install a font that has it, e.g. Debian's fonts-noto-cjk"
        )
    for w in caught:
        if not _NO_GLYPH.match(str(w.message)):
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)


def _without_glyph(messages: Iterable[str]) -> Iterable[str]:
    """Yield the signs that matplotlib says it has no glyph for."""
    for message in messages:
        found = _NO_GLYPH.match(message)
        if found:
            yield chr(int(found[1]))
