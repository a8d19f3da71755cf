"""Algorithm 1 of the paper and simple beam search, slow and obvious.

Floats and lists, one hypothesis at a time, written from the paper alone. A scorer is
anything with `log_probs(utterance, prefix)` and `final(utterance, prefix)`.
"""

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

IMPOSSIBLE = -math.inf


@dataclass
class Hyp:
    prefix: tuple  # primer and labels
    q: float  # accumulated weighted score, eq. 1
    scores: dict  # accumulated log-prob of each scorer
    N: int = 0  # number of labels, the end label included
    ended: bool = False
    forced: bool = False
    score: float = IMPOSSIBLE  # final score, or the rank of simple search


@dataclass
class Model:
    scorers: dict
    weights: dict
    vocab: int
    utterance: int = 0
    primer: tuple = None
    pre_beam: tuple = None  # key of a scorer (or "full") and number of labels
    label_smoothing: float = 0.0  # taken out of what "decoder" says

    @property
    def end(self):
        return self.vocab - 1

    def start(self):
        primer = (self.end,) if self.primer is None else tuple(self.primer)
        return Hyp(primer, 0.0, dict.fromkeys(self.scorers, 0.0))

    def log_probs(self, prefix):
        """What each scorer says of the labels that may follow."""
        step = {
            k: list(s.log_probs(self.utterance, prefix))
            for k, s in self.scorers.items()
        }
        if self.label_smoothing:
            step["decoder"] = rectified(step["decoder"], self.label_smoothing)
        return step

    def weighted(self, of_scorer):
        return sum(self.weights[k] * value for k, value in of_scorer.items())


@dataclass
class Result:
    hyps: list = field(default_factory=list)  # best first
    stopped: str = None
    steps: int = 0
    p_end: list = field(default_factory=list)
    log_not_ended: list = field(default_factory=list)
    kept: list = field(default_factory=list)
    running: list = field(default_factory=list)
    best_final: list = field(default_factory=list)
    gap: float = math.inf  # how near a decision came to a tie

    def columns(self):
        """What has a value for each position."""
        named = (self.p_end, self.log_not_ended, self.kept, self.running)
        return (*named, self.best_final)

    def decide(self, a, b):
        """a > b, with a note of how near it was."""
        if abs(a - b) < self.gap:
            self.gap = abs(a - b)
        return a > b

    def best(self, hyps, size, key):
        """The `size` best, best first."""
        hyps = sorted(hyps, key=key, reverse=True)
        if len(hyps) > size > 0:
            self.decide(key(hyps[size - 1]), key(hyps[size]))
        return hyps[:size]

    def finish(self, hyps, nbest):
        hyps = sorted(hyps, key=lambda h: h.score, reverse=True)
        for one, two in pairwise(hyps[: None if nbest is None else nbest + 1]):
            self.decide(one.score, two.score)
        self.hyps = hyps[:nbest]
        return self


def log_sum(values):
    top = max(values, default=IMPOSSIBLE)
    if top == IMPOSSIBLE:
        return IMPOSSIBLE
    return top + math.log(sum(math.exp(v - top) for v in values))


def rectified(row, label_smoothing):
    """Without the mass that smoothing gives to all labels but one; nothing is quite 0."""
    mass = label_smoothing / (len(row) - 1)
    p = [math.exp(x) for x in row]
    left = [max(x - mass, 1e-30 * x) for x in p]
    total = sum(left)
    return [math.log(x / total) if x > 0 else IMPOSSIBLE for x in left]


def length_bounds(T, maxlenratio, minlenratio):
    if maxlenratio == 0:
        limit = T
    elif maxlenratio < 0:
        limit = -int(maxlenratio)
    else:
        limit = max(1, int(maxlenratio * T))
    # of the text, the end label not counted
    minimum = -int(minlenratio) if minlenratio < 0 else int(minlenratio * T)
    return limit, minimum


def no_frames(model, result):
    start = model.start()
    result.stopped = "empty"
    return result.finish(
        [Hyp((*start.prefix, model.end), 0.0, start.scores, 1, True, True, 0.0)], 1
    )


def one_too_many(labels, repeat_limit):
    """Whether the labels end in more copies of a cycle than the limit allows."""
    if repeat_limit is None:
        return False
    times, longest = repeat_limit
    return any(
        len(labels) >= (times + 1) * p
        and labels[-(times + 1) * p :] == labels[-p:] * (times + 1)
        for p in range(1, longest + 1)
    )


