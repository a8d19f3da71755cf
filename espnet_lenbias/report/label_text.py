"""The text of labels, by the tokenizer of a model; no torch here."""

from collections.abc import Sequence
from typing import Any


def text_of(model: Any, labels: Sequence[int]) -> str:
    """Return the text of labels as ESPnet does: without blanks, whose id is 0."""
    tokens = model.converter.ids2tokens([label for label in labels if label != 0])
    if model.tokenizer is None:
        return " ".join(tokens)
    text: str = model.tokenizer.tokens2text(tokens)
    return text
