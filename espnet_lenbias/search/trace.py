"""The trace of a search: how each utterance came to its result."""

import math
from dataclasses import dataclass, field

import torch

from espnet_lenbias.search.length_model import log_p_length


@dataclass
class Trace:
    """How the search of one utterance went.

    The lists have one entry for each position N = 1, 2, ...
    Simple search has no ending probabilities: `p_end` and `log_not_ended` stay empty. It
    alone ranks ended and running hypotheses by one score, and fills `best_running`.
    """

    # Why it stopped: "bound" (no later hypothesis could win), "ended" (nothing runs on),
    # "early" (by an option, though a later one could have won), "limit" (of the length),
    # "forced" (limit reached, or no label possible, with nothing ended), "empty" (no
    # frames).
    stopped: str = ""
    p_end: list[float] = field(default_factory=list)  # eq. 3
    log_not_ended: list[float] = field(default_factory=list)  # over n < N
    kept: list[int] = field(default_factory=list)  # hypotheses left by the pruning
    running: list[int] = field(default_factory=list)  # those of them that go on
    best_final: list[float] = field(default_factory=list)  # best score so far, or -inf
    best_running: list[float] = field(default_factory=list)  # of what goes on, or -inf

    @property
    def steps(self) -> int:
        """How many positions were expanded."""
        return len(self.kept)

    @property
    def log_running(self) -> float:
        """The log-prob that the output is longer than all positions; of eq. 3."""
        p_end = self.p_end[-1]
        return self.log_not_ended[-1] + (math.log1p(-p_end) if p_end < 1 else -math.inf)

    @property
    def p_length(self) -> list[float]:
        """The probability of each output length N (eq. 2)."""
        log_p_end = torch.tensor(self.p_end, dtype=torch.float64).log()
        log_not_ended = torch.tensor(self.log_not_ended, dtype=torch.float64)
        return log_p_length(log_p_end, log_not_ended).exp().tolist()


class TraceRecorder:
    """Collects the traces of a batch without waiting for the device."""

    _counts = ("kept", "running")

    def __init__(self, columns: tuple[str, ...], n_utts: int):
        self._columns = columns
        self._n_utts = n_utts
        self._utts: list[int] = []
        self._rows: list[torch.Tensor] = []
        self._stopped: dict[int, str] = {}

    def add(self, utts: list[int], row: torch.Tensor) -> None:
        """Note one position: (A, R), a row for each of these utterances."""
        self._utts += utts
        self._rows.append(row)

    def stop(self, utt: int, reason: str) -> None:
        """Note why an utterance needs no further position."""
        self._stopped[utt] = reason

    def traces(self) -> list[Trace]:
        """Return the trace of each utterance."""
        traces = [Trace(stopped=self._stopped[b]) for b in range(self._n_utts)]
        for utt, row in zip(self._utts, torch.cat(self._rows).tolist()):
            for name, value in zip(self._columns, row):
                value = int(value) if name in self._counts else value
                getattr(traces[utt], name).append(value)
        return traces