def extend(
    model,
    hyp,
    result,
    end_allowed=True,
    end_only=False,
    eos_threshold=None,
    repeat_limit=None,
):
    """All hypotheses that are `hyp` and one more label, without the impossible ones."""
    text = hyp.prefix[len(model.start().prefix) :]
    masked = {v for v in range(model.end) if one_too_many((*text, v), repeat_limit)}
    step = model.log_probs(hyp.prefix)
    candidates = pre_beam(model, step, result, end_allowed, masked)
    candidates = [v for v in candidates if v not in masked]
    score = {
        v: model.weighted({k: row[v] for k, row in step.items()}) for v in candidates
    }
    if eos_threshold is not None and not end_only:
        best_other = max(
            (score[v] for v in candidates if v != model.end), default=IMPOSSIBLE
        )
        if not result.decide(score[model.end], eos_threshold * best_other):
            end_allowed = False
    if end_only:
        candidates = [model.end]
    elif not end_allowed:
        candidates = [v for v in candidates if v != model.end]

    extended = []
    for v in candidates:
        new = {k: row[v] for k, row in step.items()}
        if v == model.end:
            new = {
                k: s + model.scorers[k].final(model.utterance, hyp.prefix)
                for k, s in new.items()
            }
        q = hyp.q + model.weighted(new)
        if q > IMPOSSIBLE:
            scores = {k: hyp.scores[k] + s for k, s in new.items()}
            extended.append(
                Hyp((*hyp.prefix, v), q, scores, hyp.N + 1, v == model.end, end_only)
            )
    return extended


def pre_beam(model, step, result, end_allowed, masked):
    """The labels that partial scorers are asked for, and the end label.

    Below the minimum length the end label takes none of the places, and neither does a
    label that is one repetition too many.
    """
    if model.pre_beam is None or model.pre_beam[1] >= model.vocab:
        return list(range(model.vocab))
    key, size = model.pre_beam
    if key == "full":
        full = {k for k, s in model.scorers.items() if not hasattr(s, "score_partial")}
        rank = [
            model.weighted({k: step[k][v] for k in full}) for v in range(model.vocab)
        ]
    else:
        rank = list(step[key])
    if not end_allowed:
        rank[model.end] = IMPOSSIBLE
    for v in masked:
        rank[v] = IMPOSSIBLE
    return sorted({*result.best(range(model.vocab), size, rank.__getitem__), model.end})


def end_by_force(model, running):
    """Where no label is possible at all; the end label is scored all the same."""

    def of_end(name, prefix):
        score = model.log_probs(prefix)[name][model.end]
        return score + model.scorers[name].final(model.utterance, prefix)

    return [
        replace(
            h,
            prefix=(*h.prefix, model.end),
            q=IMPOSSIBLE,
            scores={k: s + of_end(k, h.prefix) for k, s in h.scores.items()},
            score=IMPOSSIBLE,
            N=h.N + 1,
            ended=True,
            forced=True,
        )
        for h in running
    ]


