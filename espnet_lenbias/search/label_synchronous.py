"""The base of the searches here: ESPnet's beam search class with another loop in it.

A search adds its rule of ending to it; see :mod:`espnet_lenbias.search.beam_search`.
"""

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from espnet_lenbias.errors import OptionError
from espnet_lenbias.espnet_compat import BeamSearch, ScorerInterface
from espnet_lenbias.options.repeat_limit import RepeatLimit
from espnet_lenbias.options.values import count, number, switch, whole
from espnet_lenbias.scorers import Adapter, EncoderOutput, adapter_for
from espnet_lenbias.scorers.precision import can_be_lowered, lowered
from espnet_lenbias.search.halves import decode_together
from espnet_lenbias.search.hypotheses import Hypothesis, nothing_heard
from espnet_lenbias.search.input_checks import (
    checked_frames,
    checked_weights,
    room_behind,
)
from espnet_lenbias.search.length_limits import LengthLimits, length_limits
from espnet_lenbias.search.log_best import log_best
from espnet_lenbias.search.pre_beam import PreBeamSize
from espnet_lenbias.search.primers import primers_of
from espnet_lenbias.search.rules import EndingRule
from espnet_lenbias.search.setup import SearchSetup
from espnet_lenbias.search.trace import Trace


class SearchOptions(Protocol):
    """What all searches' options have."""

    @property
    def nbest(self) -> int | None:
        """How many hypotheses are returned; None: all that can be."""


