"""Compare beam searches on a packed model, with audio in LibriSpeech's layout.

Prints word errors, output lengths and search steps of each search and beam size, then
what each made of the utterance that simple beam search shortens most. Writes tables,
plots and the results of all utterances to a folder.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from tqdm import tqdm

import espnet_lenbias
from espnet_lenbias.compare.beam_sizes import beam_size_figure
from espnet_lenbias.compare.compare import (
    ComparedSearch,
    Result,
    compare,
    encode,
    row_search,
)
from espnet_lenbias.compare.summary import error_lines, most_shortened, transcript_lines
from espnet_lenbias.compare.utterances import Utterance, read_set, spread
from espnet_lenbias.options.espnet_tools import ASR
from espnet_lenbias.options.output_folder import make_output_dir
from espnet_lenbias.options.packed_model import check_owner, is_archive, model_files
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.values import from_one, from_zero
from espnet_lenbias.report.figures.trace import ending_figure
from espnet_lenbias.report.tables import markdown_table, write_csv

HERE = Path(__file__).resolve().parent

# What tables call a search -> its name in a decode config, and its search_conf there.
SEARCHES = {
    "espnet": ("espnet", {}),
    "simple": ("simple", {}),
    "simple+heuristics": ("simple", {"length_norm": True, "eos_threshold": 1.5}),
    "explicit_length": ("explicit_length", {}),
}
AT_LARGEST = ("simple", "explicit_length")

_DURATION = "The defaults take up to a quarter of an hour on two slow cores."


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--output_dir", type=Path, default=HERE / "exp/demo", help="made if need be")
    add(
        "--model",
        default=str(HERE / "pretrained/asr_transformer.zip"),
        help="packed model, or a tag of the model zoo",
    )
    add(
        "--audio",
        type=Path,
        default=HERE / "slice/LibriSpeech",
        help="folder that holds <set>/<speaker>/<chapter>/{*.flac,*.trans.txt}",
    )
    add("--sets", nargs="+", default=["dev-other", "test-other"], help="sets to decode")
    add(
        "--utterances",
        type=from_zero,
        default=40,
        help="how many of each set, spread over its speakers; 0: all",
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
        default=[4, 16, 64],
        help="for every search",
    )
    add(
        "--largest",
        type=from_zero,
        default=256,
        help=f"one more beam size for {' and '.join(AT_LARGEST)}; 0: none",
    )
    add(
        "--huge",
        type=from_zero,
        default=5000,
        help="a beam size for the same two on a few of the utterances; 0: none",
    )
    add("--few", type=from_one, default=5, help="how many, spread over all")
    add("--batch_size", type=from_one, default=1, help="utterances decoded together")
    return parser


def main(cmd: Sequence[str] | None = None) -> None:
    """Run the comparison; see the module's docstring."""
    args = get_parser().parse_args(cmd)
    wait_passively()
    # That an output reached the length limit is a warning, of many searches a flood.
    logging.basicConfig(level=logging.ERROR)
    try:
        make_output_dir(args.output_dir)
        utterances = [
            utterance
            for name in args.sets
            for utterance in spread(read_set(args.audio, name), args.utterances)
        ]
        rows = make_rows(args.searches, args.beams, args.largest)
        heading = describe(rows, utterances, args.sets)
        print(
            f"{heading}\n{_DURATION}\nloading torch, ESPnet and the model", flush=True
        )
        model = load_model(args.model)
    except (OSError, ValueError) as e:
        sys.exit(f"demo.py: {e}")
    print("decoding", flush=True)
    batches = compare(model, rows, utterances, args.batch_size)
    results = collect(batches, len(utterances), len(rows))
    few, huge = spread(utterances, args.few), []
    if args.huge:
        print(f"decoding {len(few)} of them at beam {args.huge}", flush=True)
        rows_of_few = make_rows(AT_LARGEST, [args.huge], 0)
        huge = collect(compare(model, rows_of_few, few, 1), len(few), len(rows_of_few))

    text = write_tables(results, args.sets, args.output_dir)
    kinds = {row.label: row.kind for row in rows}
    figure = beam_size_figure(results, kinds, " and ".join(args.sets))
    figure.savefig(args.output_dir / "beam_size.png")
    if huge:
        text += huge_table(results, huge, few, args.output_dir)
    if {"simple", "explicit_length"} <= set(args.searches):
        named = most_shortened(results, "simple")
        example = next(u for u in utterances if (u.dataset, u.key) == named)
        text += example_table(results, example)
        plot_ending(model, rows, example, args.output_dir / "ending.png")
    (args.output_dir / "comparison.md").write_text(f"{heading}\n{text}", "utf-8")
    print(text)
    print(f"tables, plots and all transcripts are in {args.output_dir}")


