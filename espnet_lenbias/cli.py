"""The command ``espnet-lenbias``."""

import argparse
import json
from collections.abc import Sequence

from espnet_lenbias import __version__
from espnet_lenbias.registry import available_searches, search_options


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="espnet-lenbias", description="Beam search without length bias for ESPnet."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    searches = commands.add_parser(
        "searches", help="list the searches that can be chosen, and their options"
    )
    searches.set_defaults(run=_searches)
    args = parser.parse_args(cmd)
    args.run(args)
    return 0


def _searches(_: argparse.Namespace) -> None:
    """Print each name for ``search:`` with what ``search_conf:`` may hold."""
    for name in available_searches():
        print(name)
        for option, default in search_options(name).items():
            print(f"    {option}: {json.dumps(default, default=str)}")
