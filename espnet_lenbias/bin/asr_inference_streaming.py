"""Drop-in for ``espnet2.bin.asr_inference_streaming``.

See :mod:`espnet_lenbias.decoding.drop_in`. An utterance comes in chunks of
``--sim_chunk_length`` samples; with 0 it is one chunk.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from espnet_lenbias.decoding import drop_in
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.decoding import get_parser, parse
from espnet_lenbias.options.espnet_tools import ASR_STREAMING
from espnet_lenbias.options.online import check_online
from espnet_lenbias.options.standard_output import reader_may_go


@reader_may_go()
def main(cmd: Sequence[str] | None = None) -> int:
    """Run the tool; return its exit status."""
    parser = get_parser(ASR_STREAMING.module)
    parser.set_defaults(model_tag=None)  # which ESPnet's other tools take
    args = parse(parser, cmd)
    try:
        check_online(args.search, vars(args))
    except OptionError as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")

    def in_chunks(model: Any) -> Any:
        # Here, not above: this loads torch and ESPnet.
        from espnet_lenbias.inference.asr_streaming import ChunkedRecognizer

        return ChunkedRecognizer(model, args.sim_chunk_length)

    decode = partial(drop_in.decode_here, ASR_STREAMING, wrap=in_chunks)
    return drop_in.run(ASR_STREAMING, parser, args, decode)


if __name__ == "__main__":
    sys.exit(main())
