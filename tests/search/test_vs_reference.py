"""Both searches against the slow reference on random toy models: same labels, same scores.

Where two scores that the reference had to compare are within 1e-6, either order is right:
then another case is drawn.
"""

import itertools
import random

import pytest

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.options.repeat_limit import RepeatLimit
from tests import reference, toys

TIE = 1e-6
BEYOND = -60.0  # float32 and 1 - p_end have too few digits for the differences there
ATTEMPTS = 4
WITHOUT_FINAL = [toys.RandomScorer, toys.PlainRandomScorer]
WITH_FINAL = [toys.FinalScorer, toys.PlainFinalScorer]
PARTIAL = [toys.PartialScorer, toys.BatchPartialScorer]


def close(value):
    return pytest.approx(value, abs=1e-4)


class Case:
    """A random toy model, its sizes and its length ratios."""

    def __init__(self, seed, pre_beam=False):
        self.draw = draw = random.Random(seed)
        self.vocab = draw.randint(2, 8)
        self.frames = draw.randint(1, 9)
        self.beam = draw.choice([1, 2, 3, 4, 5, 8, 13, 32, 64])
        self.maxlenratio = draw.choice([0.0, 0.0, 0.3, 1.0, 1.5, -1, -2, -5, -12])
        self.minlenratio = draw.choice([0.0, 0.0, 0.0, 0.2, 0.5, -1, -2, -4])
        if self.vocab > 5:
            self.beam = min(self.beam, 32)
        self.primer = draw.choice(
            [None, None, [self.vocab - 1, 0], [0, self.vocab - 1, 1]]
        )
        self.weights = {
            "decoder": 1.0,
            "lm": draw.uniform(0.1, 1.2),
            "third": draw.uniform(0.1, 0.5),
        }
        # What a final score does to the choice of the pre-beam is not compared here.
        kinds = WITHOUT_FINAL if pre_beam else WITHOUT_FINAL + WITH_FINAL
        names = list(self.weights)[: draw.choice([1, 1, 2, 3])]
        self.scorers = {name: self.scorer(kinds) for name in names}
        self.pre_beam = self.add_partial() if pre_beam else None

    def scorer(self, kinds):
        shape = {
            "end_bias": self.draw.choice([-3.0, -1.0, 0.0, 1.0]),
            "end_slope": self.draw.choice([0.0, 0.5]),
        }
        return self.draw.choice(kinds)(
            self.draw.random(), self.vocab, start=len(self.primer or [0]), **shape
        )

    def add_partial(self):
        self.scorers["ctc"] = self.scorer(PARTIAL)
        self.weights["ctc"] = self.draw.uniform(0.2, 1.0)
        ratio = self.draw.choice([1.0, 1.5, 0.6 if self.beam > 1 else 2.0])
        return self.draw.choice([None, "decoder", "full"]), ratio

    def model(self, utterance=0, label_smoothing=0.0):
        size = None
        if self.pre_beam and self.pre_beam[0] is not None:
            size = (self.pre_beam[0], int(self.pre_beam[1] * self.beam))
        return reference.Model(
            self.scorers,
            self.weights,
            self.vocab,
            utterance,
            self.primer,
            size,
            label_smoothing,
        )

    def search(self, kind, **options):
        if options["repeat_limit"]:
            options["repeat_limit"] = RepeatLimit(*options["repeat_limit"])
        if self.pre_beam:
            options |= dict(
                zip(["pre_beam_score_key", "pre_beam_ratio"], self.pre_beam)
            )
        return toys.build(
            kind,
            self.scorers,
            self.weights,
            self.beam,
            self.vocab,
            self.primer,
            **options,
        )

    @property
    def ratios(self):
        return {"maxlenratio": self.maxlenratio, "minlenratio": self.minlenratio}

    def both(self, kind):
        """Options, the search and the reference of it."""
        if kind == "explicit":
            options, slow = self.explicit_options(), reference.explicit_length
            return options, self.search(ExplicitLengthBeamSearch, **options), slow
        options, slow = self.simple_options(), reference.simple
        return options, self.search(SimpleBeamSearch, **options), slow

    def expected(self, slow, utterance, frames, options):
        """What the reference finds."""
        options = dict(options)
        model = self.model(utterance, options.pop("label_smoothing"))
        return slow(model, frames, self.beam, **options, **self.ratios)

    def label_smoothing(self):
        return self.draw.choice([0.0, 0.0, 0.1, 0.3])

    def explicit_options(self):
        draw, options = self.draw, {}
        options["score_threshold"] = draw.choice([None, None, 0.5, 2.0, 6.0])
        options["nbest"] = draw.choice([None, 1, 2, 5])
        options["exact_nbest"] = options["nbest"] is not None and draw.random() < 0.5
        if not options["exact_nbest"]:
            options["stop_margin"] = draw.choice([None, None, None, 0.0, 1.0])
        options["label_smoothing"] = self.label_smoothing()
        return options | self.limit_of_repeats()

    def limit_of_repeats(self):
        """None, or times and labels."""
        return {
            "repeat_limit": self.draw.choice([None, (1, 1), (1, 3), (2, 2), (1, 9)])
        }

    def simple_options(self):
        draw, options = self.draw, {}
        options["nbest"] = draw.choice([None, None, 1, 3])
        options["length_norm"] = draw.random() < 0.5
        options["length_reward"] = draw.choice([0.0, 0.0, 0.3, 1.0])
        options["keep_ended"] = draw.choice(["joint", "separate"])
        # What a final score does to the threshold on the end label is not compared here.
        if not any(type(s) in WITH_FINAL for s in self.scorers.values()):
            options["eos_threshold"] = draw.choice([None, 0.7, 1.0, 1.5])
        if not options["length_norm"]:
            options["length_penalty"] = draw.choice([None, -0.5, 0.6, 1.0, 2.0])
        if options["keep_ended"] == "separate":
            options["patience"] = draw.choice([None, 0.3, 1.0, 1.5, 4])
        options["label_smoothing"] = self.label_smoothing()
        return options | self.limit_of_repeats()


