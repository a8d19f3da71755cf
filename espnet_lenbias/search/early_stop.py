"""Stops before the bound of the length model: options, none of them safe by proof.

After the best hypothesis has ended, a model that loops may run on to the length limit
without any other winning. These stops go by the running scores and by the position.

A is the number of utterances that are still being decoded.
"""

import math
from typing import NamedTuple

import torch

from espnet_lenbias.options.search_conf import ExplicitLengthOptions

# Positions that `stop_length` allows beside its multiple, so that short outputs do not
# end the search of long ones.
ALLOWANCE = 20


class Winner(NamedTuple):
    """The ended hypothesis of the best final score so far."""

    q: torch.Tensor  # (A,) its q, -inf where nothing has ended
    length: torch.Tensor  # (A,) its labels, the end label counted, or infinity


def no_winner(n_utts: int) -> Winner:
    """Return what holds where nothing has ended."""
    q = torch.full((n_utts,), -math.inf, dtype=torch.float64)
    return Winner(q, -q)


def follow(
    winner: Winner,
    best: torch.Tensor,
    score: torch.Tensor,
    q: torch.Tensor,
    length: int,
) -> Winner:
    """Return the winner after a position.

    Args:
        winner: Before it.
        best: (A,) its final score.
        score: (A, C) final scores of what ends here, -inf for the rest.
        q: (A, C).
        length: N.
    """
    top = score.max(dim=1)
    wins = top.values > best
    new_q = q.gather(1, top.indices.unsqueeze(1)).squeeze(1)
    return Winner(
        torch.where(wins, new_q, winner.q),
        winner.length.masked_fill(wins, length),
    )


def gives_up(
    options: ExplicitLengthOptions,
    winner: Winner,
    running_q: torch.Tensor,
    length: int,
) -> torch.Tensor:
    """Tell where a search stops although a later hypothesis could still win.

    Args:
        options: `stop_margin` and `stop_length`, at least one of them.
        winner: After position N.
        running_q: (A,) the best q of what runs on, -inf where nothing does.
        length: N.

    Returns:
        (A,) bool; true only where something has ended, or where nothing runs on.
    """
    stops = torch.zeros_like(winner.q, dtype=torch.bool)
    if options.stop_margin is not None:
        stops |= running_q <= winner.q - options.stop_margin
    if options.stop_length is not None:
        stops |= length > options.stop_length * winner.length + ALLOWANCE
    return stops
