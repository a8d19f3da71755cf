"""Label smoothing taken out of a decoder's distribution: rectification.

Liang, Wang, Cao, "The Implicit Length Bias of Label Smoothing on Beam Search Decoding"
(2022, arXiv 2205.00659). A pure function of tensors; nothing here knows of ESPnet.

Training with label smoothing s has its optimum at p = (1 - s - d) q + d, where q is the
distribution of the data. ESPnet's loss spreads s over the V - 1 labels that are not the
target, so d = s / (V - 1); where it is spread over all V, d = s / V. Each label of a text
then costs about -log(1 - s) more than it should, and ending anywhere costs no more than
-log d: a length bias. The rectified distribution is that of the data:

    q(y) = max(p(y) - d, 0) / sum over v of max(p(v) - d, 0)

The paper finds that a larger d is better still in translation, up to 1 / V.
"""

import math

import torch

# What is left of a label that smoothing alone explains, instead of the paper's 0: next to
# nothing, but a text that the length limit cuts can still end, with a score that compares.
_LEFT = 1e-30


def rectified(log_probs: torch.Tensor, label_smoothing: float) -> torch.Tensor:
    """Return the log-probs of a decoder without the label smoothing of its training.

    Args:
        log_probs: (n, V); -inf stays, NaN and plus infinity stay visible as NaN.
        label_smoothing: s, above 0 and up to 1.

    Returns:
        (n, V), those of a distribution for each row that is not -inf throughout.
    """
    log_d = math.log(label_smoothing) - math.log(max(1, log_probs.size(1) - 1))
    # log(p - d) = log p + log(1 - d / p), also where p itself is too small for a float
    share = -torch.expm1(log_d - log_probs)
    q = log_probs + share.clamp(min=_LEFT).log()
    total = q.logsumexp(dim=1, keepdim=True)
    return q - total.clamp(min=torch.finfo(q.dtype).min)
