"""Pack a translation model, its parameters in half precision.

ESPnet's ``pack`` has no form for translation. Loading restores float32.
"""

import argparse
import sys
from pathlib import Path

import torch
from espnet2.main_funcs.pack_funcs import pack

from espnet_lenbias.compare.half_precision import half_precision


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("config", type=Path, help="config.yaml of the training")
    add("model", type=Path, help="parameters in the same folder")
    add("out", type=Path, help="the .zip to write")
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    for path in (args.config, args.model):
        if not path.is_file():
            sys.exit(f"pack.py: there is no file {path}: train first")
    packed = args.model.with_name("packed.pth")
    state = torch.load(args.model, map_location="cpu", weights_only=True)
    torch.save(half_precision(state), packed)
    # named as the options of espnet2.bin.mt_inference are
    pack(
        files={"mt_model_file": packed},
        yaml_files={"mt_train_config": args.config},
        outpath=args.out,
    )
    parameters = sum(v.numel() for v in state.values())
    print(f"{parameters / 1e6:.2f} million parameters, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