def describe(
    rows: Sequence[ComparedSearch], utterances: Sequence[Utterance], sets: Sequence[str]
) -> str:
    """Return a line on what is compared."""
    words = mean(len(u.reference.split()) for u in utterances)
    return (
        f"{len(rows)} searches, {len(utterances)} utterances of {', '.join(sets)} "
        f"(references: {words:.1f} words on average)\n"
    )


def load_model(model: str) -> Any:
    """Load a packed model for decoding with its attention decoder alone.

    Raises:
        FileNotFoundError: There is no such file.
        OptionError: It is no packed model of speech recognition.
    """
    if model.endswith(".zip") and not Path(model).is_file():
        raise FileNotFoundError(
            f"there is no model {model}: name one with --model, or train and pack one "
            "with run.sh"
        )
    if is_archive(model):  # before torch and ESPnet are loaded
        check_owner(model, model_files(model), ASR)
    return espnet_lenbias.Speech2Text.from_pretrained(
        model, search="espnet", ctc_weight=0.0, lm_weight=0.0
    )


def make_rows(
    searches: Sequence[str], beams: Sequence[int], largest: int
) -> list[ComparedSearch]:
    """Return the searches to compare, each at its beam sizes."""
    rows = []
    for label in searches:
        name, conf = SEARCHES[label]
        sizes = [*beams, largest] if largest and label in AT_LARGEST else beams
        rows += [ComparedSearch(label, name, size, conf) for size in sizes]
    return rows


def collect(batches: Iterable[list[Result]], n_utts: int, n_rows: int) -> list[Result]:
    """Gather the results and show how far they are: a bar, or a line at each tenth."""
    results: list[Result] = []
    start, done = time.monotonic(), 0
    with tqdm(total=n_utts, unit="utt", disable=None) as bar:  # None: off a terminal
        for batch in batches:
            results += batch
            before, done = done, len(results) // n_rows
            bar.update(done - before)
            if bar.disable and done * 10 // n_utts > before * 10 // n_utts:
                seconds = time.monotonic() - start
                left = seconds / done * (n_utts - done)
                print(
                    f"{done} of {n_utts} utterances, {seconds:.0f} s, "
                    f"{left:.0f} s left",
                    flush=True,
                )
    return results


def write_tables(results: Sequence[Result], sets: Sequence[str], folder: Path) -> str:
    """Write the results and tables; return the table over all sets."""
    by_set = [error_lines([r for r in results if r.dataset == s], s) for s in sets]
    total = error_lines(results, "all") if len(sets) > 1 else by_set.pop()
    write_csv(folder / "utterances.csv", results)
    write_csv(folder / "comparison.csv", [line for t in [*by_set, total] for line in t])
    return markdown_table(total)


def huge_table(
    results: Sequence[Result],
    huge: Sequence[Result],
    few: Sequence[Utterance],
    folder: Path,
) -> str:
    """Return the table over a few utterances, all beams of the searches at a huge one.

    Args:
        results: Those of the other beams, of these utterances and of others.
        huge: Those of the huge beam.
        few: The utterances.
        folder: Gets the results and the table.
    """
    keys = {utterance.key for utterance in few}
    same = [r for r in results if r.utterance in keys and r.search in AT_LARGEST]
    lines = error_lines([*same, *huge], f"{len(few)} utterances")
    lines.sort(key=lambda line: (AT_LARGEST.index(line.search), line.beam_size))
    write_csv(folder / "huge_utterances.csv", huge)
    write_csv(folder / "huge.csv", lines)
    words = mean(len(u.reference.split()) for u in few)
    heading = f"{len(few)} of the utterances (references: {words:.1f} words on average)"
    return f"\n{heading}\n\n{markdown_table(lines)}"


def example_table(results: Sequence[Result], example: Utterance) -> str:
    """Return what each search made of an utterance, under its reference."""
    table = markdown_table(transcript_lines(results, example.dataset, example.key))
    return f"\n{example.key} ({example.dataset}): {example.reference}\n\n{table}"


def plot_ending(
    model: Any, rows: Sequence[ComparedSearch], example: Utterance, path: Path
) -> None:
    """Plot the ending probabilities of an utterance, at the largest beam."""
    row = max(
        (row for row in rows if row.label == "explicit_length"),
        key=lambda row: row.beam_size,
    )
    search = row_search(model, row)
    search(encode(model, example.audio), model.maxlenratio, model.minlenratio)
    title = f"{example.key}, {row.label}, beam {row.beam_size}"
    ending_figure(search.trace[0], title).savefig(path)


if __name__ == "__main__":
    main()
