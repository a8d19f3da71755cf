"""``python -m espnet_lenbias``: a Python that decodes with this package's searches.

ESPnet's recipes run their tools as ``${python} -m espnet2.bin...``. With

    ./run.sh --stage 12 --stop_stage 13 --python "python3 -m espnet_lenbias" \\
        --inference_config conf/decode_explicit_length.yaml

the decode config may say `search:` and `search_conf:`; likewise with ``st.sh``, ``mt.sh``,
``s2t.sh`` and ``slu.sh``. All else but ESPnet's inference tools runs as if `python3` alone
had been given.

    python -m espnet_lenbias searches     lists the searches and their options

The other commands of `espnet-lenbias`, decode, report and explain, are there too.
"""

import os
import sys
from collections.abc import Sequence

from espnet_lenbias import cli
from espnet_lenbias.options.espnet_tools import OTHER_TOOLS, TOOLS

# ESPnet's tool -> what runs in its place.
REPLACED = {tool.module: [tool.drop_in] for tool in TOOLS}
REPLACED |= {
    module: ["espnet_lenbias.decoding.unchanged_tool", module] for module in OTHER_TOOLS
}

# Python's options, single letters that can be joined, which take a value; with these
# two its options end, and the rest belongs to the program.
_PROGRAM = "cm"
_WITH_VALUE = "WX"


def replaced(args: Sequence[str]) -> list[str]:
    """Return Python's arguments with this package's tool in place of ESPnet's."""
    args = list(args)
    i = 0
    while i < len(args) and args[i].startswith("-") and args[i] != "-":
        if args[i] == "--check-hash-based-pycs":
            i += 1
        letters = "" if args[i].startswith("--") else args[i][1:]
        for j, letter in enumerate(letters):
            if letter not in _PROGRAM + _WITH_VALUE:
                continue
            value = letters[j + 1 :]
            if letter == "m" and value:
                module, *more = REPLACED.get(value, [value])
                args[i : i + 1] = [f"-{letters[: j + 1]}{module}", *more]
            elif letter == "m" and i + 1 < len(args):
                args[i + 1 : i + 2] = REPLACED.get(args[i + 1], [args[i + 1]])
            if letter in _PROGRAM:
                return args
            i += not value
            break
        i += 1
    return args


def _outer_options(args: Sequence[str]) -> list[str]:
    """Return the options that Python got before ``-m espnet_lenbias``, e.g. ``-u``."""
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(args)]
    return before[:-2] if before[-1:] == [__package__] else before[:-1]


def main() -> int:
    """Run Python on the arguments; does not return unless they are for this package."""
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if args[0] in cli.COMMANDS:
        return cli.main(args)
    sys.stdout.flush()
    command = [sys.executable, *_outer_options(args), *replaced(args)]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    sys.exit(main())
