"""The command ``espnet-lenbias``."""

import argparse
import importlib
import inspect
import json
import sys
from collections.abc import Sequence
from contextlib import suppress

from espnet_lenbias import __version__
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.interrupts import interrupted
from espnet_lenbias.options.registry import OPTIONS, available_searches, search_options
from espnet_lenbias.options.search_conf import POSSIBLE_VALUES
from espnet_lenbias.options.standard_output import reader_may_go

# Commands with parsers of their own, e.g. ESPnet's: name -> module, what it does.
_WITH_PARSERS = {
    "decode": (
        "decoding.cluster.command",
        "decode with several workers, on this machine or on a cluster",
    ),
    "segment": (
        "decoding.segment",
        "cut long recordings at silences, for --segments of the tools",
    ),
    "transcribe": (
        "decoding.transcribe",
        "write down what is said in audio files of any kind",
    ),
    "report": ("report.command", "compare decodings: word errors, tables, plots"),
    "explain": (
        "decoding.explain",
        "show what a search does with one audio file, or text",
    ),
}

COMMANDS = ("searches", *_WITH_PARSERS)


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    cmd = sys.argv[1:] if cmd is None else list(cmd)
    with suppress(AttributeError):  # a stream that is no file shows anything
        # A sign that a terminal cannot show is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with reader_may_go():
            return _run(cmd)
    except KeyboardInterrupt as e:  # from the imports on
        return interrupted(e, goes_on=cmd[:1] in (["decode"], ["transcribe"]))


def _run(cmd: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="espnet-lenbias", description="Beam search without length bias for ESPnet."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands.add_parser(
        "searches", help="list the searches that can be chosen, and their options"
    )
    for name, (_, what) in _WITH_PARSERS.items():
        commands.add_parser(name, help=what)
    if cmd and cmd[0] in _WITH_PARSERS:
        module, _ = _WITH_PARSERS[cmd[0]]
        command = importlib.import_module(f"espnet_lenbias.{module}")
        status: int = command.main(cmd[1:])
        return status
    parser.parse_args(cmd)  # of the others none is left
    _print_searches()
    return 0


def _print_searches() -> None:
    """Print each name for ``search:`` with what ``search_conf:`` may hold."""
    for name in available_searches():
        try:
            options = search_options(name)
        except OptionError as e:  # a package that is broken hides no other
            print(f"{name}  # {e}")
            continue
        print(name)
        for option, default in options.items():
            if default is inspect.Parameter.empty:
                print(f"    {option}:  # needed")
                continue
            line = f"    {option}: {json.dumps(default, default=str)}"
            values = POSSIBLE_VALUES.get(option) if name in OPTIONS else None
            print(f"{line}  # {values}" if values else line)
