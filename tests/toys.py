"""Toy scorers: tables and random distributions in the place of networks.

Every toy says what it gives in plain floats: `log_probs(utterance, prefix)` and
`final(utterance, prefix)`. The reference reads these two; a search reaches the same numbers
through ESPnet's interfaces. The state of a toy is what it has been asked so far,
(utterance, prefix), and each call checks it: a state handed to the wrong hypothesis is an
error at once.

The last label of the vocabulary is the end label (and the start label), as in ESPnet.
`start` is the number of labels in the primer.
"""

import math
import random

import torch

from espnet_lenbias.espnet_compat import (
    BatchPartialScorerInterface,
    BatchScorerInterface,
    PartialScorerInterface,
    ScorerInterface,
)


def logs(*probabilities):
    """Natural logarithms, -inf for 0."""
    return [math.log(p) if p > 0 else -math.inf for p in probabilities]


def encoder_output(utterance, frames, dim=2):
    """(T, D), zeros but for the utterance's id in its first number."""
    x = torch.zeros(frames, dim)
    if frames:
        x[0, 0] = utterance
    return x


def padded(xs, frames=None, garbage=1e4):
    """Encoder outputs (T_b, D) -> (B, T, D) with garbage in the padding, lengths (B,)."""
    lengths = torch.tensor([len(x) for x in xs])
    frames = max(lengths.max().item(), frames or 0)
    batch = torch.full((len(xs), frames, xs[0].shape[1]), garbage)
    for row, x in zip(batch, xs):
        row[: len(x)] = x
    return batch, lengths


def build(search, scorers, weights, beam, vocab, primer=None, **conf):
    """A search over toys; the end label is the last of the vocabulary."""
    end = vocab - 1
    return search(
        scorers, weights, beam, vocab, sos=end, eos=end, hyp_primer=primer, **conf
    )


def labels(hypothesis, start=1):
    """The labels behind the primer, the end label included."""
    return tuple(hypothesis.yseq.tolist()[start:])


class Toy:
    """What all toys share: ESPnet's calls in terms of `log_probs` and `final`."""

    def __init__(self, vocab, start=1):
        self.vocab = vocab
        self.start = start
        self.rows = []  # hypotheses in each batched call

    def log_probs(self, utterance, prefix):
        raise NotImplementedError

    def final(self, utterance, prefix):
        return 0.0

    def position(self, prefix):
        """N of the label that comes next."""
        return len(prefix) - self.start + 1

    def utterance(self, x):
        return round(x[0, 0].item())

    def init_state(self, x):
        return (self.utterance(x), ())

    def score(self, y, state, x):
        asked = (self.utterance(x), tuple(y.tolist()))
        self.check(state, asked, asked[1][:-1])
        return torch.tensor(self.log_probs(*asked), dtype=x.dtype), asked

    def final_score(self, state):
        return self.final(*state)

    def check(self, state, asked, seen):
        utterance, prefix = asked
        expected = (utterance, () if len(prefix) == self.start else seen)
        assert state == expected, f"state of {state} handed to {asked}"


class Plain(ScorerInterface):
    """A scorer that takes one hypothesis at a time."""


class Batched(BatchScorerInterface):
    """A scorer that takes all hypotheses at once."""

    def batch_score(self, ys, states, xs):
        self.rows.append(len(ys))
        scores, states = zip(
            *(self.score(*one) for one in zip(ys, states, xs, strict=True))
        )
        return torch.stack(scores), list(states)


class Table(Toy):
    """Log-probs from a dict or from a list.

    A dict is keyed by the labels behind the primer, with `otherwise` for the rest; a list
    goes by position, its last row standing for all that follow. `finals` gives the final
    scores, keyed in the same way.
    """

    def __init__(self, table, otherwise=None, finals=None, start=1):
        rows = list(table.values()) if isinstance(table, dict) else table
        super().__init__(len(rows[0]), start)
        self.table, self.otherwise, self.finals = table, otherwise, finals or {}

    def log_probs(self, utterance, prefix):
        if isinstance(self.table, dict):
            return self.table.get(prefix[self.start :], self.otherwise)
        return self.table[min(self.position(prefix), len(self.table)) - 1]

    def final(self, utterance, prefix):
        return self.finals.get(prefix[self.start :], 0.0)


class TableScorer(Table, Batched):
    pass


class PlainTableScorer(Table, Plain):
    pass


