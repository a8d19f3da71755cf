"""The oversmoothing rate: how often a model would rather end than say the rest.

Kulikov, Eremeev, Cho, "Characterizing and addressing the issue of oversmoothing in neural
autoregressive sequence modeling" (2021, arXiv 2112.08914). It is a property of a model and
a set, not of how it is searched: the share of the positions of a reference at which the
end label alone is more probable than all that is left of the reference. There a search
that finds the most probable output ends too early.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from espnet_lenbias.compare.utterances import Utterance

if TYPE_CHECKING:  # slow to load, and not all that imports this decodes
    import torch


@dataclass(frozen=True)
class Oversmoothing:
    """The oversmoothing of one utterance."""

    dataset: str
    utterance: str
    positions: int  # labels of the reference, the end label not counted
    oversmoothed: int  # those of them at which ending is more probable than going on
    empty_wins: bool  # whether no text at all is more probable than the reference

    @property
    def rate(self) -> float:
        """The share of the positions."""
        return self.oversmoothed / self.positions


def oversmoothed(
    log_probs: "torch.Tensor", labels: Sequence[int], eos: int
) -> "torch.Tensor":
    """Tell at which positions of a text the end label is more probable than its rest.

    Args:
        log_probs: (n + 1, V) of each label at each position, the end label's included.
        labels: The n labels of the text.
        eos: The end label, which follows them.

    Returns:
        (n,) bool. Behind the text, the end label is the rest.
    """
    import torch

    rows = log_probs.double()
    path = torch.tensor([*labels, eos], device=rows.device).unsqueeze(1)
    of_path = rows.gather(1, path).squeeze(1)
    rest = of_path.flip(0).cumsum(0).flip(0)  # (n + 1,): this label and all behind it
    return (rows[:, eos] > rest)[:-1]


def oversmoothing(
    model: Any, search: Any, utterances: Iterable[Utterance]
) -> list[Oversmoothing]:
    """Measure utterances whose reference has a label.

    Args:
        model: ESPnet's ``Speech2Text`` or ours, with tokenizer.
        search: Of this package, over the model's scorers: its weights apply, and its
            `label_smoothing`.
        utterances: What is measured.
    """
    from espnet_lenbias.compare.compare import encode
    from espnet_lenbias.search.given_text import scores_along

    found = []
    for utterance in utterances:
        tokens = model.tokenizer.text2tokens(utterance.reference)
        labels = [int(label) for label in model.converter.tokens2ids(tokens)]
        if not labels:
            continue
        log_probs = scores_along(search, encode(model, utterance.audio), labels)
        ends = oversmoothed(log_probs, labels, search.eos).tolist()
        found.append(
            Oversmoothing(
                utterance.dataset, utterance.key, len(ends), sum(ends), ends[0]
            )
        )
    return found
