"""Text for a language model: the training sentences, and more of the same grammar.

No sentence of five words or more is in a set of the corpus other than the training set.
"""

import argparse
from pathlib import Path

import numpy as np
import yaml

from local.sentences import sentences


def texts(path):
    """The transcripts of a data directory."""
    lines = (path / "text").read_text().splitlines()
    return [line.split(maxsplit=1)[1] for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder of the data directories")
    parser.add_argument("out", type=Path, help="a text file in Kaldi's form")
    parser.add_argument("--config", type=Path, default=Path("conf/corpus.yaml"))
    parser.add_argument("--train_set", default="train-clean")
    parser.add_argument("--sets", nargs="+", required=True, help="to be kept out")
    parser.add_argument("--sentences", type=int, default=40000, help="further ones")
    args = parser.parse_args()
    heard = texts(args.data / args.train_set)
    banned = {text for name in args.sets for text in texts(args.data / name)}
    seed = yaml.safe_load(args.config.read_text())["seed"]
    rng = np.random.default_rng([seed, 50])
    every = heard + sentences(rng, args.sentences, banned | set(heard))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w") as file:
        for i, text in enumerate(every):
            file.write(f"lm-{i:06d} {text}\n")
    words = sum(len(text.split()) for text in every)
    print(f"{args.out}: {len(every)} sentences, {words} words")


if __name__ == "__main__":
    main()
