"""A step of the search with one thread, with all, and with as many as the tools choose,
on an idle machine and beside a busy process for each core.

The measurements run in a process of their own, since how threads wait is settled before
torch is loaded: here as in the tools.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial

import torch
from beams import FRAMES, Settings
from decoders import LSTMSize, Searcher, TransformerSize, make_searcher
from measure import expanded

from espnet_lenbias.decoding.search_threads import choose_threads
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.report.tables import column

BEAMS = (1, 8, 64)
_SIZES = {"transformer": TransformerSize(), "lstm": LSTMSize()}
_CHOSEN = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY")


@dataclass(frozen=True)
class NeighbourLine:
    """Seconds are those of a step with the full beam."""

    model: str = column("decoder")
    beam_size: int = column("beam")
    busy: int = column("busy processes beside it")
    one: float = column("one thread s", ".4f")
    every: float = column("all threads s", ".4f")
    chosen: float = column("as the tools s", ".4f")
    of_one: float = column("as the tools / one thread", ".2f")


def neighbour_lines(settings: Settings) -> list[NeighbourLine]:
    """Measure in another process.

    Args:
        settings: Of the measurements; on the CPU and in float32, whatever they say.
    """
    environment = {k: v for k, v in os.environ.items() if k not in _CHOSEN}
    numbers = [settings.steps, settings.repeats, settings.seconds]
    command = [sys.executable, __file__, *map(str, numbers)]
    ran = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return [NeighbourLine(**json.loads(line)) for line in ran.stdout.splitlines()]


def main(cmd: Sequence[str] | None = None) -> None:
    """Measure in this process; print a line of JSON for each line of the table."""
    wait_passively()
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int)
    parser.add_argument("repeats", type=int)
    parser.add_argument("seconds", type=float)
    args = parser.parse_args(cmd)
    logging.basicConfig(level=logging.ERROR)
    settings = Settings(**vars(args), device=torch.device("cpu"), dtype=torch.float32)
    for line in measured_here(settings):
        print(json.dumps(asdict(line)), flush=True)


def measured_here(settings: Settings) -> Iterator[NeighbourLine]:
    """Measure each decoder, beam and neighbourhood."""
    cores = torch.get_num_threads()
    for model, size in _SIZES.items():
        torch.manual_seed(0)
        decoder = size.build()
        x = torch.randn(FRAMES, size.units)
        for beam in BEAMS:
            steps = settings.steps_of(beam)
            searchers = {
                name: make_searcher("explicit_length", decoder, size.vocab, beam, steps)
                for name in ("one", "every", "chosen")
            }
            choose_threads(searchers["chosen"].search)
            threads = {"one": 1, "every": cores, "chosen": cores}
            calls = {
                name: partial(_with_threads, threads[name], searcher, x)
                for name, searcher in searchers.items()
            }
            a_step = beam / expanded(beam, steps)
            for busy in (0, cores):
                with busy_processes(busy):
                    measured = settings.measure(calls)
                seconds = {name: m.seconds * a_step for name, m in measured.items()}
                of_one = seconds["chosen"] / seconds["one"]
                yield NeighbourLine(model, beam, busy, **seconds, of_one=of_one)


def _with_threads(threads: int, searcher: Searcher, x: torch.Tensor) -> None:
    torch.set_num_threads(threads)
    searcher(x)


@contextmanager
def busy_processes(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Keep so many other processes busy; give these."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
