"""The same utterances decoded by several searches on one loaded model.

Each utterance is encoded once, then every search decodes it before the next utterance
has its turn: whatever else the machine does meanwhile falls on all searches alike.
"""

import inspect
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espnet_lenbias.compare.utterances import Utterance, batches
from espnet_lenbias.options.audio_files import read_audio
from espnet_lenbias.options.registry import (
    ESPNET,
    build_search,
    check_search_conf,
    search_options,
)
from espnet_lenbias.report.figures.looks import Kind
from espnet_lenbias.report.label_text import text_of
from espnet_lenbias.report.systems import option_names

if TYPE_CHECKING:  # slow to load, and not all that imports this decodes
    import torch

    from espnet_lenbias.espnet_compat import BeamSearch, Hypothesis


@dataclass(frozen=True)
class ComparedSearch:
    """A search to compare."""

    label: str  # what tables and plots call it
    search: str  # one of espnet_lenbias.available_searches()
    beam_size: int
    conf: Mapping[str, Any] = field(default_factory=dict)  # as search_conf

    @property
    def kind(self) -> Kind:
        """What decides how figures draw it."""
        return Kind(self.search, option_names(self.conf))


@dataclass(frozen=True)
class Result:
    """What one search made of one utterance."""

    dataset: str
    utterance: str
    search: str  # the label of its row
    beam_size: int
    reference: str
    text: str
    original_score: float  # q, a log-prob
    score: float  # what the search ranks by
    steps: int  # positions expanded
    seconds: float  # for the search alone; an equal share where a batch was decoded


def compare(
    model: Any,
    rows: Sequence[ComparedSearch],
    utterances: Sequence[Utterance],
    batch_size: int = 1,
) -> Iterator[list[Result]]:
    """Decode with every row's search, one batch of utterances after the other.

    Args:
        model: ESPnet's ``Speech2Text`` or ours; its scorers, weights and length ratios
            apply to all rows.
        rows: The searches.
        utterances: What to decode.
        batch_size: How many of them a search is given at once.

    Yields:
        The results of a batch: those of the first row, then of the second, and so on.

    Raises:
        ValueError: A row's search cannot be made, or takes no batches.
    """
    contestants = [Contestant(model, row, batch_size) for row in rows]
    for batch in batches(utterances, batch_size):
        encoded = [encode(model, utterance.audio) for utterance in batch]
        yield [r for c in contestants for r in c.decode(batch, encoded)]


def encode(model: Any, audio: Path) -> "torch.Tensor":
    """Return the encoder output of an audio file, (T, D)."""
    # Here, not above: these load torch and ESPnet.
    import torch

    from espnet_lenbias.inference.encoding import encode_alone

    return encode_alone(model, torch.from_numpy(read_audio(audio)))


def row_search(model: Any, row: ComparedSearch) -> "BeamSearch":
    """Return a row's search over the model's scorers.

    Raises:
        ValueError: There is no such search, or it does not take these options.
    """
    import torch

    from espnet_lenbias.inference.use_search import lower_precision

    check_search_conf(row.search, row.conf)
    n_vocab = model.beam_search.n_vocab
    if row.search == ESPNET and row.beam_size > n_vocab:
        raise ValueError(
            f"search: {ESPNET} needs a beam within the {n_vocab} labels of the "
            f"model's vocabulary, not {row.beam_size}"
        )
    best_only = {"nbest": 1} if "nbest" in search_options(row.search) else {}
    search: BeamSearch = build_search(
        row.search, model.beam_search, row.beam_size, **{**best_only, **row.conf}
    )
    search = search.to(device=model.device, dtype=getattr(torch, model.dtype)).eval()
    if row.search != ESPNET:
        lower_precision(search, getattr(model, "decoder_dtype", None), model)
    return search


class Contestant:
    """A row's search on a loaded model, timed."""

    def __init__(self, model: Any, row: ComparedSearch, batch_size: int):
        """Build the search; see :func:`compare`."""
        self.model = model
        self.row = row
        self.search = row_search(model, row)
        takes_batches = "x_lengths" in inspect.signature(self.search.forward).parameters
        if batch_size > 1 and not takes_batches:
            raise ValueError(
                f"{row.label} decodes this model one utterance at a time: set "
                "batch_size to 1"
            )
        self._positions = None
        if not hasattr(self.search, "trace"):
            self._positions = PositionCounter(self.search)

    def decode(
        self, utterances: Sequence[Utterance], encoded: Sequence["torch.Tensor"]
    ) -> list[Result]:
        """Decode a batch.

        Args:
            utterances: B of them.
            encoded: Their encoder outputs, (T, D) each.
        """
        start = _now(encoded[0])
        hyps = self._best(encoded)
        seconds = (_now(encoded[0]) - start) / len(utterances)
        steps = self._steps(len(utterances))
        return [
            Result(
                dataset=utterance.dataset,
                utterance=utterance.key,
                search=self.row.label,
                beam_size=self.row.beam_size,
                reference=utterance.reference,
                text=text_of(self.model, hyp.yseq[1:-1].tolist()),
                original_score=float(getattr(hyp, "original_score", hyp.score)),
                score=float(hyp.score),
                steps=n_steps,
                seconds=seconds,
            )
            for utterance, hyp, n_steps in zip(utterances, hyps, steps, strict=True)
        ]

    def _best(self, encoded: Sequence["torch.Tensor"]) -> list["Hypothesis"]:
        """Return the best hypothesis of each utterance."""
        import torch

        from espnet_lenbias.inference.encoding import padded

        ratios = (self.model.maxlenratio, self.model.minlenratio)
        with torch.no_grad():
            if len(encoded) == 1:
                best: list[Hypothesis] = self.search(encoded[0], *ratios)[:1]
                return best
            x, lengths = padded(encoded)
            return [nbest[0] for nbest in self.search(x, *ratios, x_lengths=lengths)]

    def _steps(self, n_utts: int) -> list[int]:
        """Return how many positions the last call expanded for each utterance."""
        if self._positions is not None:
            return self._positions.take(n_utts)
        return [trace.steps for trace in self.search.trace]


class PositionCounter:
    """Counts the positions that ESPnet's own search expands.

    It stands in for the method `search`, which ESPnet's loop calls once a position.
    """

    def __init__(self, search: "BeamSearch"):
        self._search = search.search
        self._done: list[Any] = []  # at each position: (B,) bool
        search.search = self

    def __call__(self, running_hyps: Any, *args: Any, **kwargs: Any) -> Any:
        """Note a position, and search it."""
        # ESPnet notes which utterances of a batch have finished; None: none has
        self._done.append(getattr(running_hyps, "done", None))
        return self._search(running_hyps, *args, **kwargs)

    def take(self, n_utts: int) -> list[int]:
        """Return the positions of each utterance and start anew."""
        steps = [
            sum(done is None or not done[b] for done in self._done)
            for b in range(n_utts)
        ]
        self._done.clear()
        return steps


def _now(x: "torch.Tensor") -> float:
    """Return the time in seconds, once the tensor's device has done its work."""
    if x.is_cuda:
        import torch

        torch.cuda.synchronize(x.device)
    return time.perf_counter()
