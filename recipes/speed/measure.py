"""Time and memory of calls that take turns, and what a larger beam would take."""

import ctypes
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")

_CACHE_BYTES = 2**27  # enough to empty a processor's caches of all else


@dataclass(frozen=True)
class Measurement:
    """What a call takes."""

    seconds: float  # median
    megabytes: float  # the most that it holds at once beyond what is held before


def take_turns(
    calls: Mapping[Any, Callable[[], object]],
    repeats: int,
    seconds: float,
    device: torch.device,
) -> dict[Any, Measurement]:
    """Measure calls in rounds: each once, then each once more, and so on.

    Whatever else the machine does falls on all alike. A round before the timed ones warms
    everything up, and there the memory is measured.

    Args:
        calls: What to measure.
        repeats: Timed rounds.
        seconds: A call that another round would take beyond this sits out; its first
            round counts, if there was no other.
        device: Of the tensors.
    """
    megabytes, times = {}, {}
    other = torch.zeros(_CACHE_BYTES, dtype=torch.uint8, device=device)
    for name, call in calls.items():
        start = now(device)
        megabytes[name] = peak_megabytes(call, device)
        times[name] = [now(device) - start]
    for _ in range(repeats):
        for name, call in calls.items():
            if sum(times[name]) + times[name][-1] <= seconds:
                # so that none finds in the cache what another one has left there
                other.add_(1)
                start = now(device)
                call()
                times[name].append(now(device) - start)
    return {
        name: Measurement(median(times[name][1:] or times[name]), megabytes[name])
        for name in calls
    }


def now(device: torch.device) -> float:
    """Return the time in seconds, once the device has done its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def peak_megabytes(call: Callable[[], object], device: torch.device) -> float:
    """Return how much memory a call holds at most, beyond what is held before.

    On a CPU this is the resident set of the process, whose high-water mark Linux
    resets when 5 is written to ``clear_refs``.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        return (torch.cuda.max_memory_allocated(device) - before) / 1e6
    ctypes.CDLL(None).malloc_trim(0)  # else the call is given what others have freed
    _CLEAR.write_text("5")
    before = _resident("VmRSS")
    call()
    return (_resident("VmHWM") - before) / 1e6


def _resident(name: str) -> int:
    """Return a value of the process's status in bytes; the file counts in KiB."""
    for line in _STATUS.read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return 1024 * int(value.split()[0])
    raise RuntimeError(f"{_STATUS} has no {name}: memory is measured on Linux only")


def expanded(beam: int, steps: int) -> int:
    """Return how many hypotheses a search expands: one at first, then the beam."""
    return 1 + (steps - 1) * beam


class Forecast:
    """How long a search would take at beam sizes at which it has not run yet."""

    def __init__(self):
        self._costs: dict[int, float] = {}  # beam size -> seconds of a hypothesis

    def learn(self, beam: int, steps: int, seconds: float) -> None:
        """Note what a search took."""
        self._costs[beam] = seconds / expanded(beam, steps)

    def seconds(self, beam: int, steps: int) -> float:
        """Return the time to expect, 0 before anything has been learnt.

        It is in proportion to the hypotheses expanded; and if the time of one grew from
        the last but one beam size to the last, by the same power of the beam again.
        """
        if not self._costs:
            return 0.0
        known = sorted(self._costs)
        last = known[-1]
        cost = self._costs.get(beam, self._costs[last])
        if beam > last and len(known) > 1:
            growth = math.log(self._costs[last] / self._costs[known[-2]])
            power = growth / math.log(last / known[-2])
            cost *= (beam / last) ** max(0.0, power)
        return cost * expanded(beam, steps)

    def largest(self, beams: Iterable[int], steps: int, limit: float) -> int:
        """Return the largest beam size expected within a limit of seconds, or the least."""
        least, *others = sorted(beams)
        return max([least, *(b for b in others if self.seconds(b, steps) <= limit)])
