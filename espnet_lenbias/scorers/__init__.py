"""How each kind of ESPnet scorer is asked for all hypotheses at once."""

from espnet_lenbias.espnet_compat import (
    BatchPartialScorerInterface,
    BatchScorerInterface,
    CTCPrefixScorer,
    LengthBonus,
    PartialScorerInterface,
    ScorerInterface,
)
from espnet_lenbias.scorers.base import (
    Adapter,
    EncoderOutput,
    Prefixes,
    Scores,
    Selection,
)
from espnet_lenbias.scorers.bonus import Bonus
from espnet_lenbias.scorers.ctc import CTCPrefix
from espnet_lenbias.scorers.fallback import BatchFallback, SingleFallback
from espnet_lenbias.scorers.lm import (
    BatchedRNNLM,
    CachedTransformerLM,
    is_rnn_lm,
    is_transformer_lm,
)
from espnet_lenbias.scorers.partial_fallback import (
    BatchPartialFallback,
    SinglePartialFallback,
)
from espnet_lenbias.scorers.rnn import BatchedRNN
from espnet_lenbias.scorers.rnn import supports as is_batched_rnn
from espnet_lenbias.scorers.transformer import CachedTransformer
from espnet_lenbias.scorers.transformer import supports as is_cached_transformer
from espnet_lenbias.scorers.whisper import CachedWhisper, n_positions
from espnet_lenbias.scorers.whisper import supports as is_cached_whisper

__all__ = [
    "Adapter",
    "EncoderOutput",
    "Prefixes",
    "Scores",
    "Selection",
    "adapter_for",
    "n_positions",
]


def adapter_for(
    name: str,
    scorer: ScorerInterface,
    n_vocab: int,
    eos: int,
    return_hs: bool = False,
    return_attention: bool = False,
) -> Adapter:
    """Return the adapter of a scorer: the best that there is for its kind.

    Args:
        name: Its key among the scorers; as in ESPnet, one that holds "decoder" gets the
            padding mask and `pre_x`, and is asked for its hidden states.
        scorer: Any ESPnet scorer.
        n_vocab: V.
        eos: The end label.
        return_hs: Whether the decoder's hidden states are wanted.
        return_attention: Whether the decoder's attention to the frames is wanted, which
            only the adapters of transformer and RNN decoders give.
    """
    if isinstance(scorer, CTCPrefixScorer):
        return CTCPrefix(scorer)
    if isinstance(scorer, BatchPartialScorerInterface):
        return BatchPartialFallback(scorer, n_vocab, eos)
    if isinstance(scorer, PartialScorerInterface):
        return SinglePartialFallback(scorer, n_vocab, eos)
    if is_cached_transformer(scorer):
        return CachedTransformer(scorer, return_hs, return_attention)
    # ESPnet's RNN and Whisper decoders have no hidden states to give, and the fallback
    # says so
    if is_batched_rnn(scorer) and not return_hs:
        return BatchedRNN(scorer, return_attention)
    if is_cached_whisper(scorer) and not return_hs:
        return CachedWhisper(scorer)
    if type(scorer) is LengthBonus:
        return Bonus(scorer)
    if is_rnn_lm(scorer):
        return BatchedRNNLM(scorer)
    if is_transformer_lm(scorer):
        return CachedTransformerLM(scorer)
    kind = BatchFallback if isinstance(scorer, BatchScorerInterface) else SingleFallback
    return kind(scorer, is_decoder="decoder" in name, return_hs=return_hs)
