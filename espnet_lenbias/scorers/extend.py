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

from espnet_lenbias.espnet_compat import CTCPrefixScoreTH
from espnet_lenbias.scorers import ctc, fallback, lm, transformer
from espnet_lenbias.scorers.attention import KeysValues, LabelCache, project
from espnet_lenbias.scorers.base import Adapter, Memory, Prefixes


@singledispatch
def extend(state: Any, adapter: Adapter, memory: Memory, prefixes: Prefixes) -> Any:
    """Return the state of the hypotheses when more frames have come.

    Args:
        state: The adapter's, of the n hypotheses of one utterance.
        adapter: Whose state it is.
        memory: All frames of the utterance so far, the old ones first.
        prefixes: The n hypotheses.

    Raises:
        TypeError: There is no way to show this kind of scorer more frames.
    """
    raise TypeError(
        f"{type(adapter).__name__} cannot take frames block by block: decode with the "
        "whole audio in one call"
    )


@extend.register(lm.RNNState)
@extend.register(lm.TransformerState)
@extend.register(torch.Tensor)  # of the length bonus
def _same(state: Any, adapter: Adapter, memory: Memory, prefixes: Prefixes) -> Any:
    """Scorers that do not look at the frames go on as they were."""
    return state


@extend.register
def _fallback(
    state: fallback.State, adapter: Adapter, memory: Memory, prefixes: Prefixes
) -> fallback.State:
    """ESPnet's scorers are handed the frames at each label anyway."""
    return state._replace(memory=memory)


@extend.register
def _transformer(
    state: transformer.State,
    adapter: transformer.CachedTransformer,
    memory: Memory,
    prefixes: Prefixes,
) -> transformer.State:
    """Put the keys and values of the new frames behind those of the old ones."""
    n_old = len(state.memory[0][0].keys)
    new = memory.frames(0)[n_old:]
    extended = []
    for layer, [old] in zip(adapter.decoder.decoders, state.memory):
        pairs = zip(old, project(layer.src_attn, new))
        extended.append([KeysValues(*(torch.cat(pair) for pair in pairs))])
    return transformer.State(extended, state.labels)


@extend.register
def _ctc(
    state: ctc.State, adapter: ctc.CTCPrefix, memory: Memory, prefixes: Prefixes
) -> ctc.State:
    """Compute the forward variables of the prefixes anew, over all frames.

    The prefix score that they had stays what the next one is counted from, so with the
    next label the accumulated score is that of all frames.
    """
    start = adapter.start(memory)
    if not state.by_utt:
        return start
    _, (_, log_psi, f_min, f_max) = state.by_utt[0]
    labels = prefixes.yseq[:, prefixes.primer_length :]
    r = forward_variables(start.impls[0], labels)
    return ctc.State(start.impls, {0: (0, (r, log_psi, f_min, f_max))})


def forward_variables(impl: CTCPrefixScoreTH, labels: torch.Tensor) -> torch.Tensor:
    """Return log-probs of the frames up to each one being exactly these labels.

    Args:
        impl: Of one utterance.
        labels: (n, N) of n hypotheses, one label at least.

    Returns:
        (T, 2, n): the last frame a label; the last frame blank.
    """
    log_probs = impl.x[0, :, 0]  # (T, V)
    of_blank = log_probs[:, impl.blank]
    of_labels = log_probs[:, labels]  # (T, n, N)
    repeats = torch.zeros_like(labels, dtype=torch.bool)
    repeats[:, 1:] = labels[:, 1:] == labels[:, :-1]
    n, length = labels.shape
    # after 0 .. N labels, the last frame a label, or blank
    label = log_probs.new_full((n, length + 1), impl.logzero)
    blank = label.clone()
    label[:, 1], blank[:, 0] = of_labels[0, :, 0], of_blank[0]
    r = log_probs.new_empty(len(log_probs), 2, n)
    r[0, 0], r[0, 1] = label[:, -1], blank[:, -1]
    for t in range(1, len(log_probs)):
        either = torch.logaddexp(label, blank)
        before = torch.where(repeats, blank[:, :-1], either[:, :-1])
        label = label.clone()
        label[:, 1:] = torch.logaddexp(label[:, 1:], before) + of_labels[t]
        blank = either + of_blank[t]
        r[t, 0], r[t, 1] = label[:, -1], blank[:, -1]
    return r


@singledispatch
def keep(state: Any) -> Any:
    """Return a state that stays what it is when the search goes on from this one."""
    return state


@keep.register
def _keep_transformer(state: transformer.State) -> transformer.State:
    return state._replace(labels=_copied(state.labels))


@keep.register
def _keep_lm(state: lm.TransformerState) -> lm.TransformerState:
    return state._replace(labels=_copied(state.labels))


def _copied(labels: LabelCache) -> LabelCache:
    """Copy what is written to in place when hypotheses are extended."""
    layers = [KeysValues(*(values.clone() for values in kv)) for kv in labels.layers]
    return replace(labels, layers=layers)
