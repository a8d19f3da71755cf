"""Searches on a decoder with random weights: a step at each beam size, and batches."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from decoders import LSTMSize, Searcher, TransformerSize, make_searcher
from floor import Floor, products
from measure import Forecast, Measurement, expanded, take_turns

from espnet_lenbias.espnet_compat import BatchBeamSearch
from espnet_lenbias.report.tables import column

FRAMES = 150  # T
BATCH_BEAM = 8
MEASURED = "measured"
BATCHES = (4, 8, 16)

# With a large beam a few steps tell what many would: fewer are taken where the beam would
# have more hypotheses to expand than this, but never fewer than three.
_MOST_EXPANDED = 3200
_FEWEST_STEPS = 3


@dataclass(frozen=True)
class Settings:
    """What holds for all measurements."""

    steps: int  # of a search, 2 or more
    repeats: int
    seconds: float  # what ESPnet's search, or any other, may take for a measurement
    device: torch.device
    dtype: torch.dtype

    def steps_of(self, hypotheses: int) -> int:
        """Return the steps of a search with so many hypotheses at once."""
        affordable = max(_FEWEST_STEPS, _MOST_EXPANDED // hypotheses)
        return min(self.steps, affordable)

    def measure(
        self, calls: Mapping[Any, Callable[[], object]]
    ) -> dict[Any, Measurement]:
        """Let calls take turns."""
        return take_turns(calls, self.repeats, self.seconds, self.device)


@dataclass(frozen=True)
class BeamLine:
    """The searches at a beam size; seconds are those of a step with the full beam."""

    model: str = column("decoder")
    beam_size: int = column("beam")
    steps: int = column("steps")
    floor: float = column("floor s", ".4f")
    explicit_length: float = column("explicit_length s", ".4f")
    espnet: float = column("espnet s", ".4f")
    espnet_from: str = column("espnet is")
    speedup: float = column("espnet / explicit_length", ".1f")
    of_floor: float = column("explicit_length / floor", ".2f")
    of_simple: float = column("explicit_length / simple", ".3f")
    megabytes: float = column("explicit_length MB", ".0f")
    espnet_megabytes: float = column("espnet MB", ".0f")  # nan: it did not run


@dataclass(frozen=True)
class BatchLine:
    """A search that is given several utterances in one call."""

    model: str = column("decoder")
    search: str = column("search")
    utterances: int = column("utterances")
    steps: int = column("steps")
    alone: float = column("one by one, utt/s", ".2f")
    together: float = column("in one call, utt/s", ".2f")
    gain: float = column("gain", ".2f")
    of_floor: float = column("in one call / floor", ".2f")


class Bench:
    """A decoder that is measured."""

    def __init__(
        self, model: str, size: TransformerSize | LSTMSize, settings: Settings
    ):
        """Build it, the same every time.

        Args:
            model: What tables call it.
            size: Of the decoder.
            settings: Of the measurements.
        """
        torch.manual_seed(0)
        kind = {"device": settings.device, "dtype": settings.dtype}
        self.model, self.size, self.settings = model, size, settings
        self._decoder = size.build().to(**kind)
        self._x = torch.randn(max(BATCHES), FRAMES, size.units, **kind)
        self._espnet = Forecast()

    def searcher(self, name: str, beam: int, steps: int) -> Searcher:
        """Return a search on the decoder, by its name in `decoders.SEARCHES`."""
        return make_searcher(name, self._decoder, self.size.vocab, beam, steps)

    def floor(self, beam: int, utts: int, steps: int) -> Floor:
        """Return the matrix products of a search."""
        listed = products(self.size, beam, utts, FRAMES, steps)
        return Floor(listed, self.settings.device, self.settings.dtype)

    def beam_line(self, beam: int, smaller: Iterable[int] = ()) -> BeamLine:
        """Measure a beam size.

        Args:
            beam: K; from one call to the next it grows.
            smaller: Beam sizes that ESPnet's search runs at instead, where it is
                expected to take too long.
        """
        settings, x = self.settings, self._x[0]
        steps = settings.steps_of(beam)
        espnet_beam = self._espnet.largest([beam, *smaller], steps, settings.seconds)
        calls = {
            "explicit_length": partial(
                self.searcher("explicit_length", beam, steps), x
            ),
            "espnet": partial(self.searcher("espnet", espnet_beam, steps), x),
            "floor": self.floor(beam, 1, steps),
            "simple": partial(self.searcher("simple", beam, steps), x),
        }
        measured = settings.measure(calls)
        espnet = measured["espnet"]
        self._espnet.learn(espnet_beam, steps, espnet.seconds)
        seconds = {name: m.seconds for name, m in measured.items()}
        seconds["espnet"] = extrapolated(espnet.seconds, espnet_beam, beam, steps)
        here = espnet_beam == beam
        a_step = beam / expanded(beam, steps)
        return BeamLine(
            model=self.model,
            beam_size=beam,
            steps=steps,
            floor=seconds["floor"] * a_step,
            explicit_length=seconds["explicit_length"] * a_step,
            espnet=seconds["espnet"] * a_step,
            espnet_from=MEASURED if here else f"extrapolated from {espnet_beam}",
            speedup=seconds["espnet"] / seconds["explicit_length"],
            of_floor=seconds["explicit_length"] / seconds["floor"],
            of_simple=seconds["explicit_length"] / seconds["simple"],
            megabytes=measured["explicit_length"].megabytes,
            espnet_megabytes=espnet.megabytes if here else math.nan,
        )

    def batch_lines(self, n_utts: int) -> Iterator[BatchLine]:
        """Measure calls with several utterances against calls with one.

        ESPnet's search takes part where it takes batches and has the time.
        """
        steps = self.settings.steps_of(BATCH_BEAM * max(BATCHES))
        names = ["explicit_length"]
        expected = n_utts * self._espnet.seconds(BATCH_BEAM, steps)
        espnet = self.searcher("espnet", BATCH_BEAM, steps)
        if isinstance(espnet.search, BatchBeamSearch) and (
            expected <= self.settings.seconds
        ):
            names.append("espnet")
        calls = {"floor": self.floor(BATCH_BEAM, n_utts, steps)}
        for name in names:
            searcher = self.searcher(name, BATCH_BEAM, steps)
            calls[name, "alone"] = partial(searcher, self._x[0])
            calls[name, "together"] = partial(searcher, self._x[:n_utts])
        measured = self.settings.measure(calls)
        for name in names:
            alone = measured[name, "alone"].seconds
            together = measured[name, "together"].seconds
            yield BatchLine(
                model=self.model,
                search=name,
                utterances=n_utts,
                steps=steps,
                alone=1 / alone,
                together=n_utts / together,
                gain=n_utts * alone / together,
                of_floor=together / measured["floor"].seconds,
            )


def extrapolated(seconds: float, measured: int, beam: int, steps: int) -> float:
    """Return the seconds of a search at a larger beam than that which it ran at.

    In proportion to the hypotheses expanded, so that nothing is held against it: what
    grows faster than the beam is not counted.
    """
    return seconds * expanded(beam, steps) / expanded(measured, steps)
