"""ESPnet's length bonus (`penalty` of a decode config): one for every label."""

import torch

from espnet_lenbias.espnet_compat import LengthBonus
from espnet_lenbias.scorers.base import EncoderOutput, Prefixes, Scores, Selection


class Bonus:
    """Adapter of ESPnet's `LengthBonus`; its state is a one of the frames' dtype."""

    def __init__(self, scorer: LengthBonus):
        self.n_vocab = scorer.n

    def start(self, encoder_output: EncoderOutput) -> torch.Tensor:
        """Return the bonus of a label, (1, 1)."""
        return encoder_output.x.new_ones(1, 1)

    def step(
        self,
        state: torch.Tensor,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix."""
        return Scores(state.expand(len(prefixes.yseq), self.n_vocab), state)

    def select(self, state: torch.Tensor, selection: Selection) -> torch.Tensor:
        """Return the state of the chosen extensions: the same for all."""
        return state

    def final(self, state: torch.Tensor) -> None:
        """A length bonus adds nothing when a hypothesis ends."""
        return None
