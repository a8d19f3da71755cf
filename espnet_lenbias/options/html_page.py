"""Options of the page to look at and listen to, ``--html``; no torch here."""

import argparse
import importlib
from collections.abc import Sequence

from espnet_lenbias.errors import OptionError

EMBED, LINK, NO_AUDIO = "embed", "link", "none"

# What makes the page; an extra of this package (`html`).
_NEEDED = ("jinja2", "vl_convert")


def add_html_options(parser: argparse.ArgumentParser, file: str) -> None:
    """Add the options that all pages have.

    Args:
        parser: Of the command.
        file: The name of the page, and where it lies.
    """
    parser.add_argument(
        "--html",
        action="store_true",
        help=f"write a page to look at and listen to, too: {file}; it needs the extra "
        "html of this package",
    )
    parser.add_argument(
        "--html_audio",
        choices=(EMBED, LINK, NO_AUDIO),
        help="how the page comes by its audio: within it, as MP3; as links to the files; "
        f"or not at all (default: {EMBED}, where there is audio)",
    )


def check_html_options(args: argparse.Namespace, others: Sequence[str] = ()) -> None:
    """Verify that a page that is asked for can be made.

    Args:
        args: With `html` and `html_audio`.
        others: The command's further options of the page.

    Raises:
        OptionError: Names the option, or what has to be installed.
    """
    if not args.html:
        for option in ("html_audio", *others):
            if getattr(args, option) is not None:
                raise OptionError(
                    f"--{option}: it is an option of the page: add --html, or leave it out"
                )
        return
    for module in _NEEDED:
        try:
            importlib.import_module(module)
        except ImportError as e:
            raise OptionError(
                f"--html: the page needs {module} ({e}): "
                'pip install "espnet_lenbias[html]"'
            ) from e


def audio_choice(asked: str | None, audio: bool, why_none: str) -> str:
    """Return how a page comes by its audio.

    Args:
        asked: The value of ``--html_audio``; None: it is not given.
        audio: Whether there is audio.
        why_none: Why there is none.

    Raises:
        OptionError: Audio is asked for, and there is none.
    """
    if audio:
        return asked or EMBED
    if asked in (EMBED, LINK):
        raise OptionError(
            f"--html_audio {asked}: {why_none}: say --html_audio {NO_AUDIO}"
        )
    return NO_AUDIO
