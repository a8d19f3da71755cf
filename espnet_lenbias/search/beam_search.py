"""The two searches: ESPnet's beam search class with another search in it.

:mod:`espnet_lenbias.search.loop` holds the loop that both share, and
:mod:`espnet_lenbias.search.rules` the rule in which they differ.
"""

import logging
from collections.abc import Iterator
from typing import Any

import torch

from espnet_lenbias.errors import ScorerError
from espnet_lenbias.espnet_compat import BeamSearch, ScorerInterface
from espnet_lenbias.options.search_conf import ExplicitLengthOptions, SimpleOptions
from espnet_lenbias.scorers import Memory
from espnet_lenbias.search.hypotheses import Hypothesis, Trace
from espnet_lenbias.search.loop import Bounds, Decoding
from espnet_lenbias.search.rules import ExplicitLengthEnding, SimpleEnding

__all__ = [
    "ExplicitLengthBeamSearch",
    "Hypothesis",
    "ScorerError",
    "SimpleBeamSearch",
    "Trace",
]

logger = logging.getLogger(__name__)


class LabelSynchronousSearch(BeamSearch):
    """What both searches share: batches, bounds of the length, primers, the log.

    Attributes:
        trace: How the last call went, one :class:`Trace` for each utterance.
    """

    ending_rule: type  # how hypotheses end, of espnet_lenbias.search.rules

    def __init__(self, options: Any, beam_size: int, normalize_length: bool, **kwargs):
        """Check what ESPnet's class does not.

        Args:
            options: What `search_conf` holds.
            kwargs: The other arguments of ESPnet's BeamSearch.

        Raises:
            ValueError: A value that no search can be made of.
        """
        if normalize_length:
            raise ValueError(
                "normalize_length ranks by the score per label, which this search does "
                "not: set normalize_length to false, or take `search: simple` with "
                "`search_conf: {length_norm: true}`"
            )
        if beam_size < 1:
            raise ValueError(f"beam_size must be 1 or more, not {beam_size}")
        super().__init__(beam_size=beam_size, **kwargs)
        if not self.scorers:
            raise ValueError(f"no scorer has a weight other than 0: {self.weights}")
        self.options = options
        self.trace: list[Trace] = []

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
            maxlenratio: Longest output in labels, the end label counted: T for 0, this
                share of T if positive, -maxlenratio if negative.
            minlenratio: Shortest output, the end label counted: this share of T, or
                -minlenratio if negative.
            pre_x: First source of sequential attention, (T', D) or (B, T', D); lengths
                are then counted in its frames.
            x_lengths: (B,) frames of each utterance; None: all T.
            pre_x_lengths: (B,) frames of `pre_x`; None: all T'.

        Returns:
            Hypotheses, best first and never none: a list, or for a batch a list of lists.

        Raises:
            MemoryError: The memory does not hold the search of a single utterance.
            ScorerError: A scorer returned NaN or plus infinity.
            ValueError: Shapes, lengths or primers that do not fit together.
        """
        batched = x.dim() == 3
        if not batched:
            x, pre_x = x.unsqueeze(0), None if pre_x is None else pre_x.unsqueeze(0)
        if x.dim() != 3:
            raise ValueError(f"x must be (T, D) or (B, T, D), not {tuple(x.shape)}")
        lengths = _lengths("x_lengths", x, x_lengths)
        pre_lengths = None
        if pre_x is not None:
            pre_lengths = _lengths("pre_x_lengths", pre_x, pre_x_lengths)
        memory = Memory(x, lengths, pre_x, pre_lengths)
        results = self._search_groups(memory, maxlenratio, minlenratio)
        for utt, hyps in enumerate(results):
            self._log_best(hyps[0], self.trace[utt], utt if batched else None)
        return results if batched else results[0]

    def _search_groups(
        self, memory: Memory, maxlenratio: float, minlenratio: float
    ) -> list[list[Hypothesis]]:
        """Decode in groups of equal primer length; without frames there is no search.

        The hypotheses of a group advance in lock step, so all must start equally long.
        """
        primers = self._primers_of(len(memory))
        n_frames = memory.lengths if memory.pre_x is None else memory.pre_lengths
        bounds = [length_bounds(n, maxlenratio, minlenratio) for n in n_frames]
        results = [[self._nothing_heard(primer)] for primer in primers]
        self.trace = [Trace(stopped="empty") for _ in primers]
        groups: dict[int, list[int]] = {}
        for b, primer in enumerate(primers):
            if memory.lengths[b] and n_frames[b]:
                groups.setdefault(len(primer), []).append(b)
        for utts in groups.values():
            for b, hyps, trace in self._decode(memory, utts, bounds, primers):
                results[b], self.trace[b] = hyps, trace
                for hyp in hyps:
                    hyp.steps = trace.steps
        return results

    def _decode(
        self,
        memory: Memory,
        utts: list[int],
        bounds: list[Bounds],
        primers: list[list[int]],
    ) -> Iterator[tuple[int, list[Hypothesis], Trace]]:
        """Decode utterances together, in halves of them where the memory is too small.

        Args:
            memory: Of all utterances.
            utts: Which of them.
            bounds: Of all utterances.
            primers: Of all utterances, those of `utts` of one length.

        Yields:
            Each utterance with its hypotheses and its trace.
        """
        try:
            decoding = Decoding(
                self,
                memory.take(utts),
                [bounds[b] for b in utts],
                torch.tensor([primers[b] for b in utts], device=memory.x.device),
            )
            found = zip(utts, *decoding.run())
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                _check_frames(memory, utts)
                raise
        else:
            yield from found
            return
        # out of the handler, the frames that held the memory are gone
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(utts) == 1:
            raise MemoryError(
                f"out of memory with beam_size {self.beam_size} and "
                f"{memory.lengths[utts[0]]} encoder frames in utterance {utts[0]} of the "
                "batch: lower beam_size, or cut the audio into shorter pieces"
            )
        logger.warning(
            f"out of memory with {len(utts)} utterances at once: going on in halves"
        )
        half = len(utts) // 2
        for part in (utts[:half], utts[half:]):
            yield from self._decode(memory, part, bounds, primers)

    def _primers_of(self, n_utts: int) -> list[list[int]]:
        """Return what the hypotheses of each utterance start from; see `set_hyp_primer`."""
        primer = [self.sos] if self.hyp_primer is None else self.hyp_primer
        if len(primer) == 0:
            raise ValueError("hyp_primer is empty; None means the start label")
        if not _is_nested(primer):
            primer = [primer] * n_utts
        if len(primer) != n_utts:
            raise ValueError(f"{len(primer)} primers were set for {n_utts} utterances")
        return [[int(label) for label in p] for p in primer]

    def _nothing_heard(self, primer: list[int]) -> Hypothesis:
        """Return the only output that an utterance without frames can have."""
        return Hypothesis(
            yseq=torch.tensor([*primer, self.eos]),
            score=0.0,
            scores={name: 0.0 for name in self.scorers},
            original_score=0.0,
            forced=True,
        )

    def _log_best(self, best: Hypothesis, trace: Trace, utt: int | None) -> None:
        """Report the best hypothesis in the lines that ESPnet's scripts look for."""
        tag = "" if utt is None else f"utt {utt}: "
        for name, score in best.scores.items():
            weight = self.weights[name]
            logger.info(
                f"{tag}{score:6.2f} * {weight:3} = {score * weight:6.2f} for {name}"
            )
        # in brackets the names that result files and Python have for these
        q = f"{best.original_score:.2f} (original_score)"
        logger.info(f"{tag}total log probability: {q}")
        logger.info(f"{tag}ranking score: {best.score:.2f} (score)")
        logger.info(
            f"{tag}stopped after {trace.steps} positions (steps): {trace.stopped}"
        )
        if self.token_list is not None:
            labels = best.yseq[self._primer_length() : -1].tolist()
            text = "".join(self.token_list[i] for i in labels)
            # asr.sh's real-time factor wants this marker right after the level
            logger.info(f"best hypo: {text}" + (f" (utt {utt})" if tag else "") + "\n")
        if trace.stopped == "forced" and trace.kept[-1]:
            logger.warning(
                f"{tag}no hypothesis had ended within {trace.steps - 1} positions, so "
                "the output was cut there; a larger maxlenratio leaves it more room"
            )
        elif trace.stopped == "forced":
            logger.warning(
                f"{tag}at position {trace.steps} no label was possible (every score was "
                "-inf), so the output was cut there"
            )
        elif trace.stopped == "empty":
            logger.warning(
                f"{tag}the encoder makes no frame of the audio, so the text is empty"
            )

    def _primer_length(self) -> int:
        """Return how many tokens of the first utterance's `yseq` are no labels."""
        primer = self.hyp_primer
        if primer is None:
            return 1
        return len(primer[0]) if _is_nested(primer) else len(primer)


