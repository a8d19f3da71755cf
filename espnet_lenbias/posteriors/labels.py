"""Labels of a result: where in its hypothesis they stand, and of which word they are."""

from collections.abc import Callable, Sequence
from itertools import pairwise

_BEGINS = "▁"  # sentencepiece's mark of the beginning of a word


def label_positions(yseq: Sequence[int], token_ids: Sequence[int]) -> list[int]:
    """Return where in a hypothesis the labels of its result stand.

    Args:
        yseq: Primer, labels, end label.
        token_ids: The labels of the result: those of `yseq`, some left out at its
            beginning, as is the end label, and anywhere those that are no output.
    """
    found: list[int] = []
    rest = list(token_ids)
    for i in range(len(yseq) - 2, -1, -1):
        if rest and yseq[i] == rest[-1]:
            rest.pop()
            found.append(i)
    if rest:
        raise ValueError(f"the labels {list(token_ids)} are not those of {list(yseq)}")
    return found[::-1]


def words_of_labels(
    tokens: Sequence[str], n_words: int, text_of: Callable[[list[str]], str]
) -> list[int] | None:
    """Return which word of the text each label belongs to.

    Whatever the labels are, letters, pieces or words: a label belongs to the last word
    of the text up to it. The mark of a beginning alone, as sentencepiece has it, belongs
    to the word that begins.

    Args:
        tokens: n labels.
        n_words: Of their text, between white space.
        text_of: Makes a text of tokens.

    Returns:
        n places of words; None where the texts of beginnings do not grow word by word, as
        where a label holds white space, and so several words.
    """
    places = [
        max(len(text_of(list(tokens[:i])).split()) - 1, 0)
        for i in range(1, len(tokens) + 1)
    ]
    for i in range(len(tokens) - 2, -1, -1):
        if tokens[i] == _BEGINS:
            places[i] = places[i + 1]
    grows = all(b - a in (0, 1) for a, b in zip([0, *places], places))
    complete = not places or set(places) == set(range(n_words)) or not n_words
    return places if grows and complete else None


def labels_that_say(
    tokens: Sequence[str], text_of: Callable[[list[str]], str]
) -> list[bool]:
    """Return which labels change the words of the text: a space does not.

    Args:
        tokens: n labels.
        text_of: Makes a text of tokens.
    """
    words = [text_of(list(tokens[:i])).split() for i in range(len(tokens) + 1)]
    return [before != after for before, after in pairwise(words)]
