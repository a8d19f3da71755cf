"""Command lines of Python itself, in which a tool of ESPnet's is replaced.

ESPnet's recipes run all that they do as ``${python} <arguments>``: tools by ``-m``,
scripts, code by ``-c``. With ``--python "python3 -m espnet_lenbias"`` each of these
lines comes here, so that recipes need no change, and this module must know where the
options of Python end, as the manual of its command line has it. Of a plain line,
``-m espnet2.bin.asr_inference ...``, only the first two words matter; the rest of the
rules is for options before them, such as ``-u``.
"""

import sys
from collections.abc import Sequence

from espnet_lenbias.options.espnet_tools import OTHER_TOOLS, TOOLS

# ESPnet's tool -> what runs in its place.
REPLACED = {tool.module: [tool.drop_in] for tool in TOOLS}
REPLACED |= {
    module: ["espnet_lenbias.decoding.unchanged_tool", module] for module in OTHER_TOOLS
}

# Python's options, single letters that can be joined, which take a value; with the
# first two its options end, and the rest belongs to the program.
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


def outer_options(args: Sequence[str]) -> list[str]:
    """Return the options that Python got before ``-m espnet_lenbias``, e.g. ``-u``.

    They would be lost where Python is started anew: ``sys.flags`` has most of them, but
    not as options.

    Args:
        args: What came behind ``-m espnet_lenbias``.
    """
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(args)]
    if before[-1:] == ["espnet_lenbias"]:
        del before[-1]
    if not before:
        return []
    *others, last = before  # -m, maybe joined with others: -um
    letters = last[1:].partition("m")[0] if last.startswith("-") else ""
    return [*others, f"-{letters}"] if letters else others
