"""Formats in which results are written beside ESPnet's files; no torch here."""

import argparse
from collections.abc import Mapping
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.values import nearest

CTM, TRN, JSON, SRT, VTT = "ctm", "trn", "json", "srt", "vtt"

# The values of `formats`, and what each is.
FORMATS = {
    CTM: "a line for each word, with its time, as Kaldi and NIST have it",
    TRN: "a line for each utterance, for sclite",
    JSON: "an object for each utterance, one a line",
    SRT: "subtitles (SubRip)",
    VTT: "subtitles (WebVTT)",
}

# Those that are nothing without the times of words.
OF_TIMES = (CTM, SRT, VTT)

# What to do where words can have no times.
LEAVE_TIMES_OUT = f"leave times out, and {', '.join(OF_TIMES)} out of formats"


def add_formats_option(parser: argparse._ActionsContainer) -> None:
    """Add the option to a parser; see :func:`check_formats`."""
    known = "; ".join(f"{name}: {what}" for name, what in FORMATS.items())
    parser.add_argument(
        "--formats",
        default=[],
        metavar="FORMAT,...",
        help=f"Formats in which results are written, too ({known}); "
        f"{', '.join(OF_TIMES)} need --times true",
    )


def check_formats(formats: Any, options: Mapping[str, Any]) -> list[str]:
    """Return the formats that are asked for, each once.

    Args:
        formats: A list of names, or one text with commas between them.
        options: All options of the run, those that were verified before.

    Raises:
        OptionError: There is no such format, or it needs what is not asked for.
    """
    asked = _names(formats)
    for name in asked:
        if name not in FORMATS:
            raise OptionError(
                f"formats: there is no format {name}{nearest(name, FORMATS)} (one or "
                f"more of: {', '.join(FORMATS)})"
            )
        if name in OF_TIMES and not options.get("times"):
            raise OptionError(
                f"formats: {name} holds the time of each word, which nobody has asked "
                "for: say times: true, too (--times true; translated text and streams "
                f"have none), or leave {name} out"
            )
    return asked


def need_times(formats: Any) -> bool:
    """Tell whether formats, see :func:`check_formats`, are nothing without times."""
    return any(name in OF_TIMES for name in _names(formats))


def _names(formats: Any) -> list[str]:
    """Return the names of formats, each once; they may be wrong."""
    if isinstance(formats, str):
        formats = [name.strip() for name in formats.split(",") if name.strip()]
    if not isinstance(formats, list | tuple | None):
        raise OptionError(
            f"formats must be a list of names, such as [{CTM}, {JSON}], not {formats!r}"
        )
    return list(dict.fromkeys(map(str, formats or [])))
