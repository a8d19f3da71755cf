"""Drop-ins for ESPnet's streaming tools: utterances come in chunks.

See :mod:`espnet_lenbias.decoding.drop_in`. A chunk has ``--sim_chunk_length`` samples;
with 0 an utterance is one chunk.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from espnet_lenbias.decoding import drop_in
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.decoding import get_parser, parse, refuse
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.interrupts import interrupted
from espnet_lenbias.options.online import check_online
from espnet_lenbias.options.standard_output import reader_may_go


@reader_may_go()
def main(tool: Tool, cmd: Sequence[str] | None = None) -> int:
    """Run the drop-in of a streaming tool; return its exit status."""
    parser = get_parser(tool.module)
    parser.set_defaults(model_tag=None)  # which ESPnet's other tools take
    args = parse(parser, cmd)
    try:
        check_online(args.search, vars(args))
    except OptionError as e:
        refuse(parser, args, e)

    def in_chunks(model: Any) -> Any:
        # Here, not above: this loads torch and ESPnet.
        from espnet_lenbias.inference.streaming import ChunkedRecognizer

        return ChunkedRecognizer(model, args.sim_chunk_length)

    decode = partial(drop_in.decode_here, tool, wrap=in_chunks)
    try:
        return drop_in.run(tool, parser, args, decode)
    except KeyboardInterrupt as e:
        return interrupted(e, goes_on=True)
