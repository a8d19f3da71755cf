"""The heuristics that simple beam search is usually helped with: pure functions.

They are here to be compared with; ``explicit_length`` uses none of them.
"""

import torch

from espnet_lenbias.options.search_conf import Coverage

# what counts as the attention of a frame that nothing has looked at, under the logarithm
_NOT_SEEN = 1e-10


def rank(
    q: torch.Tensor, length: int, exponent: float, length_reward: float
) -> torch.Tensor:
    """Return the ranking score of hypotheses with `length` labels, the end label counted.

    The reward is added for each label; the sum is divided by length ** exponent. Length
    normalisation has the exponent 1; the `length_penalty` of Hugging Face's and of
    faster-whisper's beam search is the exponent.

    Args:
        q: Scores of any shape, all of hypotheses of this length.
        length: N >= 1.
        exponent: The power of N to divide by; 0: do not.
        length_reward: What each label adds.
    """
    if length_reward:
        q = q + length_reward * length
    return q / length**exponent if exponent else q


def may_end(step_scores: torch.Tensor, eos: int, threshold: float) -> torch.Tensor:
    """Tell which hypotheses may end: log p($) > threshold * max over other labels.

    Log-probs are negative, so a threshold above 1 lets a hypothesis end also where
    another label is somewhat more likely, and a certain end label (log-prob 0) always.

    Args:
        step_scores: (n, V) weighted log-probs of the labels at this position.
        eos: The end label.
        threshold: The factor, around 1.5.

    Returns:
        (n,) bool.
    """
    others = step_scores.clone()
    others[:, eos] = -torch.inf
    return step_scores[:, eos] > threshold * others.amax(dim=1)


def coverage(
    attended: torch.Tensor, frames: torch.Tensor, options: Coverage
) -> torch.Tensor:
    """Return the coverage term of hypotheses.

    Args:
        attended: (n, T) attention that each frame has got from all labels so far.
        frames: (n, T) bool, False for padding.
        options: Which term, and its weight.

    Returns:
        (n,).
    """
    if options.threshold is not None:
        seen = (attended > options.threshold) & frames
        return options.weight * seen.sum(dim=1)
    seen = attended.clamp(_NOT_SEEN, 1.0).log().masked_fill(~frames, 0.0)
    return options.weight * seen.sum(dim=1)