def assert_same_hypotheses(hyps, expected):
    assert [tuple(h.yseq.tolist()) for h in hyps] == [h.prefix for h in expected]
    assert [h.original_score for h in hyps] == close([h.q for h in expected])
    assert [h.score for h in hyps] == close([h.score for h in expected])
    assert [h.forced for h in hyps] == [h.forced for h in expected]
    for h, e in zip(hyps, expected):
        assert {k: float(v) for k, v in h.scores.items()} == close(e.scores)


def is_clear(hypothesis):
    """Not so where smoothing alone explains a label, by -69."""
    return hypothesis.forced or hypothesis.q >= BEYOND


def compare(hyps, trace, expected):
    """Compare what has one right answer; return whether there is anything."""
    clear = list(itertools.takewhile(is_clear, expected.hyps))
    if expected.gap < TIE or not clear:
        return False
    assert_same_hypotheses(hyps[: len(clear)], clear)
    if len(clear) == len(expected.hyps):
        assert len(hyps) == len(clear)
        assert_same_trace(trace, expected)
    return True


def assert_same_trace(trace, expected):
    assert (trace.steps, trace.stopped) == (expected.steps, expected.stopped)
    assert list(trace.running) == expected.running
    if expected.p_end:
        assert list(trace.kept) == expected.kept
        assert list(trace.p_end) == close(expected.p_end)
        assert list(trace.log_not_ended) == close(expected.log_not_ended)
        assert list(trace.best_final) == close(expected.best_final)


def compare_one(kind, case):
    options, search, slow = case.both(kind)
    hyps = search(toys.encoder_output(7, case.frames), **case.ratios)
    expected = case.expected(slow, 7, case.frames, options)
    return compare(hyps, search.trace[0], expected)


def compare_batch(kind, case):
    frames = [case.draw.randint(0, 8) for _ in range(case.draw.randint(2, 5))]
    xs = [toys.encoder_output(i, T) for i, T in enumerate(frames)]
    x, lengths = toys.padded(xs, frames=1)
    options, search, slow = case.both(kind)
    found = search(x, x_lengths=lengths, **case.ratios)
    assert len(found) == len(search.trace) == len(frames)
    every = [case.expected(slow, i, T, options) for i, T in enumerate(frames)]
    compared = [compare(*one) for one in zip(found, search.trace, every)]
    return compared.count(False) <= 1


def draw_until_clear(compare_it, kind, seed, pre_beam=False):
    cases = (Case(seed + i * 10_000, pre_beam) for i in range(ATTEMPTS))
    assert any(compare_it(kind, case) for case in cases), "ties in all cases"


@pytest.mark.parametrize("seed", range(300))
def test_explicit_length(seed):
    draw_until_clear(compare_one, "explicit", seed)


@pytest.mark.parametrize("seed", range(1000, 1300))
def test_simple(seed):
    draw_until_clear(compare_one, "simple", seed)


@pytest.mark.parametrize("seed", range(2000, 2060))
def test_explicit_length_with_partial_scorers(seed):
    draw_until_clear(compare_one, "explicit", seed, pre_beam=True)


@pytest.mark.parametrize("seed", range(3000, 3060))
def test_simple_with_partial_scorers(seed):
    draw_until_clear(compare_one, "simple", seed, pre_beam=True)


@pytest.mark.parametrize("seed", range(4000, 4040))
@pytest.mark.parametrize("kind", ["explicit", "simple"])
def test_batch_of_utterances(seed, kind):
    draw_until_clear(compare_batch, kind, seed, pre_beam=seed % 3 == 0)
