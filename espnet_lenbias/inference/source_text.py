"""Text that is handed to a model beside audio, or in its place: also as token ids."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

# A text, or (L,) its token ids.
SourceText = str | torch.Tensor | np.ndarray

_IDS = "an array (L,) of its token ids"
_TEXT_OR_IDS = f"a text, or {_IDS}; several of them as a list"

Preprocess = Callable[[str, dict[str, Any]], dict[str, np.ndarray]]


def source_ids(
    text: Any, preprocess: Preprocess | None, n_tokens: int, name: str
) -> torch.Tensor | np.ndarray:
    """Return a source text as token ids, (L,).

    Args:
        text: See `SourceText`.
        preprocess: ESPnet's, which makes token ids of a text; None: the model has none.
        n_tokens: How many there are.
        name: What a message calls it.

    Raises:
        TypeError: It is something else.
        ValueError: There is nothing in it, or what is no token id.
    """
    if isinstance(text, str):
        if not text.strip():
            raise ValueError(f"{name} is empty")
        if preprocess is None:
            raise TypeError(
                f"{name} is a text, and the model was trained without preprocessing: "
                "give the array of its token ids"
            )
        text = preprocess("", {"src_text": text})["src_text"]
    return checked_ids(text, n_tokens, name, _TEXT_OR_IDS)


def checked_ids(
    text: Any, n_tokens: int, name: str, wanted: str = _IDS
) -> torch.Tensor | np.ndarray:
    """Return token ids, (L,), if these are such.

    Args:
        text: An array.
        n_tokens: How many tokens there are.
        name: What a message calls it.
        wanted: What it says can be given.

    Raises:
        TypeError: It is something else.
        ValueError: There is nothing in it, or what is no token id.
    """
    is_array = isinstance(text, torch.Tensor | np.ndarray)
    if is_array and text.ndim and not len(text):
        raise ValueError(f"{name} is empty")
    if not is_array or not _is_whole(text):
        kind = getattr(text, "dtype", type(text).__name__)
        raise TypeError(f"{name} is of type {kind}: give {wanted}")
    if text.ndim != 1:
        raise ValueError(f"{name} is of shape {tuple(text.shape)}: give (L,) token ids")
    if int(text.min()) < 0 or int(text.max()) >= n_tokens:
        raise ValueError(
            f"{name} holds token ids from {int(text.min())} to {int(text.max())}, and "
            f"those of the model are from 0 to {n_tokens - 1}"
        )
    ids: torch.Tensor | np.ndarray = text
    return ids


def check_rows(texts: Any, lengths: Any, n_utts: int, n_tokens: int, name: str) -> None:
    """Verify the token ids that the utterances of a batch come with.

    Args:
        texts: (B, L) token ids; None: they come with none.
        lengths: (B,) how many count of each row; None: all.
        n_utts: B.
        n_tokens: How many tokens there are.
        name: What a message calls them.

    Raises:
        TypeError: They are something else.
        ValueError: There is not a row for each utterance, or what is no token id.
    """
    if texts is None:
        return
    if not isinstance(texts, torch.Tensor | np.ndarray) or texts.ndim != 2:
        kind = tuple(getattr(texts, "shape", ())) or type(texts).__name__
        raise TypeError(f"{name} is {kind}: give an array (B, L) of token ids")
    counts = [texts.shape[1]] * len(texts) if lengths is None else list(lengths)
    if not len(texts) == len(counts) == n_utts:
        raise ValueError(
            f"{name} has {len(texts)} rows, of {len(counts)} lengths, and there are "
            f"{n_utts} utterances: give each a row"
        )
    for i, (row, count) in enumerate(zip(texts, counts, strict=True)):
        if int(count):
            checked_ids(row[: int(count)], n_tokens, f"{name} of utterance {i}")


def _is_whole(ids: torch.Tensor | np.ndarray) -> bool:
    """Tell whether these are whole numbers."""
    if isinstance(ids, np.ndarray):
        return ids.dtype.kind in "iu"
    return not (
        ids.is_floating_point() or ids.dtype.is_complex or ids.dtype == torch.bool
    )
