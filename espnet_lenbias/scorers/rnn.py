"""An RNN decoder asked for all hypotheses of all utterances at once.

ESPnet asks its `RNNDecoder` for one hypothesis after the other. Here the embedding,
the cells and the output layer see all n hypotheses in one call, and the attention sees
those of an utterance in one call: over its own frames, so there is no padding to mask,
and with the projection of the frames computed once and shared.

The attention is ESPnet's own, whatever its type. It keeps the frames and what it
computes of them on itself, where a second utterance or a second search would find them;
so each utterance has a copy of it (of the module, not of its weights), which belongs to
the state. Two things are done around it: its arrays of (n, T, D) are made for a few
hypotheses at a time, and where it has one head, the frames are summed by its weights
here, in one matrix product instead of one more such array.

H is the size of a layer; the other symbols are those of :mod:`.base`.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from espnet_lenbias.beam import Span
from espnet_lenbias.espnet_compat import (
    AttAdd,
    AttCov,
    AttCovLoc,
    AttDot,
    AttLoc,
    AttLoc2D,
    AttLocRec,
    AttMultiHeadAdd,
    AttMultiHeadDot,
    AttMultiHeadLoc,
    AttMultiHeadMultiResLoc,
    NoAtt,
    RNNDecoder,
)
from espnet_lenbias.scorers.base import (
    Memory,
    Prefixes,
    Scores,
    Selection,
    attention_of_all,
)

# elements of the largest array (hypotheses, T, D) that an attention makes: what stays in
# a core's cache, or what keeps a GPU busy
_ELEMENTS = {"cpu": 2**19, "cuda": 2**26}

_COVERAGE = (AttCov, AttCovLoc)
_ONE_HEAD = (*_COVERAGE, AttAdd, AttDot, AttLoc, AttLoc2D, AttLocRec)
_ATTENTIONS = (
    *_ONE_HEAD,
    AttMultiHeadAdd,
    AttMultiHeadDot,
    AttMultiHeadLoc,
    AttMultiHeadMultiResLoc,
    NoAtt,
)


class Source(NamedTuple):
    """What the hypotheses of one utterance attend to, and by what."""

    attention: torch.nn.Module  # a copy that has seen the frames
    frames: torch.Tensor  # (1, T_utt, D)


class State(NamedTuple):
    """The state of all hypotheses, that of the attention utterance by utterance."""

    sources: list[Source]  # one for each utterance of the memory
    z: list[torch.Tensor]  # (n, H) output of each layer
    c: list[torch.Tensor | None]  # (n, H) cell of each layer; None in a GRU
    # utterance -> its first row and what the attention keeps of its n_b hypotheses:
    # nothing at first, then a tree of tensors (n_b, ...)
    past: dict[int, tuple[int, Any]]
    length: int  # labels that the layers have seen


def supports(decoder: object) -> bool:
    """Tell whether this adapter computes what the decoder computes.

    All types of attention are; decoders that attend to several encoders are left to the
    fallback.
    """
    return (
        type(decoder) is RNNDecoder
        and decoder.num_encs == 1
        and type(decoder.att_list[0]) in _ATTENTIONS
    )


class BatchedRNN:
    """Adapter of ESPnet's `RNNDecoder`, LSTM or GRU."""

    def __init__(self, decoder: RNNDecoder, tell_attention: bool = False):
        self.decoder = decoder
        self._tell_attention = tell_attention

    def start(self, memory: Memory) -> State:
        """Show each utterance to its copy of the attention; layers start from zero."""
        zeros = memory.x.new_zeros(len(memory), self.decoder.dunits)
        layers = [zeros] * self.decoder.dlayers
        return State(
            [self._source(memory.frames(b)) for b in range(len(memory))],
            layers,
            layers if self.decoder.dtype == "lstm" else [None] * len(layers),
            {},
            0,
        )

    def _source(self, frames: torch.Tensor) -> Source:
        attention = copy.copy(self.decoder.att_list[0])
        attention.reset()
        frames = frames.unsqueeze(0)
        # it keeps what it computes of the frames in its first call
        attention(frames, [frames.size(1)], None, None)
        if isinstance(attention, _ONE_HEAD):
            # it sums frames without width, which costs nothing
            attention.enc_h = frames[..., :0]
        return Source(attention, frames)

    def step(
        self, state: State, prefixes: Prefixes, wanted: torch.Tensor | None = None
    ) -> Scores:
        """Score all labels after each prefix.

        The first call covers the whole primer, each later one a single label more.
        """
        decoder, length = self.decoder, prefixes.yseq.size(1)
        sources, z, c, past, seen = state
        for position in range(seen, length):
            x = decoder.embed(prefixes.yseq[:, position])
            context, past, weights = _attend(sources, z[0], past, prefixes.spans)
            x = torch.cat([x, context], dim=1)
            # it fills the lists that it gets, and puts no cells in for a GRU
            z, c = decoder.rnn_forward(x, [None] * len(z), [None] * len(z), z, c)
        top = torch.cat([z[-1], context], dim=1) if decoder.context_residual else z[-1]
        scores = torch.log_softmax(decoder.output(top), dim=1)
        attention = None
        if self._tell_attention:
            longest = max(source.frames.size(1) for source in sources)
            attention = attention_of_all(weights, longest)
        state = State(sources, z, c, past, length)
        return Scores(scores, state, attention=attention)

    def select(self, state: State, selection: Selection) -> State:
        """Return the state of the chosen extensions."""

        def taken(tree: Any, rows: torch.Tensor) -> Any:
            return _map(lambda values: values.index_select(0, rows), tree)

        past = {}
        for span in selection.spans:
            first, tree = state.past[span.utt]
            hyps = selection.parents[span.rows] - first
            past[span.utt] = (span.start, taken(tree, hyps))
        z, c = taken([state.z, state.c], selection.parents)
        return State(state.sources, z, c, past, state.length)

    def final(self, state: State) -> None:
        """A decoder adds nothing when a hypothesis ends."""
        return None


