"""Measure the searches of this package against ESPnet's own.

A step at each beam size on two decoders with random weights, calls with several
utterances, and bundled audio with a bundled model, whole and block by block: time, its
ratio to that of the decoder's matrix products alone, and memory. Writes tables and a plot
to a folder.
"""

import argparse
import logging
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from beams import BATCHES, Bench, Settings
from corpus import bundled, corpus_lines
from decoders import LSTMSize, TransformerSize
from figure import step_figure
from large import large_line
from latency import latency_lines
from neighbours import neighbour_lines
from precision import precision_lines
from tqdm import tqdm
from zoo import ZooSize, zoo_lines

from espnet_lenbias.options.values import from_one
from espnet_lenbias.report.tables import markdown_table, write_csv

HERE = Path(__file__).resolve().parent

SIZES = {"transformer": TransformerSize(), "lstm": LSTMSize()}
CORPUS = "mini_librispeech"
PRECISION_BEAM = 1024  # the largest beam that is taken to other precisions
ZOO = "zoo"
NEIGHBOURS = "neighbours"
LARGE = "transformer"  # the one that is taken to large vocabularies


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    models = [*SIZES, ZOO, NEIGHBOURS, CORPUS]
    add(
        "--models",
        nargs="+",
        choices=models,
        default=models,
        help="decoders with random weights; decoder, CTC and LM of the size of ESPnet's "
        "LibriSpeech recipe; numbers of threads beside other processes; the bundled "
        "model",
    )
    add(
        "--beams",
        nargs="+",
        type=int,
        default=[1, 8, 64, 256, 1024, 5000],
        help="for the decoders with random weights",
    )
    add(
        "--steps",
        type=int,
        default=25,
        help="positions of a search with random weights; large beams take fewer",
    )
    add(
        "--large_vocabs",
        nargs="*",
        type=from_one,
        default=[5000, 10000],
        help="vocabulary sizes at which the largest of --beams goes through all --steps, "
        "once, on the transformer",
    )
    add("--repeats", type=from_one, default=5, help="timed rounds, whose median counts")
    add("--device", choices=["cpu", "cuda"], default="cpu", help="where to decode")
    add(
        "--dtype",
        choices=["float32", "float16", "bfloat16"],
        default="float32",
        help="of the decoders with random weights",
    )
    add(
        "--espnet_seconds",
        type=float,
        default=30.0,
        help="what ESPnet's search may take for a measurement; where a single run is "
        "expected to take longer, its time is extrapolated",
    )
    threads = torch.get_num_threads()
    add("--threads", type=from_one, default=threads, help="of the CPU")
    add("--output_dir", type=Path, default=HERE / "exp", help="made if need be")
    return parser


def main(cmd: Sequence[str] | None = None) -> None:
    """Run the measurements; see the module's docstring."""
    parser = get_parser()
    args = parser.parse_args(cmd)
    check(parser, args)
    # That an output reached the length limit is a warning, and here the aim.
    logging.basicConfig(level=logging.ERROR)
    torch.set_num_threads(args.threads)
    machine = describe(args.device, args.dtype)
    print(machine, flush=True)

    args.output_dir.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        steps=args.steps,
        repeats=args.repeats,
        seconds=args.espnet_seconds,
        device=torch.device(args.device),
        dtype=getattr(torch, args.dtype),
    )
    tables = random_tables(args, settings, machine)
    write(args.output_dir, machine, tables)
    if ZOO in args.models:
        lines = zoo_lines(ZooSize(), settings)
        tables["zoo"] = list(tqdm(lines, desc=ZOO, unit="search"))
        write(args.output_dir, machine, tables)
    if NEIGHBOURS in args.models:
        tables["neighbours"] = neighbour_lines(settings)
        write(args.output_dir, machine, tables)
    if CORPUS in args.models:
        utterances, device = bundled(), torch.device(args.device)
        tables["corpus"] = corpus_lines(utterances, device)
        write(args.output_dir, machine, tables)
        tables["latency"] = latency_lines(utterances, device)
    print(write(args.output_dir, machine, tables))
    print(f"tables and plot are in {args.output_dir}")


def write(folder: Path, machine: str, tables: Mapping[str, Sequence[Any]]) -> str:
    """Write the tables that there are so far; return them as a text."""
    text = ""
    for name, lines in tables.items():
        write_csv(folder / f"{name}.csv", lines)
        # of what did not run nothing is known; the columns keep their width
        text += f"\n{markdown_table(lines).replace(' nan |', '   - |')}"
    (folder / "speed.md").write_text(f"{machine}\n{text}", "utf-8")
    return text


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Verify the options together; exit with a message if they do not fit."""
    vocab = min(size.vocab for size in SIZES.values())
    if not all(1 <= beam <= vocab for beam in args.beams):
        parser.error(
            f"--beams must be from 1 to {vocab}: ESPnet's search fails where the beam "
            "is larger than the vocabulary"
        )
    least = max(2, *args.beams)  # an end label and another
    if min(args.large_vocabs, default=vocab) < least:
        parser.error(f"--large_vocabs must be {least} or more: 2, and the largest beam")
    if args.steps < 2:
        parser.error("--steps must be 2 or more: ours takes one to end what runs on")
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no GPU")


def describe(device: str, dtype: str) -> str:
    """Return on what the times are taken."""
    name = torch.cuda.get_device_name() if device == "cuda" else cpu_name()
    threads = torch.get_num_threads()
    return f"{name}, CPU threads: {threads}, {dtype}, torch {torch.__version__}"


def cpu_name() -> str:
    """Return the model of the CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def random_tables(
    args: argparse.Namespace, settings: Settings, machine: str
) -> dict[str, list[Any]]:
    """Measure the decoders with random weights and plot a step of theirs.

    Returns:
        Name -> table; none for no decoder.
    """
    beams, batches, precisions = [], [], []
    for model in [model for model in SIZES if model in args.models]:
        bench = Bench(model, SIZES[model], settings)
        sizes = sorted(set(args.beams))
        for i, beam in enumerate(tqdm(sizes, desc=f"{model}, beams")):
            beams.append(bench.beam_line(beam, sizes[:i]))
        for n_utts in tqdm(BATCHES, desc=f"{model}, batches"):
            batches += bench.batch_lines(n_utts)
        if settings.device.type == "cpu":  # where ESPnet quantizes
            small = [beam for beam in sizes if beam <= PRECISION_BEAM]
            lines = precision_lines(model, SIZES[model], small, settings)
            precisions += tqdm(lines, desc=f"{model}, precisions", total=len(small))
    if not beams:
        return {}
    step_figure(beams, machine).savefig(args.output_dir / "step.png")
    tables = {"beams": beams, "batches": batches}
    if precisions:
        tables["precision"] = precisions
    if LARGE in args.models and args.large_vocabs:
        tables["large"] = [
            large_line(LARGE, SIZES[LARGE], vocab, max(args.beams), settings)
            for vocab in tqdm(args.large_vocabs, desc=f"{LARGE}, vocabularies")
        ]
    return tables


if __name__ == "__main__":
    main()
