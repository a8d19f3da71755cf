"""The decoder of OpenAI's Whisper with keys and values cached.

ESPnet runs it over the whole prefix at every position, and computes the keys and values
of the encoder output anew for every hypothesis. Here they are cached as in
:mod:`.transformer`: those of the encoder output are shared by the hypotheses of an
utterance, those of the labels follow the hypotheses.

h is the number of heads, d the size of one, D = h d; the other symbols are those of
:mod:`.base`.
"""

from typing import Any, NamedTuple

import torch
from torch.nn.functional import embedding, scaled_dot_product_attention

from espnet_lenbias.espnet_compat import ExpandedTokenEmbedding, OpenAIWhisperDecoder
from espnet_lenbias.scorers.attention import (
    attend_labels,
    queries,
)
from espnet_lenbias.scorers.base import (
    EncoderOutput,
    Prefixes,
    Scores,
    Selection,
    Span,
    log_probs,
    widened,
)
from espnet_lenbias.scorers.frames import Frames, frames_of
from espnet_lenbias.scorers.label_cache import (
    KeysValues,
    SelfAttentionCache,
    empty_labels,
)
from espnet_lenbias.scorers.products import label_product, lay_out, linear


class WhisperAttention(NamedTuple):
    """The modules of a Whisper attention by the names that ESPnet's have."""

    h: int
    d_k: int
    linear_q: torch.nn.Module
    linear_k: torch.nn.Module
    linear_v: torch.nn.Module
    linear_out: torch.nn.Module
    q_norm: torch.nn.Module = torch.nn.Identity()
    k_norm: torch.nn.Module = torch.nn.Identity()

    @classmethod
    def of(cls, attention: Any) -> "WhisperAttention":
        """Name the modules of a `whisper.model.MultiHeadAttention`."""
        query, h = attention.query, attention.n_head
        size = query.out_features // h
        return cls(h, size, query, attention.key, attention.value, attention.out)


class WhisperDecoderState(NamedTuple):
    """What is cached."""

    embedding: torch.Tensor  # (V, D): ESPnet puts an expanded one together at each use
    frames: Frames
    labels: SelfAttentionCache


def supports(decoder: Any) -> bool:
    """Tell whether this adapter computes what the decoder computes.

    It does for what ESPnet builds, linear layers with LoRA included; a decoder with other
    modules anywhere in it is left to the fallback.
    """
    if type(decoder) is not OpenAIWhisperDecoder:
        return False
    # such a decoder cannot have been built without the package, which is an extra
    from whisper import model

    known = (
        model.TextDecoder,
        model.ResidualAttentionBlock,
        model.MultiHeadAttention,
        model.LayerNorm,
        ExpandedTokenEmbedding,
        torch.nn.Embedding,
        torch.nn.ModuleList,
        torch.nn.Sequential,
        torch.nn.GELU,
        torch.nn.Dropout,  # of LoRA
    )
    return all(
        type(module) in known or isinstance(module, torch.nn.Linear)
        for module in decoder.decoders.modules()
    )


def n_positions(scorer: Any) -> int | None:
    """Return how many labels a scorer has positions for, the primer's counted.

    Whisper's decoder has an embedding for each position, and no more of them.

    Returns:
        None: any number.
    """
    if isinstance(scorer, OpenAIWhisperDecoder):
        return len(scorer.decoders.positional_embedding)
    return None