class ExplicitLengthBeamSearch(LabelSynchronousSearch):
    """Beam search with an explicit length model (the paper's Algorithm 1).

    Ended hypotheses are ranked by log p(a, len=N | x), the final score of eq. 5, and leave
    the beam; the search stops as soon as none that runs on could win.
    """

    ending_rule = ExplicitLengthEnding

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
        hyp_primer: list[int] | None = None,
        normalize_length: bool = False,
        *,
        nbest: int | None = None,
        score_threshold: float | None = None,
        exact_nbest: bool = False,
    ):
        """Make a search.

        Args:
            scorers: As for ESPnet's BeamSearch, like all that follow it up to
                `normalize_length`, which has to be false.
            nbest: How many hypotheses to return; None: all that have ended.
            score_threshold: Drop candidates so far below the best of their position.
            exact_nbest: Search on until the whole n-best list is certain.
        """
        super().__init__(
            ExplicitLengthOptions(nbest, score_threshold, exact_nbest),
            beam_size,
            normalize_length,
            scorers=scorers,
            weights=weights,
            vocab_size=vocab_size,
            sos=sos,
            eos=eos,
            token_list=token_list,
            pre_beam_ratio=pre_beam_ratio,
            pre_beam_score_key=pre_beam_score_key,
            return_hs=return_hs,
            hyp_primer=hyp_primer,
        )


