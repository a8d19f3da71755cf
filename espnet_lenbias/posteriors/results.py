"""The n-best list of an inference object: which one is the result, how sure is a word.

An n-best list is what ``Speech2Text`` and the like return for one utterance: (text,
tokens, token ids, hypothesis) each, best first; that of an S2T model has one more text
before the hypothesis. Ask for as many hypotheses as the beam has places (`nbest`), or
let the options `confidence` and `decide` do that.
"""

from collections.abc import Sequence
from typing import Any

from espnet_lenbias.options.values import whole
from espnet_lenbias.posteriors.confusion import Words, confidences
from espnet_lenbias.posteriors.distribution import Floats, posteriors
from espnet_lenbias.posteriors.risk import least_risk

# (text, tokens, token ids, hypothesis); of s2t with one more text before the hypothesis.
Result = tuple[Any, ...]
_FIELDS = 4  # of a result, or more
_WANTED = (
    "an n-best list is what an inference object returns for one utterance, a list of "
    "tuples (text, tokens, token ids, hypothesis)"
)


def words_of(result: Result) -> list[str]:
    """Return the words of a result: what stands between white space, else its tokens."""
    text, tokens = result[:2]
    return list(tokens) if text is None else text.split()


def posteriors_of(nbest: Sequence[Result], temperature: float = 1.0) -> Floats:
    """Return how probable each hypothesis of an n-best list is; see :func:`posteriors`.

    Raises:
        TypeError: These are the lists of several utterances.
    """
    _check_one_list(nbest)
    return posteriors([float(result[-1].score) for result in nbest], temperature)


def word_confidence(
    nbest: Sequence[Result], rank: int = 1, temperature: float = 1.0
) -> list[float]:
    """Return how sure each word of a hypothesis is.

    It is the share of the n-best list's probability that belongs to hypotheses with that
    word at that place, all aligned by edit distance.

    Args:
        nbest: The n-best list.
        rank: Of the hypothesis.
        temperature: What scores are divided by, see :func:`posteriors`.

    Returns:
        A number from 0 to 1 for each word of its text.

    Raises:
        TypeError: These are the n-best lists of several utterances.
        ValueError: There is no hypothesis of that rank.
    """
    _check_one_list(nbest)
    return _confidence([words_of(x) for x in nbest], nbest, rank, temperature)


def label_confidence(
    nbest: Sequence[Result], rank: int = 1, temperature: float = 1.0
) -> list[float]:
    """Return how sure each label of a hypothesis is; see :func:`word_confidence`.

    Returns:
        A number from 0 to 1 for each of its tokens.
    """
    _check_one_list(nbest)
    return _confidence([_labels_of(x) for x in nbest], nbest, rank, temperature)


def _labels_of(result: Result) -> list[Any]:
    """Return a label for each token: in ESPnet's results of Whisper there are more ids."""
    tokens, ids = result[1:3]
    return list(ids if len(ids) == len(tokens) else tokens)


def _confidence(
    sequences: Sequence[Words], nbest: Sequence[Result], rank: int, temperature: float
) -> list[float]:
    """Return how sure each part of one of the sequences of an n-best list is.

    Raises:
        ValueError: There is no hypothesis of that rank.
    """
    rank = whole("rank", rank)
    if not 1 <= rank <= len(nbest):
        raise ValueError(
            f"rank is {rank}, and the n-best list has {len(nbest)} hypotheses"
        )
    probability = posteriors_of(nbest, temperature)
    values: list[float] = confidences(
        sequences[rank - 1], sequences, probability
    ).tolist()
    return values


def minimum_bayes_risk(nbest: Sequence[Result], temperature: float = 1.0) -> list[Any]:
    """Return an n-best list with the hypothesis of the fewest expected word errors first.

    The others keep their order. Of hypotheses that are equally good the most probable
    one is the first. See arXiv 2510.19471 for speech recognition.

    Args:
        nbest: The n-best list; or hypotheses that were sampled from the model, with an
            infinite temperature, so that each counts as often as it was drawn.
        temperature: What scores are divided by, see :func:`posteriors`.

    Raises:
        TypeError: These are the n-best lists of several utterances.
    """
    _check_one_list(nbest)
    if not nbest:
        return []
    words = [words_of(result) for result in nbest]
    best = least_risk(words, posteriors_of(nbest, temperature))
    return [nbest[best], *nbest[:best], *nbest[best + 1 :]]


def _check_one_list(nbest: Sequence[Result]) -> None:
    if isinstance(nbest, str) or not isinstance(nbest, Sequence):
        raise TypeError(f"{_WANTED}, not {type(nbest).__name__}")
    if isinstance(nbest, tuple) and nbest and not isinstance(nbest[0], tuple | list):
        raise TypeError(f"{_WANTED}, and this is one of them: give the list")
    if any(isinstance(result, list) for result in nbest):
        raise TypeError(
            "these are the n-best lists of several utterances: give one of them, as in "
            "[word_confidence(nbest) for nbest in results]"
        )
    for result in nbest:
        if not isinstance(result, tuple) or len(result) < _FIELDS:
            raise TypeError(f"{_WANTED}, and this one has {type(result).__name__}")
        if not hasattr(result[-1], "score"):
            raise TypeError(
                f"{_WANTED}, and the last of this one is a {type(result[-1]).__name__}"
            )
