"""ESPnet's inference tools that do not search label by label, run unchanged.

    python -m espnet_lenbias.decoding.unchanged_tool espnet2.bin.asr_inference_k2 ...

A decode config may say `search: espnet`; of another search it is told that it has no
place here.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from espnet_lenbias.espnet_compat import commandline
from espnet_lenbias.options.choices import check_choices, choices_of
from espnet_lenbias.options.decoding import get_parser, peek_config, read_decode_config
from espnet_lenbias.options.espnet_tools import OTHER_TOOLS
from espnet_lenbias.options.fast_yaml import fast_yaml
from espnet_lenbias.options.posteriors import POSTERIOR_OPTIONS
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.options.standard_output import reader_may_go

# Options of this package's searches, which ESPnet's tool does not know.
_OURS = (
    *("search_conf", "decoder_dtype", "batch_bins", "segments", "formats"),
    *POSTERIOR_OPTIONS,
)


@reader_may_go()
def main(cmd: Sequence[str] | None = None) -> int:
    """Run a tool, the first of the arguments, on the others; return its exit status."""
    module, *options = sys.argv[1:] if cmd is None else cmd
    parser = get_parser(module)
    parser.prog = module.rpartition(".")[2]
    search = _search(options)
    if search != ESPNET:  # before what else of its config has no place
        parser.exit(
            2,
            f"{parser.prog}: error: it decodes {OTHER_TOOLS[module]}, not label by "
            f"label, so search: {search} has no place in it; say search: "
            f"{ESPNET}, or leave search out\n",
        )
    choices = choices_of(parser)
    # before a config is read, which changes defaults
    usual = {name: parser.get_default(name) for name in _OURS}
    read_decode_config(parser, options)
    with fast_yaml():  # as in espnet_lenbias.options.decoding.parse
        args = parser.parse_args(options)
    try:
        check_choices(choices, vars(args))
    except ValueError as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    print(commandline(), file=sys.stderr)
    for name in _OURS:
        if getattr(args, name) not in (None, usual[name]):
            parser.exit(2, f"{parser.prog}: error: {name} has no place in it\n")
        delattr(args, name)
    for name in ("config", "search"):
        delattr(args, name)
    if getattr(args, "batch_size", 1) is None:
        args.batch_size = 1
    importlib.import_module(module).inference(**vars(args))
    return 0


def _search(options: Sequence[str]) -> str:
    """Return the search that the command line asks for, or else its config."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--search", nargs="?")
    finder.add_argument("--config", nargs="?")
    found = finder.parse_known_args(options)[0]
    return str(found.search or peek_config(found.config).get("search") or ESPNET)


if __name__ == "__main__":
    sys.exit(main())
