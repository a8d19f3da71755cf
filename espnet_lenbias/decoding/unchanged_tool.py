"""ESPnet's inference tools that do not search label by label, run unchanged.

    python -m espnet_lenbias.decoding.unchanged_tool espnet2.bin.asr_inference_k2 ...

A decode config may say `search: espnet`; of another search it is told that it has no
place here.
"""

import importlib
import sys
from collections.abc import Sequence

from espnet_lenbias.espnet_compat import commandline
from espnet_lenbias.options.decoding import get_parser
from espnet_lenbias.options.espnet_tools import OTHER_TOOLS
from espnet_lenbias.options.registry import ESPNET


def main(cmd: Sequence[str] | None = None) -> int:
    """Run a tool, the first of the arguments, on the others; return its exit status."""
    module, *options = sys.argv[1:] if cmd is None else cmd
    parser = get_parser(module)
    parser.prog = module.rpartition(".")[2]
    args = parser.parse_args(options)
    if args.search != ESPNET:
        parser.exit(
            2,
            f"{parser.prog}: error: it decodes {OTHER_TOOLS[module]}, not label by "
            f"label, so search: {args.search} has no place in it; say search: "
            f"{ESPNET}, or leave search out\n",
        )
    print(commandline(), file=sys.stderr)
    for name in ("config", "search", "search_conf"):
        delattr(args, name)
    importlib.import_module(module).inference(**vars(args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
