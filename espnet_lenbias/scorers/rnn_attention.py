"""The attention of an RNN decoder to the frames of one utterance, for its hypotheses.

ESPnet's attentions keep the frames and what they compute of them on themselves, where a
second utterance or a second search would find them. Here what is kept belongs to an
utterance, which its n hypotheses share:

* :class:`LocationAttention` computes what ESPnet's `AttLoc` does, the usual one, and is
  tested against it. Its arrays of (n, T, A) are what an RNN decoder spends its time with,
  so they are made for a few hypotheses at a time and changed in place.
* :class:`EspnetAttention` asks a copy of ESPnet's own, whatever its type, for a few
  hypotheses at a time.

T is the number of frames of the utterance, D their size, H that of the decoder's layers
and A the attention's dimension.
"""

import copy
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import torch

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
)
from espnet_lenbias.scorers.products import linear

# elements of the largest array that an attention makes at once: what stays in a core's
# cache, or what keeps a GPU busy
_ELEMENTS = {"cpu": 2**18, "cuda": 2**26}

_COVERAGE = (AttCov, AttCovLoc)
_ONE_HEAD = (*_COVERAGE, AttAdd, AttDot, AttLoc2D, AttLocRec)
_ATTENTIONS = (
    *_ONE_HEAD,
    AttLoc,
    AttMultiHeadAdd,
    AttMultiHeadDot,
    AttMultiHeadLoc,
    AttMultiHeadMultiResLoc,
    NoAtt,
)


class Attended(NamedTuple):
    """What n hypotheses of an utterance have found in its frames."""

    context: torch.Tensor  # (n, D) the sum of the frames by their weights
    kept: Any  # what the next label needs: a tree of tensors (n, ...)
    weights: torch.Tensor  # (n, T), of several heads their mean


class Attention(Protocol):
    """The attention to the frames of one utterance."""

    n_frames: int

    def attend(self, z: torch.Tensor, kept: Any) -> Attended:
        """Attend for n hypotheses.

        Args:
            z: (n, H) output of the lowest layer.
            kept: As it was for the label before; None for the first one.
        """
        ...


def supports(attention: object) -> bool:
    """Tell whether this is one of ESPnet's attentions for decoders, of any type."""
    return type(attention) in _ATTENTIONS


def attention_to(frames: torch.Tensor, attention: torch.nn.Module) -> Attention:
    """Return the attention to the frames of an utterance.

    Args:
        frames: (T, D).
        attention: ESPnet's, on which nothing is left.
    """
    kind = LocationAttention if type(attention) is AttLoc else EspnetAttention
    return kind(attention, frames)


class LocationAttention:
    """ESPnet's `AttLoc`: a convolution over the weights at the label before."""

    def __init__(self, attention: AttLoc, frames: torch.Tensor):
        """Project the frames, (T, D)."""
        self.n_frames = len(frames)
        self._frames = frames
        self._projected = attention.mlp_enc(frames)  # (T, A)
        self._attention = attention
        self._located = LocationFilter(attention, self.n_frames)

    def attend(self, z: torch.Tensor, kept: torch.Tensor | None) -> Attended:
        """See :class:`Attention`; `kept` are the weights, (n, T)."""
        n, T = len(z), self.n_frames
        old = z.new_full((n, T), 1 / T) if kept is None else kept
        projected = linear(self._attention.mlp_dec, z).unsqueeze(1)  # (n, 1, A)
        rows = _rows(z, self._projected.numel())
        energies = [
            self._energies(old[start : start + rows], projected[start : start + rows])
            for start in range(0, n, rows)
        ]
        # ESPnet's default: twice the energies
        weights = (2.0 * torch.cat(energies)).softmax(dim=1)
        return Attended(weights @ self._frames, weights, weights)

    def _energies(self, old: torch.Tensor, projected: torch.Tensor) -> torch.Tensor:
        """Return the energies (n, T) by weights (n, T) and states (n, 1, A)."""
        a = self._attention
        x = a.mlp_att(self._located(old))  # (n, T, A)
        x.add_(self._projected).add_(projected).tanh_()
        return a.gvec(x).squeeze(2)


class LocationFilter:
    """The convolution of `AttLoc` over the weights at the label before."""

    def __init__(self, attention: AttLoc, n_frames: int):
        """Make a matrix of it where that is quicker."""
        self._conv = attention.loc_conv
        self._band = None
        if n_frames <= 2 * self._conv.weight.size(-1):
            self._band = band_matrix(self._conv.weight, n_frames)

    def __call__(self, old: torch.Tensor) -> torch.Tensor:
        """Convolve weights: (n, T) to (n, T, channels)."""
        if self._band is not None:
            return (old @ self._band).view(*old.shape, -1)
        return self._conv(old[:, None, None]).squeeze(2).transpose(1, 2)


