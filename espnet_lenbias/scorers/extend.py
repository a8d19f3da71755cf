"""More frames of an utterance whose hypotheses have been scored already.

The frames of a streaming encoder come block by block. What a scorer has said of the
labels so far stays as it is; from the next label on it sees all frames. The symbols are
those of :mod:`.base`, with one utterance; d is the size of an attention's head, h their
number.
"""

from dataclasses import replace
from functools import singledispatch
from typing import Any

import torch

from espnet_lenbias.scorers import ctc, fallback, lm, transformer
from espnet_lenbias.scorers.base import (
    Adapter,
    EncoderOutput,
    Prefixes,
)
from espnet_lenbias.scorers.ctc_prefixes import (
    Forward,
    Probs,
    empty_prefixes,
    extended_prefixes,
)

# ESPnet's partial scorers whose state is of the labels alone: importing them takes kenlm.
_LOOK_AT_NO_FRAMES = ("NgramPartScorer",)


@singledispatch
def extend(
    state: Any, adapter: Adapter, encoder_output: EncoderOutput, prefixes: Prefixes
) -> Any:
    """Return the state of the hypotheses when more frames have come.

    Args:
        state: The adapter's, of the n hypotheses of one utterance.
        adapter: Whose state it is.
        encoder_output: All frames of the utterance so far, the old ones first.
        prefixes: The n hypotheses.

    Raises:
        TypeError: There is no way to show this kind of scorer more frames.
    """
    raise _takes_no_more_frames(adapter)


def _takes_no_more_frames(adapter: Adapter) -> TypeError:
    return TypeError(
        f"{type(adapter).__name__} cannot take frames block by block: decode with the "
        "whole audio in one call"
    )


@extend.register(lm.RNNLMState)
@extend.register(lm.TransformerLMState)
@extend.register(torch.Tensor)  # of the length bonus
def _same(
    state: Any, adapter: Adapter, encoder_output: EncoderOutput, prefixes: Prefixes
) -> Any:
    """Scorers that do not look at the frames go on as they were."""
    return state


@extend.register
def _fallback(
    state: fallback.FallbackState,
    adapter: Adapter,
    encoder_output: EncoderOutput,
    prefixes: Prefixes,
) -> fallback.FallbackState:
    """ESPnet's full scorers are handed the frames at each label anyway."""
    scorer: Any = adapter.scorer  # type: ignore[attr-defined]  # whose state this is
    is_full = isinstance(adapter, fallback.BatchFallback | fallback.SingleFallback)
    if not is_full and type(scorer).__name__ not in _LOOK_AT_NO_FRAMES:
        raise _takes_no_more_frames(adapter)  # what it has made of the first ones stays
    # some keep on themselves what they have made of them
    scorer.init_state(encoder_output.first_frames(0))
    return state._replace(encoder_output=encoder_output)


@extend.register
def _transformer(
    state: transformer.TransformerDecoderState,
    adapter: transformer.CachedTransformer,
    encoder_output: EncoderOutput,
    prefixes: Prefixes,
) -> transformer.TransformerDecoderState:
    """Put the keys and values of the new frames behind those of the old ones."""
    attentions = [layer.src_attn for layer in adapter.decoder.decoders]
    encoder_output = encoder_output.to(adapter.dtype)
    frames = state.frames.extended(attentions, encoder_output)
    return state._replace(frames=frames)


@extend.register
def _ctc(
    state: ctc.CTCPrefixState,
    adapter: ctc.CTCPrefix,
    encoder_output: EncoderOutput,
    prefixes: Prefixes,
) -> ctc.CTCPrefixState:
    """Compute the forward variables of the prefixes anew, over all frames.

    The prefix score that they had stays what the next one is counted from, so with the
    next label the accumulated score is that of all frames.
    """
    anew = adapter.start(encoder_output)
    assert isinstance(anew, ctc.CTCPrefixState)  # of the same device
    start, _, psi = state.by_utt[0]
    forward = _forward(anew.probs[0], prefixes)
    return ctc.CTCPrefixState(anew.probs, {0: ctc.UtteranceState(start, forward, psi)})


@extend.register
def _ctc_grid(
    state: ctc.CTCGridState,
    adapter: ctc.CTCPrefix,
    encoder_output: EncoderOutput,
    prefixes: Prefixes,
) -> ctc.CTCGridState:
    """Likewise in the grid, whose cells are the hypotheses of the utterance."""
    anew = adapter.start(encoder_output)
    assert isinstance(anew, ctc.CTCGridState)  # of the same device
    yseq = state.cells.spread(prefixes.yseq)
    probs = anew.probs._replace(rows=state.probs.rows)
    forward = _forward(probs, replace(prefixes, yseq=yseq))
    return state._replace(probs=probs, forward=forward)


def _forward(probs: Probs, prefixes: Prefixes) -> Forward:
    """Return the forward variables of the prefixes, from the first label on."""
    forward = empty_prefixes(probs, len(prefixes.yseq))
    for labels in prefixes.yseq[:, prefixes.primer_length :].unbind(dim=1):
        forward = extended_prefixes(forward, probs, labels)
    return forward


@singledispatch
def keep(state: Any) -> Any:
    """Return a state that stays what it is when the search goes on from this one."""
    return state


@keep.register
def _keep_transformer(
    state: transformer.TransformerDecoderState,
) -> transformer.TransformerDecoderState:
    return state._replace(labels=state.labels.copied())


@keep.register
def _keep_lm(state: lm.TransformerLMState) -> lm.TransformerLMState:
    return state._replace(labels=state.labels.copied())


@keep.register
def _keep_fallback(state: fallback.FallbackState) -> fallback.FallbackState:
    return state._replace(states=[fallback.own_lists(s) for s in state.states])
