r"""``python -m espnet_lenbias``: a Python that decodes with this package's searches.

ESPnet's recipes run their tools as ``${python} -m espnet2.bin...``. With

    ./run.sh --stage 12 --stop_stage 13 --python "python3 -m espnet_lenbias" \
        --inference_config conf/decode_explicit_length.yaml

the decode config may say `search:` and `search_conf:`; likewise with ``st.sh``,
``mt.sh``, ``s2t.sh`` and ``slu.sh``. All else but ESPnet's inference tools runs as if
`python3` alone had been given.

    python -m espnet_lenbias searches     lists the searches and their options

The other commands of `espnet-lenbias`, decode, segment, transcribe, report
and explain, are there too.
"""

import os
import sys

from espnet_lenbias import cli
from espnet_lenbias.options.python_options import outer_options, replaced
from espnet_lenbias.options.standard_output import reader_may_go


def main() -> int:
    """Run Python on the arguments; does not return unless they are for this package."""
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help"):
        with reader_may_go():
            print((__doc__ or "").strip())
        return 0
    if args[0] in cli.COMMANDS:
        return cli.main(args)
    with reader_may_go():
        sys.stdout.flush()
    command = [sys.executable, *outer_options(args), *replaced(args)]
    os.execv(sys.executable, command)


if __name__ == "__main__":
    sys.exit(main())
