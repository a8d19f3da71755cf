"""The model of word pieces (`bpemodel`): is it one, and does the token list go with it?"""

import logging
from itertools import pairwise
from typing import Any

from espnet2.text.sentencepiece_tokenizer import SentencepiecesTokenizer
from sentencepiece import SentencePieceProcessor

from espnet_lenbias.errors import OptionError

logger = logging.getLogger(__name__)


def check_bpe_model(inference: Any) -> None:
    """Verify the model of word pieces, which ESPnet reads with the first text.

    Args:
        inference: The inference object, its models loaded.

    Raises:
        OptionError: Names the file.
    """
    tokenizer = getattr(inference, "tokenizer", None)
    if isinstance(tokenizer, SentencepiecesTokenizer):
        try:
            SentencePieceProcessor().load(tokenizer.model)
        except (OSError, RuntimeError) as e:
            raise OptionError(
                f"bpemodel: {tokenizer.model} is not there, or is no model of "
                f"sentencepiece: {' '.join(str(e).split())}"
            ) from e


def check_order_of_pieces(inference: Any) -> None:
    """Warn where a token list has word pieces in an order that no recipe writes.

    The labels of another order than the training's give a text that nothing else shows
    to be wrong.

    Args:
        inference: The inference object, its models loaded.
    """
    tokenizer = getattr(inference, "tokenizer", None)
    tokens = getattr(getattr(inference, "converter", None), "token_list", None)
    if not isinstance(tokenizer, SentencepiecesTokenizer) or not tokens:
        return
    pieces = SentencePieceProcessor()
    pieces.load(tokenizer.model)
    known = [(pieces.piece_to_id(token), token) for token in tokens]
    known = [(i, token) for i, token in known if not _is_special(pieces, i)]
    wrong = [after for before, after in pairwise(known) if after[0] < before[0]]
    if wrong and [token for _, token in known] != sorted(token for _, token in known):
        logger.warning(
            f"the token list has the pieces of bpemodel {tokenizer.model} in another "
            f"order (first {wrong[0][1]!r}), which ESPnet's recipes do not: is it the "
            "one that the model was trained with? With another one the text is wrong"
        )


def _is_special(pieces: Any, piece: int) -> bool:
    return bool(
        pieces.is_unknown(piece) or pieces.is_control(piece) or pieces.is_unused(piece)
    )