class Random(Toy):
    """Normalised log-probs that depend on seed, utterance and prefix, and on nothing else.

    The logit of the end label is raised by `end_bias` and by `end_slope` per position.
    """

    def __init__(self, seed, vocab, end_bias=0.0, end_slope=0.0, spread=1.5, start=1):
        super().__init__(vocab, start)
        self.seed, self.spread = seed, spread
        self.end_bias, self.end_slope = end_bias, end_slope
        self.known = {}

    def log_probs(self, utterance, prefix):
        key = (self.seed, utterance, prefix)
        if key not in self.known:
            draw = random.Random(repr(key))
            logits = [draw.gauss(0.0, self.spread) for _ in range(self.vocab)]
            logits[-1] += self.end_bias + self.end_slope * self.position(prefix)
            total = math.log(sum(math.exp(z) for z in logits))
            self.known[key] = [z - total for z in logits]
        return self.known[key]


class RandomScorer(Random, Batched):
    pass


class PlainRandomScorer(Random, Plain):
    pass


class RandomWithFinal(Random):
    """As a word LM that has something to add when a hypothesis ends."""

    def final(self, utterance, prefix):
        draw = random.Random(repr((self.seed, utterance, prefix, "final")))
        return draw.uniform(-2.0, 0.0)


class FinalScorer(RandomWithFinal, Batched):
    pass


class PlainFinalScorer(RandomWithFinal, Plain):
    pass


class AllFrames(Random):
    """Depends on the sum of all frames it is shown: padding that leaks in shows."""

    def utterance(self, x):
        return round(x.sum().item())


class AllFramesScorer(AllFrames, Batched):
    pass


class PlainAllFramesScorer(AllFrames, Plain):
    pass


class BufferScorer(RandomScorer):
    """Returns its one buffer at each call, which the next call overwrites."""

    def batch_score(self, ys, states, xs):
        scores, states = super().batch_score(ys, states, xs)
        if not hasattr(self, "buffer"):
            self.buffer = torch.empty(1000, self.vocab)
        self.buffer[: len(scores)] = scores
        return self.buffer[: len(scores)], states


class NanScorer(Toy, Batched):
    """Uniform, but not a number, or `value`, for the first label at one position."""

    def __init__(self, vocab, position, value=math.nan):
        super().__init__(vocab)
        self.nan_at, self.value = position, value

    def log_probs(self, utterance, prefix):
        row = logs(*[1 / self.vocab] * self.vocab)
        if self.position(prefix) == self.nan_at:
            row[0] = self.value
        return row


class OneLabelScorer(Toy, Batched):
    """Probability 1 for one label at each position; `None` leaves no label at all."""

    def __init__(self, vocab, path):
        super().__init__(vocab)
        self.path = path

    def log_probs(self, utterance, prefix):
        label = self.path[min(self.position(prefix), len(self.path)) - 1]
        return [0.0 if v == label else -math.inf for v in range(self.vocab)]


class RandomPartial(Random):
    """Random scores for what is asked for; a state belongs to a prefix with its new label.

    As with ESPnet's CTC scorer, what `select_state` is handed depends on the call that made
    it.
    """

    def score_partial(self, y, next_tokens, state, x):
        asked = (self.utterance(x), tuple(y.tolist()))
        self.check(state, asked, asked[1])
        scores = torch.tensor(self.log_probs(*asked), dtype=x.dtype)[next_tokens]
        return scores, [
            (asked[0], (*asked[1], label)) for label in next_tokens.tolist()
        ]

    def select_state(self, state, i, new_id=None):
        return state[i]

    def final_score(self, state):
        return 0.0


class PartialScorer(RandomPartial, PartialScorerInterface):
    pass


class BatchPartialScorer(RandomPartial, BatchPartialScorerInterface):
    def batch_score_partial(self, ys, next_tokens, states, xs):
        """Scores (n, V), 0 where not asked for; states, to be selected by label."""
        scores, asked = torch.zeros(len(ys), self.vocab, dtype=xs.dtype), []
        for i, (y, state, x) in enumerate(zip(ys, states, xs, strict=True)):
            ids = torch.arange(self.vocab) if next_tokens is None else next_tokens[i]
            scores[i, ids], _ = self.score_partial(y, ids, state, x)
            asked.append((self.utterance(x), tuple(y.tolist())))
        return scores, tuple(asked)

    def select_state(self, state, i, new_id=None):
        if isinstance(state, list):
            return state[i]
        utterance, prefix = state[i]
        return utterance, (*prefix, int(new_id))