class CachedWhisper:
    """Adapter of ESPnet's `OpenAIWhisperDecoder`."""

    def __init__(self, decoder: OpenAIWhisperDecoder):
        self.decoder = decoder.decoders
        self._self_attn = [WhisperAttention.of(b.attn) for b in self.decoder.blocks]
        self._cross_attn = [
            WhisperAttention.of(b.cross_attn) for b in self.decoder.blocks
        ]

    def start(self, encoder_output: EncoderOutput) -> WhisperDecoderState:
        """Compute keys and values of the encoder output, once for all positions."""
        lay_out(self.decoder, self.decoder.token_embedding)
        encoder_output = encoder_output.to(self.decoder.positional_embedding.dtype)
        return WhisperDecoderState(
            self.decoder.token_embedding.weight,
            frames_of(self._cross_attn, encoder_output, _attend_frames),
            empty_labels(self._self_attn, encoder_output.x),
        )

    def step(
        self,
        state: WhisperDecoderState,
        prefixes: Prefixes,
        part_ids: torch.Tensor | None = None,
    ) -> Scores:
        """Score all labels after each prefix.

        The first call covers the whole primer, each later one a single label more.
        """
        frames, labels = state.frames, state.labels
        position = labels.length
        count = prefixes.yseq.size(1) - position
        spans, labels = widened(prefixes.spans, count), labels.with_room(count)
        newest = frames.spread(prefixes.yseq[:, position:])
        x = embedding(newest, state.embedding)  # (r, P, D)
        x = x + self.decoder.positional_embedding[position : position + count]
        x = x.flatten(0, 1)
        for i in range(len(self.decoder.blocks)):
            x = self._block(i, x, labels, frames, spans, count)
        labels = labels.filled(count)
        x = self.decoder.ln(frames.collect(x[count - 1 :: count]))
        logits = label_product(x, self.decoder.token_embedding, state.embedding)
        scores = log_probs(logits)
        return Scores(scores, state._replace(labels=labels))

    def _block(
        self,
        number: int,
        x: torch.Tensor,
        labels: SelfAttentionCache,
        frames: Frames,
        spans: list[Span],
        count: int,
    ) -> torch.Tensor:
        """Run one block for the newest positions of each hypothesis.

        Args:
            number: Which block it is.
            x: (r P, D) its input, as the frames have it laid out.
            labels: Keys and values of the earlier positions; these ones' are put in.
            frames: The encoder output.
            spans: The rows of each utterance.
            count: P, the positions.

        Returns:
            (r P, D) output.
        """
        block = self.decoder.blocks[number]
        y = block.attn_ln(x)
        x = x + attend_labels(self._self_attn[number], y, labels, number, count=count)
        y = block.cross_attn_ln(x)
        x = x + frames.attend(number, self._cross_attn[number], y, spans)[0]
        widen, activation, narrow = block.mlp
        y = linear(widen, block.mlp_ln(x))
        return x + linear(narrow, activation(y))

    def select(
        self, state: WhisperDecoderState, selection: Selection
    ) -> WhisperDecoderState:
        """Return the state of the chosen extensions."""
        frames, labels = state.frames.select(selection, state.labels)
        return state._replace(frames=frames, labels=labels)

    def final(self, state: WhisperDecoderState) -> None:
        """A decoder adds nothing when a hypothesis ends."""
        return None


def _attend_frames(
    attention: WhisperAttention,
    x: torch.Tensor,
    frames_kv: list[KeysValues],
    spans: list[Span],
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Attend to the encoder output on a CPU, utterance by utterance.

    The hypotheses stand in the place of the positions of one sequence: nothing is
    expanded, and there is no padding to mask.

    Args:
        attention: The block's.
        x: (n, D) its input.
        frames_kv: Keys and values of the encoder output, for each utterance.
        spans: The rows of each utterance among the n.

    Returns:
        (n, D) what was found, and no weights, which Whisper is not asked for.
    """
    query = queries(attention, x)
    contexts = []
    for span in spans:
        keys, values = frames_kv[span.utt]  # (T, h, d)
        # (1, h, n_b or T, d)
        by_head = [
            x.transpose(0, 1).unsqueeze(0) for x in (query[span.rows], keys, values)
        ]
        context = scaled_dot_product_attention(by_head[0], by_head[1], by_head[2])
        contexts.append(context.squeeze(0).transpose(0, 1).flatten(1))
    return linear(attention.linear_out, torch.cat(contexts)), []
