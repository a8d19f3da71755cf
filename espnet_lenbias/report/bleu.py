"""BLEU and chrF of translations, and of resamples of them.

Both are computed from counts that add up over texts, so that those of a resample are the
sum of its texts' counts. The counts of BLEU come from sacrebleu, with its tokenizer; those
of chrF are as sacrebleu has them with its defaults: characters 1 to 6, white space left
out, beta 2. Texts are taken as they are, and there is one reference for each.
"""

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU

Array = np.ndarray[Any, Any]

_ORDERS = 4  # of words, in BLEU
_CHAR_ORDERS = 6
_BETA = 2

# Counts of a text: lengths of hypothesis and reference in words, then hits and n-grams of
# the hypothesis by order; n-grams of characters of hypothesis and reference, and hits, by
# order.
BLEU_COUNTS = 2 + 2 * _ORDERS
CHRF_COUNTS = 3 * _CHAR_ORDERS


def translation_counts(
    references: Sequence[str], hypotheses: Sequence[str], tokenizer: str
) -> Array:
    """Count what BLEU and chrF are made of.

    Args:
        references: n texts.
        hypotheses: n texts.
        tokenizer: One of sacrebleu's, which cuts texts into words for BLEU.

    Returns:
        (n, BLEU_COUNTS + CHRF_COUNTS), int.
    """
    # effective_order changes nothing in the counts, and spares a warning for each text
    metric = BLEU(tokenize=tokenizer, effective_order=True)
    counts = np.zeros((len(references), BLEU_COUNTS + CHRF_COUNTS), dtype=int)
    for row, reference, hypothesis in zip(counts, references, hypotheses, strict=True):
        score = metric.sentence_score(hypothesis, [reference])
        row[:BLEU_COUNTS] = score.sys_len, score.ref_len, *score.counts, *score.totals
        row[BLEU_COUNTS:] = _char_counts(reference, hypothesis)
    return counts


def bleu(counts: Array) -> Array:
    """Return BLEU in %, as sacrebleu smooths it.

    The i-th order without a hit counts as 1 / 2^i hits. Without a hit of any order, or
    without an n-gram of the highest one, BLEU is 0.

    Args:
        counts: (..., BLEU_COUNTS or more), summed over texts.

    Returns:
        (...).
    """
    length, reference_length = counts[..., 0], counts[..., 1]
    hits = counts[..., 2 : 2 + _ORDERS].astype(float)
    total = counts[..., 2 + _ORDERS : BLEU_COUNTS].astype(float)
    smoothed = np.where(hits > 0, hits, 0.5 ** np.cumsum(hits == 0, axis=-1))
    defined = (hits.sum(axis=-1) > 0) & (total > 0).all(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.log(smoothed / total).mean(axis=-1)
        brevity = np.minimum(0.0, 1 - reference_length / length)
        score: Array = np.where(defined, 100 * np.exp(mean + brevity), 0.0)
    return score


def chrf(counts: Array) -> Array:
    """Return chrF in %: the F-score of mean precision and mean recall over orders.

    Args:
        counts: (..., BLEU_COUNTS + CHRF_COUNTS), summed over texts.

    Returns:
        (...).
    """
    by_order = counts[..., BLEU_COUNTS:].astype(float)
    n_hypothesis, n_reference, hits = (by_order[..., i::3] for i in range(3))
    there = (n_hypothesis > 0) & (n_reference > 0)
    orders = np.maximum(there.sum(axis=-1), 1)
    precision, recall = (
        np.divide(hits, n, out=np.zeros_like(hits), where=there).sum(axis=-1) / orders
        for n in (n_hypothesis, n_reference)
    )
    weighted = _BETA**2 * precision + recall
    score: Array = np.divide(
        100 * (1 + _BETA**2) * precision * recall,
        weighted,
        out=np.zeros_like(weighted),
        where=weighted > 0,
    )
    return score


def length_ratio(counts: Array) -> Array:
    """Return words of the hypotheses, as BLEU counts them, per word of the references.

    Args:
        counts: (..., BLEU_COUNTS or more), summed over texts.

    Returns:
        (...), NaN without reference words.
    """
    length, reference = counts[..., 0].astype(float), counts[..., 1].astype(float)
    unknown = np.full(np.shape(length), np.nan)
    ratio: Array = np.divide(length, reference, out=unknown, where=reference > 0)
    return ratio


def bleu_in_words(counts: Array) -> tuple[str, str]:
    """Return BLEU, and what sacrebleu says of it: precisions, brevity, lengths.

    Args:
        counts: (BLEU_COUNTS or more,), summed over texts.
    """
    length, reference, *more = counts[:BLEU_COUNTS].tolist()
    score = BLEU.compute_bleu(
        more[:_ORDERS], more[_ORDERS:], length, reference, smooth_method="exp"
    )
    _, _, value, details = str(score).split(maxsplit=3)
    return value, details


def signatures(tokenizer: str) -> str:
    """Return how the two were computed, as sacrebleu signs its scores."""
    of_sacrebleu = version("sacrebleu")
    return (
        f"BLEU nrefs:1|case:mixed|eff:no|tok:{tokenizer}|smooth:exp|"
        f"version:{of_sacrebleu}, chrF2 nrefs:1|case:mixed|eff:yes|nc:{_CHAR_ORDERS}|"
        f"nw:0|space:no|version:{of_sacrebleu}"
    )


def _char_counts(reference: str, hypothesis: str) -> list[int]:
    """Return n-grams of hypothesis and reference, and hits, of each order in turn."""
    counts = []
    texts = ["".join(text.split()) for text in (hypothesis, reference)]
    for n in range(1, _CHAR_ORDERS + 1):
        found, right = (
            Counter(text[i : i + n] for i in range(len(text) - n + 1)) for text in texts
        )
        # where the reference has none, those of the hypothesis do not count
        n_found = found.total() if right else 0
        counts += [n_found, right.total(), (found & right).total()]
    return counts
