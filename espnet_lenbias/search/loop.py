"""The loop over output positions, for all utterances of a batch together.

At each position N every running hypothesis is scored with all V labels, the rule of the
search prunes the extensions and says what has ended, and the rest runs on. An utterance
that needs no further position leaves the batch. Symbols and shapes are those of
:mod:`espnet_lenbias.search.beam`; the device is waited for once a position, in `read`.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from espnet_lenbias.errors import ScorerError
from espnet_lenbias.scorers import Memory, Prefixes, Selection, adapter_for
from espnet_lenbias.scorers.base import make_spans
from espnet_lenbias.search import heuristics
from espnet_lenbias.search.beam import Beam
from espnet_lenbias.search.hypotheses import Ended, Hypothesis, Trace, TraceRecorder
from espnet_lenbias.search.pruning import Grid
from espnet_lenbias.search.rules import Verdict

if TYPE_CHECKING:
    from espnet_lenbias.search.beam_search import LabelSynchronousSearch


class Bounds(NamedTuple):
    """How long the output of an utterance may be, in labels, the end label counted."""

    shortest: int  # the end label is masked at N < shortest
    longest: int  # the last position


class Step(NamedTuple):
    """What the scorers say of one position."""

    by_scorer: dict[str, torch.Tensor]  # name -> (n, V) log-probs
    weighted: torch.Tensor  # (n, V) their weighted sum, in float32 or better
    states: dict[str, Any]
    hs: torch.Tensor | None  # (n, D) hidden states of the decoder, if wanted
    # (n, T) attention that each frame has got, this position counted, if wanted
    attended: torch.Tensor | None


class Reading(NamedTuple):
    """What the CPU has to know of a verdict, fetched in one piece."""

    parents: torch.Tensor  # (A, C)
    ended: torch.Tensor  # (A, C) bool
    running: torch.Tensor  # (A, C) bool
    bound: list[bool]  # for each slot; see Verdict
    holds: list[bool]
    broken: list[bool]  # a score of the slot is NaN or plus infinity


class Decoding:
    """One call of a search: utterances that all have frames and equally long primers."""

    def __init__(
        self,
        search: "LabelSynchronousSearch",
        memory: Memory,
        bounds: list[Bounds],
        primers: torch.Tensor,
    ):
        """Set one hypothesis up for each utterance: its primer.

        Args:
            search: Whose scorers, weights and options apply.
            memory: The encoder output of B utterances.
            bounds: B of them.
            primers: (B, P) what the hypotheses start from.
        """
        device, n_utts = memory.x.device, len(memory)
        self.search = search
        self.bounds = bounds
        self.frames = memory.lengths
        self.primer_length = primers.size(1)
        self.rule = search.ending_rule(
            search.options, search.beam_size, search.eos, n_utts, device
        )
        wants_attention = self.rule.coverage is not None
        self.adapters = {
            name: adapter_for(
                name, s, search.n_vocab, search.eos, search.return_hs, wants_attention
            )
            for name, s in search.scorers.items()
        }
        self.states = {name: a.start(memory) for name, a in self.adapters.items()}
        dtype = torch.promote_types(memory.x.dtype, torch.float32)
        zeros = torch.zeros(n_utts, dtype=dtype, device=device)
        self.beam = Beam(
            yseq=primers,
            q=zeros,
            scores={name: zeros for name in search.scorers},
            spans=make_spans(list(range(n_utts)), [1] * n_utts),
        )
        self.ended = Ended()
        self.stuck = (
            Ended()
        )  # of utterances that ended without any label being possible
        self.recorder = TraceRecorder(self.rule.columns, n_utts)
        # utterances that reached their limit with nothing ended: the next position is
        # for the end label alone
        self.closing: set[int] = set()

    def run(self) -> tuple[list[list[Hypothesis]], list[Trace]]:
        """Decode; return the n-best list and the trace of each utterance."""
        length = 0
        while self.beam.spans:
            length += 1
            self._position(length)
        n_utts, nbest = len(self.bounds), self.search.options.nbest
        results = self.ended.nbest(n_utts, self.rule.returned(len(self.ended)), nbest)
        every = torch.ones(len(self.stuck), dtype=torch.bool)
        stuck = self.stuck.nbest(n_utts, every, nbest)
        traces = self.recorder.traces()
        return [mine or other for mine, other in zip(results, stuck)], traces

    def _position(self, length: int) -> None:
        """Do position N: score, prune, put away what has ended, reorder the rest."""
        beam = self.beam
        utts = [span.utt for span in beam.spans]
        grid = Grid(beam.spans, beam.q.device)
        short = grid.spread([length < self.bounds[b].shortest for b in utts])
        step = self._score(short)
        q = self._extensions(step, grid, short)
        verdict = self.rule.judge(q, grid, length, self._coverage(step, grid))
        self.recorder.add(utts, verdict.record)
        reading = read(verdict)
        if any(reading.broken):
            self._complain(step, length)

        if reading.ended.any():
            ended, index = _selection(verdict, reading, reading.ended, utts)
            score = verdict.score.flatten()[index]
            self.ended.add(_extend(beam, ended, q, step), score, self.closing)

        reasons = [
            self._why_stop(utt, slot, reading, length) for slot, utt in enumerate(utts)
        ]
        self._let_go(reasons, reading, step, utts)
        self._go_on([not r for r in reasons], verdict, reading, q, step, utts)

    def _score(self, short: torch.Tensor | None) -> Step:
        """Ask all scorers, the partial ones for what the pre-beam of the others leaves.

        Args:
            short: (n,) bool, where the end label is masked; None: nowhere.
        """
        search, beam = self.search, self.beam
        prefixes = Prefixes(beam.yseq, beam.spans, self.primer_length)
        by_scorer, states, hs, attention = {}, {}, None, None
        weighted = None
        wanted = None
        for name in [*search.full_scorers, *search.part_scorers]:
            if name in search.part_scorers and search.do_pre_beam and wanted is None:
                key = search.pre_beam_score_key
                by = weighted if key == "full" else by_scorer[key]
                wanted = self._pre_beam(by, short)
            adapter = self.adapters[name]
            result = adapter.step(self.states[name], prefixes, wanted)
            scores = result.scores.to(beam.q.dtype)
            final = adapter.final(result.state)
            if final is not None:
                scores = scores.clone()
                scores[:, search.eos] += final
            by_scorer[name], states[name] = scores, result.state
            hs = result.hs if result.hs is not None else hs
            attention = result.attention if attention is None else attention
            weighted = _add(weighted, scores, search.weights[name])
        if attention is not None and beam.attended is not None:
            attention = beam.attended + attention
        return Step(by_scorer, weighted, states, hs, attention)

    def _coverage(self, step: Step, grid: Grid) -> torch.Tensor | None:
        """Return the coverage term of the hypotheses, (n,), if the rule wants one."""
        if self.rule.coverage is None:
            return None
        if step.attended is None:
            kinds = {name: type(s).__name__ for name, s in self.search.scorers.items()}
            raise ValueError(
                "search_conf: coverage needs the attention of a decoder to the frames, "
                f"and none of the scorers {kinds} tells it: leave coverage out"
            )
        lengths = grid.repeat([self.frames[span.utt] for span in self.beam.spans])
        every = torch.arange(step.attended.size(1), device=lengths.device)
        frames = every < lengths.unsqueeze(1)
        return heuristics.coverage(step.attended, frames, self.rule.coverage)

    def _pre_beam(
        self, scores: torch.Tensor, short: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the labels that partial scorers are asked for: ESPnet's pre-beam.

        Args:
            scores: (n, V) what it chooses by.
            short: (n,) bool, where the end label is masked and so takes no place; None:
                nowhere.

        Returns:
            (n, S) labels.
        """
        if short is not None:
            scores = scores.clone()
            scores[:, self.search.eos].masked_fill_(short, -math.inf)
        return scores.topk(self.search.pre_beam_size, dim=1).indices

    def _extensions(
        self, step: Step, grid: Grid, short: torch.Tensor | None
    ) -> torch.Tensor:
        """Return q of all extensions, -inf for what may not be at this position.

        Args:
            step: What the scorers say.
            grid: Which rows belong to which slot.
            short: (n,) bool, where the output would be shorter than the minimum; None:
                nowhere.

        Returns:
            (n, V).
        """
        q = self.beam.q.unsqueeze(1) + step.weighted
        closing = grid.spread([s.utt in self.closing for s in self.beam.spans])
        barred = short
        may_end = self.rule.may_end(step.weighted)
        if may_end is not None:
            barred = ~may_end if barred is None else barred | ~may_end
        if barred is not None:
            barred = barred if closing is None else barred & ~closing
            q[:, self.search.eos].masked_fill_(barred, -math.inf)
        if closing is not None:
            others = torch.arange(q.size(1), device=q.device) != self.search.eos
            q.masked_fill_(closing.unsqueeze(1) & others, -math.inf)
        return q

    def _complain(self, step: Step, length: int) -> None:
        """Say which scorer returned what cannot be ranked."""
        for name, scores in step.by_scorer.items():
            for utt, start, stop in self.beam.spans:
                part = scores[start:stop]
                if part.isnan().any() or (part == math.inf).any():
                    raise ScorerError(
                        f"scorer '{name}' returned NaN or +inf at position {length} of "
                        f"utterance {utt} of the batch: look at its weights and its dtype"
                    )
        raise ScorerError(
            f"the weighted sum of {sorted(step.by_scorer)} is NaN or +inf at position "
            f"{length}: a score of -inf cannot have a negative weight"
        )

    def _why_stop(self, utt: int, slot: int, reading: Reading, length: int) -> str:
        """Return why an utterance needs no further position, "" if it does."""
        if utt in self.closing:
            return "forced"
        if reading.bound[slot]:
            return "bound"
        if not reading.running[slot].any():
            return "ended" if reading.holds[slot] else "forced"
        if length < self.bounds[utt].longest:
            return ""
        if reading.holds[slot]:
            return "limit"
        self.closing.add(utt)
        return ""

    def _let_go(
        self, reasons: list[str], reading: Reading, step: Step, utts: list[int]
    ) -> None:
        """Note why utterances stop, and end by force what else would return nothing."""
        stuck, spans = [], []
        for reason, utt, span, holds in zip(
            reasons, utts, self.beam.spans, reading.holds
        ):
            if not reason:
                continue
            self.recorder.stop(utt, reason)
            if not holds:
                stuck += range(span.start, span.stop)
                spans.append(span)
        if not stuck:
            return
        on_cpu = torch.tensor(stuck)
        parents = on_cpu.to(self.beam.q.device)
        spans = make_spans([s.utt for s in spans], [s.stop - s.start for s in spans])
        labels = torch.full_like(parents, self.search.eos)
        selection = Selection(parents, on_cpu, labels, spans)
        impossible = torch.full_like(step.weighted, -math.inf)
        beam = _extend(self.beam, selection, impossible, step)
        self.stuck.add(beam, beam.q, {s.utt for s in spans})

    def _go_on(
        self,
        going: list[bool],
        verdict: Verdict,
        reading: Reading,
        q: torch.Tensor,
        step: Step,
        utts: list[int],
    ) -> None:
        """Keep the running hypotheses of the utterances that go on."""
        running = reading.running & torch.tensor(going).unsqueeze(1)
        chosen, _ = _selection(verdict, reading, running, utts)
        if not all(going):
            slots = torch.tensor(
                [i for i, g in enumerate(going) if g], dtype=torch.long
            )
            self.rule.leave(slots.to(q.device))
        self.beam = _extend(self.beam, chosen, q, step)
        if chosen.spans:
            self.states = {
                name: a.select(step.states[name], chosen)
                for name, a in self.adapters.items()
            }


