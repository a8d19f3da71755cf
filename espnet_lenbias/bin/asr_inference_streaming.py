"""Drop-in for ``espnet2.bin.asr_inference_streaming``; see :mod:`.drop_in`.

An utterance comes in pieces of ``--sim_chunk_length`` samples, with 0 in one piece.
"""

import argparse
import sys
from collections.abc import Sequence

from espnet_lenbias.bin import drop_in
from espnet_lenbias.decode_options import get_parser, parse
from espnet_lenbias.online_options import check_online
from espnet_lenbias.registry import OptionError
from espnet_lenbias.results import ResultFolder
from espnet_lenbias.tools import ASR_STREAMING


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the tool; return its exit status."""
    parser = get_parser(ASR_STREAMING.module)
    parser.set_defaults(model_tag=None)  # which ESPnet's other tools take
    args = parse(parser, cmd)
    try:
        check_online(args.search, vars(args))
    except OptionError as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    return drop_in.run(ASR_STREAMING, parser, args, _decode)


def _decode(
    args: argparse.Namespace, folder: ResultFolder, batches: Sequence[Sequence[str]]
) -> dict[str, str]:
    """Decode in this process."""
    # Here, not above: these load torch and ESPnet.
    from tqdm import tqdm

    from espnet_lenbias.decode import decode, load
    from espnet_lenbias.speech2text_streaming import InPieces
    from espnet_lenbias.utterances import read_batches

    model, dataset, collate = load(args, ASR_STREAMING)
    loader = tqdm(
        read_batches(dataset, batches, args.num_workers),
        total=len(batches),
        unit="batch",
        disable=not sys.stderr.isatty(),
    )
    pieces = InPieces(model, args.sim_chunk_length)
    return folder.collect(decode(pieces, loader, collate))


if __name__ == "__main__":
    sys.exit(main())
