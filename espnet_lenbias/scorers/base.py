"""A scorer as the search sees it: asked for all hypotheses at once.

========  =====================================================================
B         utterances decoded together
n         running hypotheses of all utterances, flat, utterance after utterance
L         length of the prefixes, the primer included
V         vocabulary size, the end label included
T, D      encoder frames, encoder dimension
S         labels that a partial scorer is asked for (ESPnet's pre-beam)
========  =====================================================================

Every kind of ESPnet scorer has an adapter with the three methods of :class:`Adapter`. The
state that passes between them is opaque to the search, which only hands it back.
An adapter keeps nothing on itself, so that one search object can be used again and again.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch


class Span(NamedTuple):
    """Where the hypotheses of one utterance lie on the flat axis n."""

    utt: int  # index of the utterance in the encoder output
    start: int
    stop: int

    @property
    def rows(self) -> slice:
        """The rows of this utterance on the flat axis."""
        return slice(self.start, self.stop)


def make_spans(utts: list[int], counts: list[int]) -> list[Span]:
    """Lay utterances with so many hypotheses each one after the other."""
    spans, start = [], 0
    for utt, count in zip(utts, counts):
        spans.append(Span(utt, start, start + count))
        start += count
    return spans


def widened(spans: list[Span], count: int) -> list[Span]:
    """Return the spans where each hypothesis has so many rows, one after the other."""
    if count == 1:
        return spans
    return [Span(utt, start * count, stop * count) for utt, start, stop in spans]


@dataclass(frozen=True)
class EncoderOutput:
    """The encoder output of B utterances, none of them empty."""

    x: torch.Tensor  # (B, T, D), padded
    lengths: list[int]  # frames of each
    pre_x: torch.Tensor | None = None  # (B, T', D) for sequential attention
    pre_lengths: list[int] | None = None

    def __len__(self) -> int:
        return self.x.size(0)

    def take(self, utts: list[int]) -> "EncoderOutput":
        """Return the output of some of the utterances, in this order."""
        return EncoderOutput(
            self.x[utts],
            [self.lengths[b] for b in utts],
            None if self.pre_x is None else self.pre_x[utts],
            None if self.pre_lengths is None else [self.pre_lengths[b] for b in utts],
        )

    def to(self, dtype: torch.dtype) -> "EncoderOutput":
        """Return the output in another dtype; itself if it is of that one."""
        if self.x.dtype == dtype:
            return self
        pre_x = None if self.pre_x is None else self.pre_x.to(dtype)
        return EncoderOutput(self.x.to(dtype), self.lengths, pre_x, self.pre_lengths)

    def frames(self, utt: int) -> torch.Tensor:
        """Return the frames of one utterance without padding, (T_utt, D)."""
        return self.x[utt, : self.lengths[utt]]

    def pre_frames(self, utt: int) -> torch.Tensor | None:
        """Return the frames of sequential attention's first source, or None."""
        if self.pre_x is None or self.pre_lengths is None:
            return None
        return self.pre_x[utt, : self.pre_lengths[utt]]

    def first_source(self) -> tuple[torch.Tensor, list[int]]:
        """Return what CTC scores, (B, T, D), and the frames of each: `pre_x` or `x`."""
        if self.pre_x is None or self.pre_lengths is None:
            return self.x, self.lengths
        return self.pre_x, self.pre_lengths

    def first_frames(self, utt: int) -> torch.Tensor:
        """Return what states start from and CTC scores: `pre_x` where there is one."""
        pre = self.pre_frames(utt)
        return self.frames(utt) if pre is None else pre


@dataclass(frozen=True)
class Prefixes:
    """What the running hypotheses are, for a scorer to continue."""

    yseq: torch.Tensor  # (n, L) primer and labels
    spans: list[Span]  # the rows of each utterance
    primer_length: int  # how many of the L are not labels (1 for <sos>)


class Selection(NamedTuple):
    """Which one-label extensions of the n hypotheses go on, as m new hypotheses."""

    parents: torch.Tensor  # (m,) rows among the n
    parents_on_cpu: torch.Tensor  # (m,) the same
    labels: torch.Tensor  # (m,) what each is extended by
    spans: list[Span]  # the rows of each utterance among the m


class Scores(NamedTuple):
    """What a scorer says of one position."""

    scores: torch.Tensor  # (n, V) log-probs; -inf is legal, and stands for "not asked"
    state: Any  # for `select` and `final`
    hs: torch.Tensor | None = None  # (n, D) decoder states, if they were asked for
    # (n, T) how much of its attention each hypothesis gives to each frame at this
    # position, 0 on padding; None from a scorer that does not tell
    attention: torch.Tensor | None = None


class Adapter(Protocol):
    """How the search asks a scorer."""

    def start(self, encoder_output: EncoderOutput) -> Any:
        """Return the state of B hypotheses that are nothing but their primer."""

    def step(
        self, state: Any, prefixes: Prefixes, part_ids: torch.Tensor | None = None
    ) -> Scores:
        """Score the labels that may follow each prefix.

        Args:
            state: From `start` or `select`.
            prefixes: The n running hypotheses.
            part_ids: (n, S) the labels to score, for partial scorers under a pre-beam (the
                end label is scored in any case); None: all.
        """

    def select(self, state: Any, selection: Selection) -> Any:
        """Return the state of the chosen extensions."""

    def final(self, state: Any) -> torch.Tensor | None:
        """Return what is added when a hypothesis ends here: (n,), or None for nothing."""


def log_probs(logits: torch.Tensor) -> torch.Tensor:
    """Return log-probs of (n, V) logits: float32, or better where the logits are."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    return logits.log_softmax(dim=-1, dtype=dtype)


def attention_of_all(parts: list[torch.Tensor], n_frames: int) -> torch.Tensor:
    """Put the attention of the utterances together: (n_b, T_b) each to (n, T).

    Args:
        parts: For each utterance, in the order of the hypotheses.
        n_frames: T.
    """
    pad = torch.nn.functional.pad
    return torch.cat([pad(part, (0, n_frames - part.size(1))) for part in parts])