def _add(total: torch.Tensor | None, scores: torch.Tensor, weight: float):
    """Add weighted (n, V) scores to a total, None standing for zeros."""
    if total is None:
        return scores if weight == 1.0 else weight * scores
    return total.add(scores, alpha=weight)


def read(verdict: Verdict) -> Reading:
    """Fetch a verdict from the device: the one point where a position waits for it."""
    values = verdict.candidates.values
    broken = ~(values.amax(dim=1) < math.inf)  # NaN passes through amax
    flags = torch.stack([verdict.bound, verdict.holds, broken], dim=1)
    running = verdict.kept & ~verdict.ended
    every = [verdict.candidates.parents, verdict.ended, running, flags]
    fetched = torch.cat(every, dim=1).cpu()
    n = values.size(1)
    parents, ended, running = fetched[:, : 3 * n].split(n, dim=1)
    bound, holds, broken = fetched[:, 3 * n :].bool().T.tolist()
    return Reading(parents, ended.bool(), running.bool(), bound, holds, broken)


def _selection(
    verdict: Verdict, reading: Reading, mask: torch.Tensor, utts: list[int]
) -> tuple[Selection, torch.Tensor]:
    """Return the candidates under a mask, and where they are.

    Args:
        verdict: On the device.
        reading: What the CPU knows of it.
        mask: (A, C) bool, on the CPU.
        utts: The utterance of each of the A slots.

    Returns:
        The m selected ones, and their (m,) indices into the flattened candidates.
    """
    counts = mask.sum(dim=1).tolist()
    held = [(utt, count) for utt, count in zip(utts, counts) if count]
    spans = make_spans([utt for utt, _ in held], [count for _, count in held])
    index = mask.flatten().nonzero().squeeze(1)
    parents_on_cpu = reading.parents.flatten()[index]
    index = index.to(verdict.candidates.labels.device, non_blocking=True)
    parents = verdict.candidates.parents.flatten()[index]
    labels = verdict.candidates.labels.flatten()[index]
    return Selection(parents, parents_on_cpu, labels, spans), index


def _extend(beam: Beam, chosen: Selection, q: torch.Tensor, step: Step) -> Beam:
    return beam.extend(
        chosen.parents,
        chosen.labels,
        chosen.spans,
        q,
        step.by_scorer,
        step.hs,
        step.attended,
    )
