"""The usual confidence: how probable the model finds the labels that it has put out.

It looks at one hypothesis alone, and is what a search without probabilities of whole
texts can say.
"""

import math
from collections.abc import Sequence

import numpy as np

from espnet_lenbias.posteriors.distribution import Floats
from espnet_lenbias.posteriors.labels import label_positions


def label_probabilities(
    yseq: Sequence[int], label_scores: Sequence[float], token_ids: Sequence[int]
) -> Floats:
    """Return the probability of each label of a result.

    Args:
        yseq: Primer, labels, end label.
        label_scores: (N,) log-probs of the labels and the end label.
        token_ids: (n,) the labels of the result: those of `yseq`, some left out at its
            beginning, as is the end label, and anywhere those that are no output.

    Returns:
        (n,) from 0 to 1; 1 for those of the primer, which were given.
    """
    given = [0.0] * (len(yseq) - len(label_scores))
    scores = [*given, *label_scores]
    found = [scores[i] for i in label_positions(yseq, token_ids)]
    return np.exp(np.minimum(found, 0.0))


def mean_probability(score: float, n_labels: int, n: int) -> Floats:
    """Return the same for every label where only their sum is known.

    Args:
        score: The sum of the log-probs of all labels.
        n_labels: How many these are, the end label counted.
        n: How many values are wanted.

    Returns:
        (n,) the geometric mean, exp(score / n_labels).
    """
    return np.full(n, math.exp(min(score / max(n_labels, 1), 0.0)))


def without_smoothing(probability: Floats, smoothing: float, n_vocab: int) -> Floats:
    """Return probabilities of labels without what label smoothing has done to them.

    A model that was trained with label smoothing e gives a label that it is certain of
    no more than 1 - e: ESPnet's loss asks it for 1 - e of the right label and for
    e / (V - 1) of each other one. So of a label that is right with probability t it says
    t (1 - e) + (1 - t) e / (V - 1), which is solved for t here.

    Args:
        probability: (n,) as the model says them.
        smoothing: e, `lsm_weight` of the training; 0: none.
        n_vocab: V.

    Returns:
        (n,) from 0 to 1.
    """
    other = smoothing / (n_vocab - 1)
    return np.clip((probability - other) / (1 - smoothing - other), 0.0, 1.0)


def word_probabilities(
    probability: Floats, places: Sequence[int] | None, n_words: int
) -> Floats:
    """Return the mean label probability of each word.

    Args:
        probability: (n,) of the labels.
        places: (n,) of which word each is; None: each word gets the mean of all labels.
        n_words: How many words there are.
    """
    if not n_words:
        return np.zeros(0)
    if places is None or not len(probability):
        return np.full(n_words, probability.mean() if len(probability) else 1.0)
    total = np.bincount(places, weights=probability, minlength=n_words)
    number = np.bincount(places, minlength=n_words)
    means: Floats = np.divide(
        total, number, out=np.full(n_words, probability.mean()), where=number > 0
    )
    return means


def products_of_words(
    probability: Floats, places: Sequence[int] | None, n_words: int
) -> Floats:
    """Return the probability of each word given those before it.

    It is the product of the probabilities of the labels that make the word.

    Args:
        probability: (n,) of the labels.
        places: (n,) of which word each is; None: all words are equally probable.
        n_words: How many words there are: none of labels that make no text.
    """
    if not n_words:
        return np.zeros(0)
    with np.errstate(divide="ignore"):  # of a probability of 0
        scores = np.log(probability)
    if places is None:
        return np.full(n_words, np.exp(scores.sum() / n_words))
    total = np.zeros(n_words)
    np.add.at(total, list(places), scores)
    return np.exp(total)
