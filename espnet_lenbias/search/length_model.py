"""The explicit length model: eqs. 2 to 4 of the paper and its stop bound.

Pure functions of tensors; nothing here knows of ESPnet, of scorers or of labels.

========  =====================================================================
B         utterances decoded together
K         places of the beam
q         accumulated weighted score of a hypothesis (eq. 1), a log
kept      what is left of the beam at position N after pruning
ended     those of the kept ones whose last label is the end label
========  =====================================================================

Everything is in the log domain and in float64: these are a few numbers for each place of
the beam, and the bound compares sums of many small terms.
"""

import math

import torch


def log_mass(q: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return the log of the summed probability of the kept hypotheses.

    This is the denominator of eqs. 3 and 4.

    Args:
        q: (B, K) scores.
        kept: (B, K) bool.

    Returns:
        (B,) float64, -inf where nothing is kept.
    """
    return q.double().masked_fill(~kept, -math.inf).logsumexp(dim=-1)


def log_p_end(
    q: torch.Tensor, ended: torch.Tensor, log_mass_kept: torch.Tensor
) -> torch.Tensor:
    """Return log p_N($|x), the log of the ending probability at this position (eq. 3).

    Args:
        q: (B, K) scores.
        ended: (B, K) bool, those of the kept ones that end here.
        log_mass_kept: (B,) from :func:`log_mass` over what is kept at this position.

    Returns:
        (B,) float64 in [-inf, 0]; -inf where nothing ends, or nothing is kept.
    """
    log_p = (log_mass(q, ended) - log_mass_kept).clamp(max=0.0)
    return log_p.masked_fill(log_mass_kept == -math.inf, -math.inf)


def log1mexp(x: torch.Tensor) -> torch.Tensor:
    """Return log(1 - exp(x)) for x <= 0, accurate at both ends; -inf at x = 0.

    Near 0 exp(x) rounds to 1 and near -inf 1 - exp(x) does, so each half of the range has
    a formula of its own.
    """
    return torch.where(
        x > -math.log(2.0), torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x))
    )


def log_p_length(log_p_end: torch.Tensor, log_not_ended: torch.Tensor) -> torch.Tensor:
    """Return log p(len=N | x), the log-prob that the output ends at N (eq. 2).

    Args:
        log_p_end: log p_N($|x), see :func:`log_p_end`.
        log_not_ended: The sum of log(1 - p_end(n)) over the earlier positions n < N, of
            the same shape.
    """
    return log_p_end + log_not_ended


def final_score(
    q: torch.Tensor, log_mass_kept: torch.Tensor, log_not_ended: torch.Tensor
) -> torch.Tensor:
    """Return log p(a, len=N | x) of hypotheses that end at this position (eq. 4).

    The hypotheses that end here share out eq. 2 among themselves: the probabilities of
    all of them sum to p(len=N | x).

    Args:
        q: (B, K) scores.
        log_mass_kept: (B,) from :func:`log_mass` over what is kept at this position.
        log_not_ended: (B,) sum of log(1 - p_end(n)) over the earlier positions n < N.

    Returns:
        (B, K) float64, in [-inf, 0] for kept hypotheses; -inf where q is.
    """
    score = q.double() - log_mass_kept.unsqueeze(-1) + log_not_ended.unsqueeze(-1)
    return score.masked_fill(q == -math.inf, -math.inf)


def cannot_improve(log_not_ended: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    """Tell whether no later hypothesis can beat `best`: the paper's stop criterion.

    A hypothesis that ends later has a final score of at most ``log_not_ended`` (the sum
    over all positions so far), since the other factor of eq. 4 is at most 1.

    Args:
        log_not_ended: (B,) sum of log(1 - p_end(n)) over n <= N.
        best: (B,) final score to beat; -inf if there is none yet.

    Returns:
        (B,) bool.
    """
    return (log_not_ended <= best) & (best > -math.inf)
