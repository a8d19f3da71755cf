"""Compare beam searches on a packed translation model.

Prints BLEU, output lengths and search steps of each search and beam size, then what
each made of the sentence that simple beam search shortens most. Writes the tables and
the results of all sentences to a folder.
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.lines import translation_lines
from tqdm import tqdm

from espnet_lenbias.compare.compare import ComparedSearch, Contestant, Result
from espnet_lenbias.compare.summary import most_shortened, transcript_lines
from espnet_lenbias.compare.utterances import spread
from espnet_lenbias.options.output_folder import make_output_dir
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.values import finite, from_one, from_zero
from espnet_lenbias.report.scoring import read_text
from espnet_lenbias.report.tables import markdown_table, write_csv

if TYPE_CHECKING:  # slow to load
    import torch

HERE = Path(__file__).resolve().parent

# What tables call a search -> its name in a decode config, and its search_conf there.
SEARCHES = {
    "espnet": ("espnet", {}),
    "simple": ("simple", {}),
    "simple+length_norm": ("simple", {"length_norm": True}),
    "explicit_length": ("explicit_length", {}),
}


@dataclass(frozen=True)
class Sentence:
    """What is translated, and one right translation."""

    dataset: str
    key: str
    source: str
    reference: str


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--output_dir", type=Path, default=HERE / "exp/compare", help="made if need be")
    add("--model", default=str(HERE / "pretrained/mt.zip"), help="packed model")
    add(
        "--data",
        type=Path,
        default=HERE / "data/test",
        help="folder that holds src_text and text",
    )
    add(
        "--sentences",
        type=from_zero,
        default=0,
        help="how many of the set, evenly spread over it; 0: all",
    )
    add(
        "--searches",
        nargs="+",
        choices=SEARCHES,
        default=list(SEARCHES),
        help="searches to compare",
    )
    add(
        "--beams",
        nargs="+",
        type=from_one,
        default=[4, 16, 64, 256, 1000],
        help="for every search; espnet's must be within the vocabulary, and has only "
        "those of them that are",
    )
    add(
        "--maxlenratio",
        type=finite,
        default=3.0,
        help="longest output for each source word",
    )
    return parser


def main(cmd: Sequence[str] | None = None) -> None:
    """Run the comparison; see the module's docstring."""
    args = get_parser().parse_args(cmd)
    wait_passively()
    # That an output reached the length limit is a warning, of many searches a flood.
    logging.basicConfig(level=logging.ERROR)
    try:
        make_output_dir(args.output_dir)
        sentences = spread(read_pairs(args.data), args.sentences)
        model = load_model(args.model, args.maxlenratio)
    except (OSError, ValueError) as e:
        sys.exit(f"compare.py: {e}")
    rows = make_rows(args.searches, args.beams, model.beam_search.n_vocab)
    if not rows:
        sys.exit(
            f"compare.py: none of --beams is within espnet's limit, the vocabulary of "
            f"{model.beam_search.n_vocab} labels"
        )
    words = sum(len(s.reference.split()) for s in sentences) / len(sentences)
    heading = (
        f"{len(rows)} searches, {len(sentences)} sentences of {args.data.name} "
        f"(references: {words:.1f} words on average)\n"
    )
    print(heading, flush=True)
    results = list(chain.from_iterable(translate(model, rows, sentences)))

    write_csv(args.output_dir / "sentences.csv", results)
    lines = translation_lines(results)
    write_csv(args.output_dir / "comparison.csv", lines)
    text = markdown_table(lines)
    if "simple" in args.searches:
        dataset, key = most_shortened(results, "simple")
        example = next(s for s in sentences if (s.dataset, s.key) == (dataset, key))
        table = markdown_table(transcript_lines(results, dataset, key))
        text += (
            f"\n{key}: {example.source}\n\nReference: {example.reference}\n\n{table}"
        )
    (args.output_dir / "comparison.md").write_text(f"{heading}\n{text}", "utf-8")
    print(text)
    print(f"tables and all translations are in {args.output_dir}")


def read_pairs(folder: Path) -> list[Sentence]:
    """Read a data directory.

    Raises:
        OSError: It lacks a file.
        ValueError: Its two files are not of the same sentences.
    """
    sources, references = read_text(folder / "src_text"), read_text(folder / "text")
    if sources.keys() != references.keys():
        odd = sorted(sources.keys() ^ references.keys())
        raise ValueError(f"{odd[0]} is in one of {folder}/src_text and text only")
    if not sources:
        raise ValueError(f"{folder}/src_text is empty")
    return [Sentence(folder.name, k, s, references[k]) for k, s in sources.items()]


def load_model(model: str, maxlenratio: float) -> Any:
    """Load a packed model; its training needs no CTC and no language model.

    Raises:
        OSError: There is no such file.
    """
    from espnet_lenbias.inference.mt import Text2Text

    return Text2Text.from_pretrained(
        model, maxlenratio=maxlenratio, ctc_weight=0.0, lm_weight=0.0
    )


def make_rows(
    searches: Sequence[str], beams: Sequence[int], n_vocab: int
) -> list[ComparedSearch]:
    """Return the searches to compare, each at its beam sizes."""
    return [
        ComparedSearch(label, SEARCHES[label][0], beam, SEARCHES[label][1])
        for label in searches
        for beam in beams
        if label != "espnet" or beam <= n_vocab
    ]


def translate(
    model: Any, rows: Sequence[ComparedSearch], sentences: Sequence[Sentence]
) -> Iterator[list[Result]]:
    """Yield the results of all rows for each sentence.

    Every search translates a sentence before the next one has its turn: whatever else
    the machine does meanwhile falls on all searches alike.
    """
    from espnet_lenbias.espnet_compat import MTTask

    preprocess = MTTask.build_preprocess_fn(model.mt_train_args, False)
    contestants = [Contestant(model, row, batch_size=1) for row in rows]
    for sentence in tqdm(sentences, unit="sentence", disable=None):
        ids = preprocess(sentence.key, {"src_text": sentence.source})["src_text"]
        encoded = [encode(model, ids)]
        yield [r for c in contestants for r in c.decode([sentence], encoded)]


def encode(model: Any, ids: Sequence[int]) -> "torch.Tensor":
    """Return the encoder output of a source text, (T, D)."""
    import torch

    source = torch.tensor([list(ids)], device=model.device)
    lengths = torch.tensor([len(ids)], device=model.device)
    with torch.no_grad():
        x, _ = model.mt_model.encode(source, lengths)
    return x[0]


if __name__ == "__main__":
    main()
