"""What a search has heard of an utterance stays with the hypotheses that it returns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from espnet_lenbias.search.hypotheses import as_rated
from espnet_lenbias.search.primers import primers_of


@dataclass(frozen=True)
class Heard:
    """What a hypothesis was made of."""

    frames: torch.Tensor  # (T, D) encoder output
    n_primer: int  # labels that it was given at its beginning


@contextmanager
def heard_by(search: torch.nn.Module) -> Iterator[None]:
    """Have the hypotheses that a search returns in the context carry :class:`Heard`."""
    hook = search.register_forward_hook(_carry, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def _carry(
    search: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: list[Any]
) -> list[Any]:
    """Return what a search has found, with what it has heard."""
    x: torch.Tensor = kwargs["x"] if "x" in kwargs else args[0]
    several = x.dim() == 3
    frames = list(x) if several else [x]
    lengths = kwargs.get("x_lengths")
    if lengths is not None:
        frames = [of_one[: int(n)] for of_one, n in zip(frames, lengths)]
    primers = primers_of(getattr(search, "hyp_primer", None), search.sos, len(frames))
    lists = [
        [_with(hypothesis, Heard(of_one, len(primer))) for hypothesis in nbest]
        for nbest, of_one, primer in zip(found if several else [found], frames, primers)
    ]
    return lists if several else lists[0]


def _with(hypothesis: Any, heard: Heard) -> Any:
    hypothesis = as_rated(hypothesis)
    hypothesis.heard = heard
    return hypothesis
