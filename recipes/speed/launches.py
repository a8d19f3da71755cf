"""Count what a step would ask of a GPU, on a pretended one.

Launches of work, transfers to the device and waits for it, at several numbers of utterances
in one call. No GPU is needed, and nothing is said of time: see `simulation.py`. Prints
tables in Markdown.
"""

import argparse
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from decoders import SEARCHES, LSTMSize, TransformerSize, make_searcher
from simulation import Counts, on_device, simulated_device

from espnet_lenbias.report.tables import column, markdown_table

SIZES: dict[str, Any] = {"transformer": TransformerSize(), "lstm": LSTMSize()}
# where a call waits for what it returns
_AT_END = ("search/ended.py", "search/trace.py")

OURS = [name for name in SEARCHES if name != "espnet"]


@dataclass(frozen=True)
class LaunchLine:
    """What a call asks of the device; its start and its end are part of it."""

    decoder: str = column("decoder")
    search: str = column("search")
    utterances: int = column("utterances")
    steps: int = column("steps")
    launches: float = column("launches a step", ".1f")
    transfers: float = column("transfers a step", ".1f")
    waits: float = column("waits a step", ".2f")
    at_end: int = column("waits at the end")


@dataclass(frozen=True)
class SourceLine:
    """A line of the package that launches work."""

    place: str = column("line")
    operation: str = column("operation")
    launches: float = column("launches a step", ".1f")


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--models", nargs="+", choices=list(SIZES), default=list(SIZES))
    add("--searches", nargs="+", choices=OURS, default=OURS)
    add("--utterances", nargs="+", type=int, default=[1, 2, 8, 16], help="in one call")
    add("--beam", type=int, default=8)
    add("--frames", type=int, default=150, help="of each utterance")
    add("--steps", type=int, default=25, help="positions of a search")
    add("--lines", type=int, default=0, help="also list so many lines that launch most")
    return parser


def counts_of(
    decoder: torch.nn.Module,
    size: Any,
    search: str,
    n_utts: int,
    args: argparse.Namespace,
) -> Counts:
    """Return what one call asks of the device.

    Args:
        decoder: On the device.
        size: Of the decoder.
        search: Its name.
        n_utts: In one call.
        args: The command line.
    """
    torch.manual_seed(0)
    x = on_device(torch.randn(n_utts, args.frames, size.units))
    searcher = make_searcher(search, decoder, size.vocab, args.beam, args.steps)
    with simulated_device() as counts:
        searcher(x)
    return counts


def launch_line(
    name: str, search: str, n_utts: int, steps: int, counts: Counts
) -> LaunchLine:
    """Return a line of the table."""
    at_end = sum(
        n for (where, _), n in counts.waits.items() if where.startswith(_AT_END)
    )
    return LaunchLine(
        name,
        search,
        n_utts,
        steps,
        counts.of("launches") / steps,
        counts.of("transfers") / steps,
        (counts.of("waits") - at_end) / steps,
        at_end,
    )


def source_lines(counts: Counts, steps: int, most: int) -> list[SourceLine]:
    """Return the lines of the package that launch most."""
    return [
        SourceLine(place, operation, n / steps)
        for (place, operation), n in counts.launches.most_common(most)
    ]


def main(cmd: Sequence[str] | None = None) -> None:
    """Print the tables; see the module's docstring."""
    parser = get_parser()
    args = parser.parse_args(cmd)
    if min(*args.utterances, args.beam, args.frames) < 1:
        parser.error("--utterances, --beam and --frames must be 1 or more")
    if args.steps < 2:
        parser.error("--steps must be 2 or more: ours takes one to end what runs on")
    # that an output reached the length limit is a warning, and here the aim
    logging.basicConfig(level=logging.ERROR)
    lines, by_line = [], []
    for name in args.models:
        torch.manual_seed(0)
        decoder = on_device(SIZES[name].build())
        for search in args.searches:
            for n_utts in args.utterances:
                counts = counts_of(decoder, SIZES[name], search, n_utts, args)
                lines.append(launch_line(name, search, n_utts, args.steps, counts))
            by_line.append(source_lines(counts, args.steps, args.lines))
    print(markdown_table(lines))
    for line, tops in zip(
        lines[len(args.utterances) - 1 :: len(args.utterances)], by_line
    ):
        if tops:
            at = f"{line.decoder}, {line.search}, {line.utterances} utterances"
            print(f"\n{at}:\n\n{markdown_table(tops)}")


if __name__ == "__main__":
    main()
