"""What makes a text of labels: is the model of word pieces one, and that of the labels?"""

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from espnet2.text.sentencepiece_tokenizer import SentencepiecesTokenizer
from sentencepiece import SentencePieceProcessor

from espnet_lenbias.errors import OptionError, one_line

logger = logging.getLogger(__name__)


def check_word_pieces(inference: Any) -> None:
    """Verify the model of word pieces, and that the token list has its pieces in order.

    Where there is nothing that makes a text, a warning says so.

    ESPnet reads the model with the first text. The labels of another order than the
    training's give a text that nothing else shows to be wrong: an order that no recipe
    writes is warned of, and so are labels that the model does not have.

    Args:
        inference: The inference object, its models loaded.

    Raises:
        OptionError: The file is no such model; it is named.
    """
    tokenizer = getattr(inference, "tokenizer", None)
    if tokenizer is None:
        logger.warning(
            "the model names no token_type, so there are tokens, and no text: name what it "
            "was trained with, such as token_type: char, or token_type: bpe with bpemodel"
        )
    if not isinstance(tokenizer, SentencepiecesTokenizer):
        return
    pieces = SentencePieceProcessor()
    try:
        pieces.load(tokenizer.model)
    except (OSError, RuntimeError) as e:
        raise OptionError(
            f"bpemodel: {tokenizer.model} is not there, or is no model of "
            f"sentencepiece: {one_line(e)}"
        ) from e
    tokens = getattr(getattr(inference, "converter", None), "token_list", None) or []
    lacking = [token for token in tokens if _is_lacking(pieces, token)]
    if lacking:
        logger.warning(
            f"{len(lacking)} of the {len(tokens)} labels are no pieces of bpemodel "
            f"{tokenizer.model} (first {lacking[0]!r}): is it the one that the model was "
            "trained with? With another one the text is wrong"
        )
    wrong = _out_of_order(pieces, tokens)
    if wrong is not None:
        logger.warning(
            f"the token list has the pieces of bpemodel {tokenizer.model} in another "
            f"order (first {wrong!r}), which ESPnet's recipes do not: is it the "
            "one that the model was trained with? With another one the text is wrong"
        )


def _out_of_order(pieces: Any, tokens: Sequence[str]) -> str | None:
    """Return the first piece that neither the model's order nor the alphabet has there.

    Recipes write one or the other; None: so does this list.
    """
    known = [(pieces.piece_to_id(token), token) for token in tokens]
    known = [(i, token) for i, token in known if not _is_special(pieces, i)]
    names = [token for _, token in known]
    if names == sorted(names):
        return None
    return next((b for (i, _), (j, b) in pairwise(known) if j < i), None)


def _is_lacking(pieces: Any, token: str) -> bool:
    """Tell whether a model does not have a piece; symbols such as <blank> are none."""
    is_symbol = token.startswith(("<", "[")) and token.endswith((">", "]"))
    return not is_symbol and bool(pieces.is_unknown(pieces.piece_to_id(token)))


def _is_special(pieces: Any, piece: int) -> bool:
    return bool(
        pieces.is_unknown(piece) or pieces.is_control(piece) or pieces.is_unused(piece)
    )
