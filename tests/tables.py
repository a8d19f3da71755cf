"""Tables of log-probs small enough to search by hand.

Labels: a, b and the end label $.
"""

import math
from types import SimpleNamespace

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from tests.toys import TableScorer, build, encoder_output, labels, logs

A, B, END = 0, 1, 2
MOSTLY_END = logs(0.15, 0.05, 0.8)

# Products after two labels: aa .06, ab .12, a$ .42, ba .05, bb .03, b$ .02.
SHORT = {(): logs(0.6, 0.1, 0.3), (A,): logs(0.1, 0.2, 0.7), (B,): logs(0.5, 0.3, 0.2)}

# The right output is aba$: .6 * .7 * .7 * .7 = .2058. The empty one has more, .25.
BIASED = {
    (): logs(0.6, 0.15, 0.25),
    (A,): logs(0.2, 0.7, 0.1),
    (A, B): logs(0.7, 0.2, 0.1),
    (A, B, A): logs(0.2, 0.1, 0.7),
}

# No end within two labels.
LONG = {
    (): logs(0.7, 0.3, 0.0),
    (A,): logs(0.6, 0.4, 0.0),
    (B,): logs(0.6, 0.4, 0.0),
    (A, A): logs(0.8, 0.1, 0.1),
    (A, B): logs(0.3, 0.2, 0.5),
}

# The same with a label 0 that has no probability, as CTC's blank: a is 1, b is 2.
BIASED_WITH_BLANK = {
    tuple(label + 1 for label in prefix): [-math.inf, *row]
    for prefix, row in BIASED.items()
}
MOSTLY_END_WITH_BLANK = [-math.inf, *MOSTLY_END]


def decode(
    kind, table, beam, frames=8, maxlenratio=0.0, minlenratio=0.0, finals=None, **conf
):
    """Hypotheses and trace of one utterance."""
    scorer = TableScorer(table, otherwise=MOSTLY_END, finals=finals)
    search = build(kind, {"decoder": scorer}, {"decoder": 1.0}, beam, vocab=3, **conf)
    hyps = search(
        encoder_output(0, frames), maxlenratio=maxlenratio, minlenratio=minlenratio
    )
    return hyps, search.trace[0]


def explicit(*args, **kwargs):
    return decode(ExplicitLengthBeamSearch, *args, **kwargs)


def simple(*args, **kwargs):
    return decode(SimpleBeamSearch, *args, **kwargs)


def outputs(hyps):
    return [labels(h) for h in hyps]


def scores(hyps):
    return [h.score for h in hyps]


def near(values):
    return pytest.approx(values, abs=1e-5)


class TableModel:
    """An inference object of the biased table, which hears some frames of utterance 0."""

    def __init__(self, kind, frames=5):
        self.frames = frames
        scorers = {
            "decoder": TableScorer(BIASED_WITH_BLANK, otherwise=MOSTLY_END_WITH_BLANK)
        }
        self.search = kind.__name__
        self.beam_search = build(kind, scorers, {"decoder": 1.0}, 2, vocab=4)
        self.converter = SimpleNamespace(ids2tokens=lambda ids: ["_ab"[i] for i in ids])
        self.tokenizer = SimpleNamespace(tokens2text=" ".join)

    def __call__(self, speech):
        hyps = self.beam_search(encoder_output(0, self.frames))
        ids = [hyp.yseq[1:-1].tolist() for hyp in hyps]
        tokens = [self.converter.ids2tokens(i) for i in ids]
        return [(" ".join(t), t, i, h) for t, i, h in zip(tokens, ids, hyps)]