def explicit_length(
    model,
    T,
    beam,
    maxlenratio=0.0,
    minlenratio=0.0,
    score_threshold=None,
    nbest=None,
    exact_nbest=False,
    early_stop=True,
    stop_margin=None,
    stop_length=None,
    repeat_limit=None,
):
    """Algorithm 1."""
    result = Result()
    limit, minimum = length_bounds(T, maxlenratio, minlenratio)
    if T == 0:
        return no_frames(model, result)
    N, B, k_best, log_not_ended = 0, [model.start()], [], 0.0
    while result.stopped is None:
        N += 1
        forced = N > limit
        extended = [
            new
            for h in B
            for new in extend(
                model, h, result, N > minimum, forced, repeat_limit=repeat_limit
            )
        ]
        if not extended and not k_best:
            result.stopped, result.steps, k_best = "forced", N, end_by_force(model, B)
            nothing_kept = [0.0, log_not_ended, 0, 0, IMPOSSIBLE]
            for column, value in zip(result.columns(), nothing_kept, strict=True):
                column.append(value)
            break

        # Beam pruning: first by score, then by number.
        if score_threshold is not None:
            best = max((h.q for h in extended), default=IMPOSSIBLE)
            extended = [
                h for h in extended if not result.decide(best - score_threshold, h.q)
            ]
        kept = result.best(extended, beam, key=lambda h: h.q)
        B_end = [h for h in kept if h.ended]
        B = [h for h in kept if not h.ended]

        log_p_sum = log_sum([h.q for h in kept])
        log_p_sum_end = log_sum([h.q for h in B_end])
        p_end = math.exp(log_p_sum_end - log_p_sum) if kept else 0.0
        for h in B_end:
            h.score = h.q - log_p_sum + log_not_ended
        k_best = sorted(k_best + B_end, key=lambda h: h.score, reverse=True)

        result.steps = N
        best_final = k_best[0].score if k_best else IMPOSSIBLE
        row = [p_end, log_not_ended, len(kept), len(B), best_final]
        for column, value in zip(result.columns(), row, strict=True):
            column.append(value)

        # 1 - p_sum_end / p_sum, written so that no digits are lost where p_end is near 1
        log_not_ended += log_sum([h.q for h in B]) - log_p_sum if B else IMPOSSIBLE
        place = nbest if exact_nbest else 1
        to_beat = k_best[place - 1].score if len(k_best) >= place else None
        if forced:
            result.stopped = "forced"
        elif (
            early_stop
            and to_beat is not None
            and not result.decide(log_not_ended, to_beat)
        ):
            result.stopped = "bound"
        elif not B:
            result.stopped = "ended"
        elif k_best and gives_up(result, N, k_best[0], B, stop_margin, stop_length):
            result.stopped = "early"
        elif N >= limit and k_best:
            result.stopped = "limit"
    return result.finish(k_best, nbest)


def gives_up(result, N, winner, running, stop_margin, stop_length):
    """The two earlier stops, neither of which is safe."""
    if stop_margin is not None:
        best = max(h.q for h in running)
        if not result.decide(best, winner.q - stop_margin):
            return True
    return stop_length is not None and N > stop_length * winner.N + 20


def simple(
    model,
    T,
    beam,
    maxlenratio=0.0,
    minlenratio=0.0,
    nbest=None,
    length_norm=False,
    eos_threshold=None,
    length_reward=0.0,
    keep_ended="joint",
    length_penalty=None,
    patience=None,
    repeat_limit=None,
):
    """Ended hypotheses keep their rank and compete with all, or with each other only.

    With patience they are taken as they come (Kasai et al. 2022).
    """
    result = Result()
    limit, minimum = length_bounds(T, maxlenratio, minlenratio)
    if T == 0:
        return no_frames(model, result)

    def rank(h):
        score = h.q + length_reward * h.N
        if length_penalty is not None:
            return score / h.N**length_penalty
        return score / h.N if length_norm else score

    def take_as_they_come(extended):
        """Whether as many have ended as patience waits for."""
        n_running = 0
        ranked = sorted(extended, key=rank, reverse=True)
        for one, two in pairwise(ranked):
            result.decide(rank(one), rank(two))
        for h in ranked:
            if n_running == beam:
                break
            n_running += not h.ended
            if h.ended:
                ended.append(h)
            if len(ended) == max(1, round(patience * beam)):
                return True
        return False

    N, running, ended = 0, [model.start()], []
    while result.stopped is None:
        N += 1
        forced = N > limit
        extended = [
            new
            for h in running
            for new in extend(
                model, h, result, N > minimum, forced, eos_threshold, repeat_limit
            )
        ]
        result.steps = N
        if not extended and not ended:
            result.stopped, ended = "forced", end_by_force(model, running)
            result.running.append(0)
            break

        if keep_ended == "joint":
            places = result.best(ended + extended, beam, rank)
            running = [h for h in places if not h.ended]
            ended = [h for h in places if h.ended]
        else:
            running = result.best([h for h in extended if not h.ended], beam, rank)
            if patience is None:
                ended = result.best(
                    ended + [h for h in extended if h.ended], beam, rank
                )
            elif take_as_they_come(extended) and not forced and running:
                result.stopped = "early"
        result.running.append(len(running))

        if forced:
            result.stopped = "forced"
        elif result.stopped:
            pass
        elif not running:
            result.stopped = "ended"
        elif N >= limit and ended:
            result.stopped = "limit"
    for h in ended:
        h.score = rank(h) if h.q > IMPOSSIBLE else IMPOSSIBLE
    return result.finish(ended, nbest)
