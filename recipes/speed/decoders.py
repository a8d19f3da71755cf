"""The decoders and the language model that are measured, and the searches on them.

Both are ESPnet's, with random weights whose outputs are peaked enough that the beam
shuffles at every position. The end label is next to impossible, so every search goes on
to the length limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.compare.compare import PositionCounter
from espnet_lenbias.espnet_compat import (
    BeamSearch,
    RNNDecoder,
    TransformerDecoder,
    TransformerLM,
    espnet_search,
)

_IMPOSSIBLE = -1e4  # as a logit; within the range of float16


@dataclass(frozen=True)
class TransformerSize:
    """ESPnet's transformer decoder."""

    vocab: int = 5000  # V
    units: int = 512  # D, of the encoder output too
    heads: int = 8
    linear_units: int = 2048
    blocks: int = 6

    def build(self) -> TransformerDecoder:
        """Return the decoder with random weights."""
        decoder = TransformerDecoder(
            vocab_size=self.vocab,
            encoder_output_size=self.units,
            attention_heads=self.heads,
            linear_units=self.linear_units,
            num_blocks=self.blocks,
        )
        _shape_output(decoder.output_layer, 4.0)
        return decoder.eval()


@dataclass(frozen=True)
class LSTMSize:
    """ESPnet's LSTM decoder with location attention."""

    vocab: int = 5000  # V
    units: int = 512  # of a layer, and D of the encoder output
    layers: int = 2
    attention_units: int = 320
    channels: int = 10  # of the convolution over the attention weights
    filters: int = 100  # its reach to either side, in frames

    def build(self) -> RNNDecoder:
        """Return the decoder with random weights."""
        decoder = RNNDecoder(
            vocab_size=self.vocab,
            encoder_output_size=self.units,
            num_layers=self.layers,
            hidden_size=self.units,
            att_conf={
                "atype": "location",
                "adim": self.attention_units,
                "aconv_chans": self.channels,
                "aconv_filts": self.filters,
            },
        )
        _shape_output(decoder.output, 20.0)
        return decoder.eval()


@dataclass(frozen=True)
class LMSize:
    """ESPnet's transformer language model; see ``egs2/librispeech/asr1``."""

    vocab: int = 5000  # V
    embed_units: int = 128
    units: int = 512
    heads: int = 8
    linear_units: int = 2048
    blocks: int = 16

    def build(self) -> TransformerLM:
        """Return the language model with random weights."""
        lm = TransformerLM(
            self.vocab,
            embed_unit=self.embed_units,
            att_unit=self.units,
            head=self.heads,
            unit=self.linear_units,
            layer=self.blocks,
        )
        return lm.eval()


def _shape_output(layer: torch.nn.Linear, scale: float) -> None:
    """Make the outputs differ, and the end label impossible."""
    with torch.no_grad():
        layer.weight.mul_(scale)
        layer.bias[-1] = _IMPOSSIBLE


class Searcher:
    """A search on a decoder that takes a given number of steps.

    A step is one asking of the decoder for all hypotheses.
    """

    def __init__(self, search: BeamSearch, steps: int):
        """Take a search to its limit of `steps`, 2 or more."""
        self.search = search
        self._steps = steps
        # ESPnet's search ends all hypotheses at the limit unasked; ours asks the
        # decoder for their end label, one step more. Before that nothing may end: a
        # beam as large as the vocabulary has a place for the end label.
        ours = hasattr(search, "trace")
        self._longest, self._shortest = (
            (steps - 1, steps - 1) if ours else (steps, steps - 1)
        )
        self._counter = None if ours else PositionCounter(search)

    @torch.no_grad()
    def __call__(self, x: torch.Tensor) -> Any:
        """Decode (T, D) or (B, T, D); return what the search does.

        Raises:
            RuntimeError: The search took another number of steps.
        """
        result = self.search(x, maxlenratio=-self._longest, minlenratio=-self._shortest)
        n_utts = 1 if x.dim() == 2 else len(x)
        if self._counter:
            steps = self._counter.take(n_utts)
        else:
            steps = [trace.steps for trace in self.search.trace]
        if steps != [self._steps] * n_utts:
            raise RuntimeError(
                f"{type(self.search).__name__} took {steps} steps, not {self._steps}: "
                "its time cannot be compared"
            )
        return result


# What tables call a search -> its class, and options of its own.
_SEARCHES: dict[str, tuple[Callable, dict]] = {
    "espnet": (espnet_search, {}),
    "simple": (SimpleBeamSearch, {"nbest": 1}),
    "explicit_length": (ExplicitLengthBeamSearch, {"nbest": 1}),
}
SEARCHES = tuple(_SEARCHES)


def make_searcher(
    name: str, decoder: torch.nn.Module, vocab: int, beam: int, steps: int
) -> Searcher:
    """Return one of `SEARCHES` on a decoder, with the settings that ESPnet gives it."""
    search = search_on(name, {"decoder": decoder}, {"decoder": 1.0}, vocab, beam)
    return Searcher(search, steps)


def search_on(
    name: str, scorers: dict[str, Any], weights: dict[str, float], vocab: int, beam: int
) -> BeamSearch:
    """Return one of `SEARCHES` on scorers, with the settings that ESPnet gives it."""
    make, options = _SEARCHES[name]
    search = make(
        scorers=scorers,
        weights=weights,
        beam_size=beam,
        vocab_size=vocab,
        sos=vocab - 1,
        eos=vocab - 1,
        pre_beam_score_key="full",
        **options,
    )
    return search.eval()
