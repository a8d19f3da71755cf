"""Write data/<set>/{src_text,text}: sentences of the grammar in the two languages.

No source text of the other sets is in the training set, which alone has noise.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import yaml

from local.grammar import Grammar
from local.noise import spoil

TRAIN = "train"

Pair = tuple[str, str]  # source text and English text


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--grammar", type=Path, default=Path("conf/grammar.txt"))
    add("--config", type=Path, default=Path("conf/corpus.yaml"))
    add("--out", type=Path, default=Path("data"))
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    config = yaml.safe_load(args.config.read_text(encoding="utf-8"))
    try:
        corpus = make_corpus(Grammar.read(args.grammar), config)
    except (OSError, ValueError) as e:
        sys.exit(f"make_corpus.py: {e}")
    check_own(args.out, corpus)
    for name, pairs in corpus.items():
        write_set(args.out / name, name, pairs)
        source, english = (sum(len(t.split()) for t in texts) for texts in zip(*pairs))
        print(f"{name}: {len(pairs)} pairs, {source} source words, {english} English")


def make_corpus(grammar: Grammar, config: Mapping[str, Any]) -> dict[str, list[Pair]]:
    """Return the pairs of each set.

    Args:
        grammar: What can be said.
        config: ``seed``, ``sets`` (name -> number of pairs) and ``noise`` (see
            :func:`local.noise.spoil`), that of the training set.
    """
    corpus: dict[str, list[Pair]] = {}
    taken: set[str] = set()
    # The training set comes last: whatever its size, the others stay as they are.
    for name in sorted(config["sets"], key=TRAIN.__eq__):
        rng = Random(f"{config['seed']} {name}")
        count = config["sets"][name]
        corpus[name] = draw_pairs(grammar, rng, count, taken, once=name != TRAIN)
        if name == TRAIN:
            sources, texts = zip(*corpus[name])
            texts = spoil(rng, texts, config["noise"])
            corpus[name] = list(zip(sources, texts, strict=True))
    return corpus


def draw_pairs(
    grammar: Grammar, rng: Random, count: int, taken: set[str], once: bool
) -> list[Pair]:
    """Return pairs whose source text is not taken.

    Args:
        grammar: What can be said.
        rng: Draws.
        count: How many.
        taken: Source texts that are not to come.
        once: Whether those that come are taken, too.
    """
    pairs: list[Pair] = []
    while len(pairs) < count:
        meaning = grammar.draw(rng)
        source = meaning.source()
        if source not in taken:
            pairs.append((source, meaning.english(rng)))
            if once:
                taken.add(source)
    return pairs


def check_own(out: Path, corpus: Mapping[str, list[Pair]]) -> None:
    """Verify that nothing but this corpus would be written over.

    Raises:
        SystemExit: Names a file that holds something else.
    """
    for name, pairs in corpus.items():
        for file, text in files_of(name, pairs).items():
            path = out / name / file
            # a run that was killed has left the beginning
            if path.is_file() and not text.startswith(
                path.read_text("utf-8", "replace")
            ):
                sys.exit(
                    f"make_corpus.py: {path} is not of this corpus: name another folder "
                    "with --data, or move it"
                )


def write_set(folder: Path, name: str, pairs: list[Pair]) -> None:
    """Write a data directory."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files_of(name, pairs).items():
        (folder / file).write_text(text, encoding="utf-8")


def files_of(name: str, pairs: list[Pair]) -> dict[str, str]:
    """Return what the two files of a set hold, a line for each pair."""
    keys = [f"{name}-{number:05d}" for number in range(len(pairs))]
    return {
        file: "".join(f"{key} {text}\n" for key, text in zip(keys, texts, strict=True))
        for file, texts in zip(("src_text", "text"), zip(*pairs), strict=True)
    }


if __name__ == "__main__":
    main()