class SimpleBeamSearch(LabelSynchronousSearch):
    """Simple beam search, with the heuristics that the paper compares with.

    Ended hypotheses stay in the beam with their score frozen and compete for its places;
    the best is the one of highest ranking score.
    """

    ending_rule = SimpleEnding

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
        hyp_primer: list[int] | None = None,
        normalize_length: bool = False,
        *,
        nbest: int | None = None,
        length_norm: bool = False,
        eos_threshold: float | None = None,
        length_reward: float = 0.0,
        keep_ended: str = "joint",
        coverage: dict[str, float] | None = None,
    ):
        """Make a search.

        Args:
            scorers: As for ESPnet's BeamSearch, like all that follow it up to
                `normalize_length`, which has to be false.
            nbest: How many hypotheses to return; None: all ended ones in the beam.
            length_norm: Rank and prune by the score divided by the length.
            eos_threshold: Let a hypothesis end only where the end label's log-prob is
                above this factor times the best other label's.
            length_reward: Added to the ranking score for each label.
            keep_ended: "joint" or "separate" places for ended and running hypotheses.
            coverage: {weight: ..., threshold: ...} of the coverage term, see
                :class:`espnet_lenbias.options.search_conf.Coverage`.
        """
        super().__init__(
            SimpleOptions(
                nbest,
                length_norm,
                eos_threshold,
                length_reward,
                keep_ended,
                coverage,
            ),
            beam_size,
            normalize_length,
            scorers=scorers,
            weights=weights,
            vocab_size=vocab_size,
            sos=sos,
            eos=eos,
            token_list=token_list,
            pre_beam_ratio=pre_beam_ratio,
            pre_beam_score_key=pre_beam_score_key,
            return_hs=return_hs,
            hyp_primer=hyp_primer,
        )


def _is_out_of_memory(error: RuntimeError) -> bool:
    """Tell whether it is an allocation that failed, on a GPU or on the CPU."""
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


def _check_frames(memory: Memory, utts: list[int]) -> None:
    """Say so where it is no scorer that NaN comes from."""
    for b in utts:
        if not memory.frames(b).isfinite().all():
            raise ScorerError(
                f"the encoder output of utterance {b} of the batch holds NaN or "
                "infinity: look at the audio, and at the model's dtype"
            )


def _is_nested(primer: Any) -> bool:
    """Tell whether a primer is one for each utterance, not one for all."""
    first = primer[0]
    return isinstance(first, (list, tuple)) or getattr(first, "ndim", 0) > 0


def _lengths(name: str, x: torch.Tensor, lengths: torch.Tensor | None) -> list[int]:
    """Return the frames of each utterance of (B, T, D), checked."""
    n_utts, longest = x.shape[:2]
    if lengths is None:
        return [longest] * n_utts
    lengths = torch.as_tensor(lengths).tolist()
    if len(lengths) != n_utts or any(not 0 <= n <= longest for n in lengths):
        raise ValueError(
            f"{name} must be {n_utts} numbers from 0 to {longest}, not {lengths}"
        )
    return lengths


def length_bounds(n_frames: int, maxlenratio: float, minlenratio: float) -> Bounds:
    """Turn ESPnet's length ratios into numbers of labels, the end label counted."""
    if maxlenratio == 0:
        longest = n_frames
    elif maxlenratio < 0:
        longest = -int(maxlenratio)
    else:
        longest = int(maxlenratio * n_frames)
    shortest = -int(minlenratio) if minlenratio < 0 else int(minlenratio * n_frames)
    return Bounds(shortest, max(1, longest))