def band_matrix(weight: torch.Tensor, n_frames: int) -> torch.Tensor:
    """Return a convolution over frames as a matrix.

    Where frames are not many more than the filter is wide, its product with all
    hypotheses is quicker than the convolution.

    Args:
        weight: (channels, 1, 1, 2 F + 1) of the filter, which zeros surround.
        n_frames: T.

    Returns:
        (T, T * channels), the channels of an output frame one after the other.
    """
    taps = weight[:, 0, 0].T  # (2 F + 1, channels)
    frame = torch.arange(n_frames, device=weight.device)
    tap = frame.unsqueeze(1) - frame + len(taps) // 2  # of input and output frame
    inside = (tap >= 0) & (tap < len(taps))
    band = taps[tap.clamp(0, len(taps) - 1)] * inside.unsqueeze(2)
    return band.flatten(1)


class EspnetAttention:
    """A copy of ESPnet's attention (of the module, not of its weights), of any type.

    One of one head does not sum the frames: that is done here, in one matrix product
    instead of one more array of (n, T, D).
    """

    def __init__(self, attention: Any, frames: torch.Tensor):
        """Show the frames, (T, D), to the copy."""
        self.n_frames = len(frames)
        self._frames = frames.unsqueeze(0)
        self._attention = copy.copy(attention)
        self._attention.reset()
        # it keeps what it computes of the frames in its first call
        self._attention(self._frames, [self.n_frames], None, None)
        if isinstance(attention, _ONE_HEAD):
            # it sums frames without width, which costs nothing
            self._attention.enc_h = self._frames[..., :0]

    def attend(self, z: torch.Tensor, kept: Any) -> Attended:
        """See :class:`Attention`."""
        rows = _rows(z, self._frames.numel())
        parts = []
        for start in range(0, len(z), rows):
            part = slice(start, start + rows)
            mine = map_tree(itemgetter(part), kept)
            parts.append(self._attend_some(z[part], mine))
        return Attended(*_cat(parts))

    def _attend_some(
        self, z: torch.Tensor, kept: Any
    ) -> tuple[torch.Tensor, Any, torch.Tensor]:
        """Attend for some of the hypotheses; return the fields of `Attended`."""
        attention, n = self._attention, len(z)
        if isinstance(attention, _COVERAGE) and kept is not None:
            kept = [kept]
        # of these frames the copy takes no more than their number: what it computed of
        # them when it saw them first is a batch of one, which all hypotheses share
        frames = self._frames.expand(n, -1, -1)
        context, kept = attention(frames, [self.n_frames] * n, z, kept)
        weights = _weights(attention, kept)
        if isinstance(attention, _ONE_HEAD):
            context = weights @ self._frames[0]
        if isinstance(attention, _COVERAGE):
            # a list of the weights at all positions, of which only the sum is used, and
            # to which the next call would add in place
            kept = sum(kept)
        # without attention both are of one row
        return context.expand(n, -1), kept, weights.expand(n, -1)


def _rows(z: torch.Tensor, elements: int) -> int:
    """Return for how many hypotheses arrays of so many elements each are made at once."""
    return max(1, _ELEMENTS.get(z.device.type, 2**26) // elements)


def _weights(attention: torch.nn.Module, kept: Any) -> torch.Tensor:
    """Return the weights (n, T) at the newest position, of several heads their mean.

    Args:
        attention: One of ESPnet's.
        kept: What it has returned beside the context.
    """
    if isinstance(attention, AttLocRec):
        return kept[0]
    if isinstance(attention, AttLoc2D):
        return kept[:, -1]
    if isinstance(attention, _COVERAGE):
        return kept[-1]
    return torch.stack(kept).mean(dim=0) if isinstance(kept, list) else kept


def _cat(trees: Sequence[Any]) -> Any:
    """Put trees of the same form one after the other: (n_i, ...) to (n, ...)."""
    first = trees[0]
    if len(trees) == 1 or first is None:
        return first
    if isinstance(first, (list, tuple)):
        return type(first)(map(_cat, zip(*trees)))
    return torch.cat(list(trees))


def map_tree(function: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    """Apply a function to each tensor in nested lists and tuples."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(map_tree(function, branch) for branch in tree)
    return None if tree is None else function(tree)