def _attend(
    sources: list[Source],
    z: torch.Tensor,
    past: dict[int, tuple[int, Any]],
    spans: list[Span],
) -> tuple[torch.Tensor, dict[int, tuple[int, Any]], list[torch.Tensor]]:
    """Attend to the frames of each utterance.

    Args:
        sources: What there is to attend to, for each utterance.
        z: (n, H) output of the lowest layer.
        past: What the attentions have kept, see `State`.
        spans: The rows of each utterance among the n.

    Returns:
        (n, D) what was found, what the attentions keep now, and for each utterance the
        weights of its frames, (n_b, T_utt).
    """
    contexts, kept, every = [], {}, []
    for span in spans:
        source = sources[span.utt]
        n, n_frames, width = span.stop - span.start, *source.frames.shape[1:]
        _, tree = past.get(span.utt, (0, None))
        rows = max(1, _ELEMENTS.get(z.device.type, 2**26) // (n_frames * width))
        parts = []
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            mine = _map(lambda values, part=part: values[part], tree)
            parts.append(_attend_some(source, z[span.rows][part], mine))
        context, tree, weights = _cat(parts)
        contexts.append(context)
        every.append(weights)
        kept[span.utt] = (span.start, tree)
    return torch.cat(contexts), kept, every


def _attend_some(
    source: Source, z: torch.Tensor, tree: Any
) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """Attend for some hypotheses of one utterance.

    Args:
        source: The utterance.
        z: (n, H) output of the lowest layer.
        tree: What the attention has kept of these hypotheses.

    Returns:
        (n, D) what was found, what the attention keeps now, (n, T) weights.
    """
    attention, frames = source
    n, n_frames = len(z), frames.size(1)
    if isinstance(attention, _COVERAGE) and tree is not None:
        tree = [tree]
    # of these frames the copy takes no more than their number: what it computed of
    # them when it saw them first is a batch of one, which all hypotheses share
    context, tree = attention(frames.expand(n, -1, -1), [n_frames] * n, z, tree)
    weights = _weights(attention, tree)
    if isinstance(attention, _ONE_HEAD):
        context = weights @ frames[0]
    if isinstance(attention, _COVERAGE):
        # a list of the weights at all positions, of which only the sum is used, and to
        # which the next call would add in place
        tree = sum(tree)
    # without attention both are of one row
    return context.expand(n, -1), tree, weights.expand(n, -1)


def _weights(attention: torch.nn.Module, tree: Any) -> torch.Tensor:
    """Return the weights (n, T) at the newest position, of several heads their mean.

    Args:
        attention: One of ESPnet's.
        tree: What it has returned beside the context.
    """
    if isinstance(attention, AttLocRec):
        return tree[0]
    if isinstance(attention, AttLoc2D):
        return tree[:, -1]
    if isinstance(attention, _COVERAGE):
        return tree[-1]
    return torch.stack(tree).mean(dim=0) if isinstance(tree, list) else tree


def _cat(trees: Sequence[Any]) -> Any:
    """Put trees of the same form one after the other: (n_i, ...) to (n, ...)."""
    first = trees[0]
    if len(trees) == 1 or first is None:
        return first
    if isinstance(first, (list, tuple)):
        return type(first)(_cat(branches) for branches in zip(*trees))
    return torch.cat(trees)


def _map(function: Callable, tree: Any) -> Any:
    """Apply a function to each tensor in nested lists and tuples."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(_map(function, branch) for branch in tree)
    return None if tree is None else function(tree)
