"""How many of torch's threads a search works with on a CPU.

A step of the search is hundreds of short calls, and in each of them every thread waits for
the slowest one. Where there is little to share out, one thread is as fast as several; and
where another process has the core of one of them, each call waits until it is given back.
So a search has more threads than one for large steps only, and no more than cores are
idle. The encoder always has all of them.
"""

import os
from pathlib import Path
from typing import Any

import torch

# Multiplications of a step from which more threads than one save time: recipes/speed
# measures it.
_LARGE = 2**29

# Linux's: how many threads of all processes run, and the threads of this one.
_LOAD, _TASKS = Path("/proc/loadavg"), Path("/proc/self/task")

_CHOSEN_ELSEWHERE = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def choose_threads(search: torch.nn.Module | None) -> None:
    """Have a search use one thread where its steps are small, else as many as are idle.

    Nothing is changed where the environment says how many threads there are. The last
    digits of scores depend on their number.

    Args:
        search: A search, ESPnet's too; None: what is no module, and left alone.
    """
    if search is None or any(name in os.environ for name in _CHOSEN_ELSEWHERE):
        return
    threads = _Threads()
    search.register_forward_pre_hook(threads.lower, with_kwargs=True)
    search.register_forward_hook(threads.restore, always_call=True)


def multiplications(search: Any, x: torch.Tensor) -> int:
    """Return about how many multiplications a full beam's step takes.

    Args:
        search: A search, whose networks are asked for each hypothesis once a step.
        x: (T, D) of one utterance, or (B, T, D).
    """
    n_utts = len(x) if x.dim() == 3 else 1
    parameters = sum(p.numel() for p in search.parameters())
    return int(n_utts * search.beam_size * parameters)


def idle_cores() -> int:
    """Return how many cores other processes leave to this one: one at least.

    On systems that do not tell what is running: all.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    try:
        # in this order: a thread of the encoder that still looks for work, and is asleep
        # a moment later, is no other process's
        mine = sum(map(_runs, _TASKS.glob("*/stat")))
        running = int(_LOAD.read_text().split()[3].partition("/")[0])
    except OSError:
        return cores
    return max(1, cores - max(0, running - mine))


def _runs(stat: Path) -> bool:
    """Tell whether a thread runs, by its line `number (name) state ...`."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:  # it has ended
        return False


class _Threads:
    """The number of threads around the calls of a search."""

    def __init__(self) -> None:
        self._before: int | None = None  # what to go back to

    def lower(
        self, search: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        x = kwargs["x"] if "x" in kwargs else args[0]
        if x.device.type != "cpu":
            return
        self._before = torch.get_num_threads()
        small = multiplications(search, x) < _LARGE
        torch.set_num_threads(1 if small else min(self._before, idle_cores()))

    def restore(self, *_: Any) -> None:
        if self._before is not None:
            torch.set_num_threads(self._before)
            self._before = None
