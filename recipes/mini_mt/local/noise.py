"""What is wrong with collected translations: cut, incomplete, of another sentence."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

DROP_RATE = 0.2  # words that an incomplete translation lacks


def spoil(rng: Random, texts: Sequence[str], rates: Mapping[str, float]) -> list[str]:
    """Return the texts with noise in some of them.

    Args:
        rng: Draws which, and what happens to them.
        texts: Of words between spaces.
        rates: Kind of noise (a key of KINDS) -> the share of the texts that has it.

    Raises:
        ValueError: There is no such kind.
    """
    unknown = rates.keys() - KINDS.keys()
    if unknown:
        raise ValueError(
            f"noise: there is no kind {', '.join(sorted(unknown))} (kinds: "
            f"{', '.join(KINDS)})"
        )
    kinds = [*rates, None]
    shares = [*rates.values(), 1 - sum(rates.values())]
    drawn = rng.choices(kinds, shares, k=len(texts))
    return [
        text if kind is None else KINDS[kind](rng, text, texts)
        for kind, text in zip(drawn, texts, strict=True)
    ]


def cut(rng: Random, text: str, texts: Sequence[str]) -> str:
    """Return a beginning of the text, any of them as likely as the others."""
    words = text.split()
    return " ".join(words[: rng.randint(1, max(1, len(words) - 1))])


def incomplete(rng: Random, text: str, texts: Sequence[str]) -> str:
    """Return the text without some words, one at the least left."""
    words = text.split()
    left = [word for word in words if rng.random() >= DROP_RATE]
    return " ".join(left or words[:1])


def foreign(rng: Random, text: str, texts: Sequence[str]) -> str:
    """Return one of the texts, whichever."""
    return rng.choice(texts)


KINDS: Mapping[str, Callable[[Random, str, Sequence[str]], str]] = {
    "cut": cut,
    "incomplete": incomplete,
    "foreign": foreign,
}