class LabelSynchronousSearch(BeamSearch):
    """What the searches share: batches, limits of the length, primers, the log.

    Attributes:
        options: What `search_conf` holds.
        label_smoothing: What is taken out of the decoder's scores; a subclass may set it.
        repeat_limit: How often a cycle of labels may repeat; None: as often as it likes.
            A subclass that has it as an option sets it.
        trace: How the last call went, one :class:`Trace` for each utterance.
        keep_label_scores: Whether hypotheses carry the score of each label.
    """

    beam_size: int  # ESPnet's
    label_smoothing: float = 0.0
    repeat_limit: RepeatLimit | None = None
    keep_label_scores = False
    __signature__: inspect.Signature

    def __init_subclass__(cls, **kwargs: Any):
        """Have `help` and others see the arguments here before a search's own options."""
        super().__init_subclass__(**kwargs)
        shared = inspect.signature(LabelSynchronousSearch.__init__).parameters.values()
        _, *parameters = [p for p in shared if p.kind is p.POSITIONAL_OR_KEYWORD]
        for base in reversed(cls.__mro__[: cls.__mro__.index(LabelSynchronousSearch)]):
            own = inspect.signature(vars(base).get("__init__", _nothing))
            own_options = own.parameters.values()
            parameters += [p for p in own_options if p.kind is p.KEYWORD_ONLY]
        cls.__signature__ = inspect.Signature(parameters)

    def __init__(
        self,
        scorers: dict[str, ScorerInterface],
        weights: dict[str, float],
        beam_size: int,
        vocab_size: int,
        sos: int,
        eos: int,
        token_list: list[str] | None = None,
        pre_beam_ratio: float = 1.5,
        pre_beam_score_key: str | None = None,
        return_hs: bool = False,
        hyp_primer: Sequence[Any] | None = None,
        normalize_length: bool = False,
        *,
        options: SearchOptions,
    ):
        """Make a search.

        Args:
            scorers: As for ESPnet's BeamSearch, like all that follow it up to
                `normalize_length`, which has to be false.
            weights: Scorer name -> its weight.
            beam_size: K.
            vocab_size: V.
            sos: The start label.
            eos: The end label.
            token_list: The tokens of the labels, for the log.
            pre_beam_ratio: Labels of the pre-beam over K.
            pre_beam_score_key: The scorer that chooses the pre-beam, or "full".
            return_hs: Whether hypotheses carry the decoder's hidden states.
            hyp_primer: What hypotheses start from; None: the start label.
            normalize_length: Only false.
            options: The search's own options.

        Raises:
            ValueError: A value that no search can be made of.
        """
        if switch("normalize_length", normalize_length):
            raise ValueError(
                "normalize_length ranks by the score per label, which this search does "
                "not: set normalize_length to false, or take `search: simple` with "
                "`search_conf: {length_norm: true}`"
            )
        beam_size = count("beam_size", beam_size)
        vocab_size = count("vocab_size", vocab_size)
        sos, eos = whole("sos", sos), whole("eos", eos)
        weights = checked_weights(weights)
        pre_beam_ratio = number("pre_beam_ratio", pre_beam_ratio)
        if not 0 <= eos < vocab_size:
            raise ValueError(
                f"eos must be one of the labels 0 to {vocab_size - 1}, not {eos}"
            )
        super().__init__(
            scorers=scorers,
            weights=weights,
            beam_size=beam_size,
            vocab_size=vocab_size,
            sos=sos,
            eos=eos,
            token_list=token_list,
            pre_beam_ratio=pre_beam_ratio,
            pre_beam_score_key=pre_beam_score_key,
            return_hs=return_hs,
            hyp_primer=hyp_primer,
        )
        if not self.scorers:
            raise ValueError(f"no scorer has a weight other than 0: {self.weights}")
        self._pre_beam_size = PreBeamSize(self, pre_beam_ratio)
        self.options = options
        self.trace: list[Trace] = []
        # what computes in another dtype, by the scorer's name; see compute_in
        self._lowered: dict[str, ScorerInterface] = {}

    def make_rule(self) -> EndingRule:
        """Return what becomes of hypotheses that end: a subclass says so.

        By `beam_size` as it is now: as with ESPnet's search it may be set at any time.
        """
        raise NotImplementedError

    def compute_in(self, dtype: torch.dtype) -> list[str]:
        """Have decoder and language model compute in another dtype, as copies.

        All else stays as it is: encoder output, CTC, sums of scores, length model. The
        copies stay on the device that their scorers are on now.

        Returns:
            The names of the scorers that do.
        """
        lower = {n: s for n, s in self.scorers.items() if can_be_lowered(s)}
        self._lowered = {n: lowered(s, dtype).eval() for n, s in lower.items()}
        return list(lower)

    @torch.no_grad()
    def forward(
        self,
        x: torch.Tensor,
        maxlenratio: float = 0.0,
        minlenratio: float = 0.0,
        pre_x: torch.Tensor | None = None,
        x_lengths: torch.Tensor | None = None,
        pre_x_lengths: torch.Tensor | None = None,
    ) -> list[Hypothesis] | list[list[Hypothesis]]:
        """Search the best label sequences of one utterance or of a batch.

        Args:
            x: Encoder output, (T, D) of one utterance or (B, T, D) of a batch.
            maxlenratio: Longest output in positions: T for 0, this share of T if
                positive, -maxlenratio if negative. See :class:`LengthLimits`.
            minlenratio: Fewest labels of the text, without the end label: this share of
                T, or -minlenratio if negative.
            pre_x: First source of sequential attention, (T', D) or (B, T', D); lengths
                are then counted in its frames.
            x_lengths: (B,) frames of each utterance; None: all T.
            pre_x_lengths: (B,) frames of `pre_x`; None: all T'.

        Returns:
            Hypotheses, best first and never none: a list, or for a batch a list of
            lists.

        Raises:
            MemoryError: The memory does not hold the search of a single utterance.
            ScorerError: A scorer returned NaN or plus infinity.
            ValueError: Shapes, lengths or primers that do not fit together.
        """
        batched = x.dim() == 3
        encoder_output = checked_frames(x, pre_x, x_lengths, pre_x_lengths)
        primers = primers_of(self.hyp_primer, self.sos, len(encoder_output))
        n_frames = encoder_output.pre_lengths or encoder_output.lengths
        limits = [
            length_limits(
                n, maxlenratio, minlenratio, room_behind(primer, self.scorers)
            )
            for n, primer in zip(n_frames, primers)
        ]
        results = self._search_groups(encoder_output, primers, limits)
        for b, hyps in enumerate(results):
            log_best(
                hyps[0],
                self.weights,
                self.token_list,
                len(primers[b]),
                self.trace[b],
                limits[b],
                utt=b if batched else None,
            )
        return results if batched else results[0]

    def setup(self) -> SearchSetup:
        """Return what the loop over positions needs of this search.

        Raises:
            OptionError: The rule wants attention, and no scorer gives it; or label
                smoothing is to be taken out, and there is no decoder.
        """
        # which may have been set since
        self.beam_size = count("beam_size", self.beam_size)
        rule = self.make_rule()
        wants_attention = rule.coverage_options is not None
        adapters = {
            name: adapter_for(
                name,
                self._lowered.get(name, scorer),
                self.n_vocab,
                self.eos,
                self.return_hs,
                wants_attention,
            )
            for name, scorer in {**self.full_scorers, **self.part_scorers}.items()
        }
        if wants_attention and not any(map(_gives_attention, adapters.values())):
            kinds = {name: type(s).__name__ for name, s in self.scorers.items()}
            raise OptionError(
                "search_conf: coverage needs the attention of a decoder to the frames, "
                f"and none of the scorers {kinds} gives it: leave coverage out"
            )
        return SearchSetup(
            adapters=adapters,
            weights=self.weights,
            pre_beam=self._pre_beam_size.now(self),
            rule=rule,
            beam_size=self.beam_size,
            eos=self.eos,
            nbest=self.options.nbest,
            label_smoothing=self._smoothed(),
            repeat_limit=self.repeat_limit,
            keep_label_scores=self.keep_label_scores,
        )

    def _smoothed(self) -> dict[str, float]:
        """Return the label smoothing that is taken out of the scores of each decoder."""
        if not self.label_smoothing:
            return {}
        # as in ESPnet, a decoder is what has it in its name
        decoders = [name for name in self.scorers if "decoder" in name]
        if not decoders:
            raise OptionError(
                "search_conf: label_smoothing corrects the scores of a decoder, and "
                f"there is none among the scorers {list(self.scorers)}: leave it out"
            )
        return dict.fromkeys(decoders, self.label_smoothing)

    def _search_groups(
        self,
        encoder_output: EncoderOutput,
        primers: list[list[int]],
        limits: list[LengthLimits],
    ) -> list[list[Hypothesis]]:
        """Decode in groups of equal primer length; without frames there is no search.

        The hypotheses of a group advance in lock step, so all must start equally long.
        """
        x_lengths, pre_lengths = encoder_output.lengths, encoder_output.pre_lengths
        results = [
            [nothing_heard(torch.tensor([*primer, self.eos]), self.scorers)]
            for primer in primers
        ]
        self.trace = [Trace(stopped="empty") for _ in primers]
        groups: dict[int, list[int]] = {}
        for b, primer in enumerate(primers):
            if x_lengths[b] and (pre_lengths is None or pre_lengths[b]):
                groups.setdefault(len(primer), []).append(b)
        for utts in groups.values():
            for b, hyps, trace in decode_together(
                self.setup(), encoder_output, utts, limits, primers
            ):
                results[b], self.trace[b] = hyps, trace
                for hyp in hyps:
                    hyp.steps, hyp.stopped = trace.steps, trace.stopped
        return results


def _nothing() -> None:
    """Stand for the constructor of a class that has none of its own."""


def _gives_attention(adapter: Adapter) -> bool:
    return getattr(adapter, "return_attention", False)
