"""Store the parameters of an ESPnet model file in half precision.

The package is half as large; loading it restores float32.
"""

import argparse
from pathlib import Path

import torch

from espnet_lenbias.compare.half_precision import half_precision


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    state = torch.load(args.model, map_location="cpu", weights_only=True)
    torch.save(half_precision(state), args.out)
    before, after = (path.stat().st_size / 1e6 for path in (args.model, args.out))
    print(f"{before:.1f} MB -> {after:.1f} MB")


if __name__ == "__main__":
    main()
