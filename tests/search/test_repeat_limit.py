"""The limit of repetitions: by hand, and against copies of cycles counted the long way.

Labels: a, b and the end label $. The searches with it are compared with the reference in
test_vs_reference.py, and those of streaming in test_online.py.
"""

import math
import random

import pytest
import torch

from espnet_lenbias import ExplicitLengthBeamSearch, SimpleBeamSearch
from espnet_lenbias.options.repeat_limit import RepeatLimit
from espnet_lenbias.scorers.base import Selection
from espnet_lenbias.search.beam import first_beam
from tests.reference import one_too_many
from tests.tables import near
from tests.toys import TableScorer, build, encoder_output, labels, logs

A, B, END = 0, 1, 2
MOSTLY_A = [logs(0.7, 0.1, 0.2)]


def decode(kind, table, beam, limit, primer=None, maxlenratio=-12, **conf):
    """Hypotheses and trace of one utterance."""
    scorer = TableScorer(
        table, otherwise=logs(0.45, 0.45, 0.1), start=len(primer or [0])
    )
    search = build(
        kind,
        {"decoder": scorer},
        {"decoder": 1.0},
        beam,
        3,
        primer,
        repeat_limit=limit,
        **conf,
    )
    hyps = search(encoder_output(0, 9), maxlenratio=maxlenratio)
    return hyps, search.trace[0]


def test_the_mass_of_what_is_masked_is_nowhere():
    # Beam 2. N=1: a .7, $ .2, mass .9; final($) = 2/9; not ended 7/9.
    # N=2: aa .49, a$ .14, mass .63; final(a$) = 2/9 * 7/9; not ended 49/81.
    # N=3: a third a is masked: aa$ .098, aab .049, mass .147; final(aa$) = 2/3 * 49/81;
    #      not ended 1/3 * 49/81 = .202 <= .403, stop.
    hyps, trace = decode(ExplicitLengthBeamSearch, MOSTLY_A, 2, 2)
    assert [labels(h) for h in hyps] == [(A, A, END), (END,), (A, END)]
    assert [h.score for h in hyps] == near(logs(98 / 243, 2 / 9, 14 / 81))
    assert [h.original_score for h in hyps] == near(logs(0.098, 0.2, 0.14))
    assert list(trace.p_end) == near([2 / 9, 2 / 9, 2 / 3])
    assert (trace.steps, trace.stopped) == (3, "bound")
    # Without the limit the next is aaa .343, and p_end stays 2/9 for good.
    assert decode(ExplicitLengthBeamSearch, MOSTLY_A, 2, None)[1].p_end[2] == near(
        2 / 9
    )


def test_simple_search():
    # Beam 1: aa .49; aa$ .098 where aaa .343 is masked.
    hyps, trace = decode(SimpleBeamSearch, MOSTLY_A, 1, 2)
    assert [labels(h) for h in hyps] == [(A, A, END)]
    assert hyps[0].score == near(math.log(0.098))
    assert trace.steps == 3


def test_a_masked_label_does_not_keep_a_hypothesis_from_ending():
    # $ has .2 and a .7: log .2 = -1.61 is not above 1.5 * log .7 = -.53. Behind aa only b
    # is left, and 1.5 * log .1 = -3.45.
    hyps, _ = decode(SimpleBeamSearch, MOSTLY_A, 1, 2, eos_threshold=1.5)
    assert [labels(h) for h in hyps] == [(A, A, END)]


@pytest.mark.parametrize(
    "limit, expected",
    [
        # the copy that would be the third is not completed; its first label may be there
        ({"times": 2, "labels": 2}, "abababa"[:5]),
        # a cycle of two is longer than what is looked for
        ({"times": 2, "labels": 1}, "ababababab"),
        ({"times": 3, "labels": 2}, "abababa"),
    ],
)
def test_a_cycle_of_two(limit, expected):
    """Greedy: the label that is not the last one has .8, the end .15, the same one .05."""
    after = {"a": logs(0.05, 0.8, 0.15), "b": logs(0.8, 0.05, 0.15)}
    text = "ab" * 6
    table = {(): logs(0.9, 0.05, 0.05)}
    for n in range(1, len(text)):
        table[tuple("ab".index(c) for c in text[:n])] = after[text[n - 1]]
    hyps, _ = decode(ExplicitLengthBeamSearch, table, 1, limit, maxlenratio=-10)
    found = "".join("ab$"[label] for label in labels(hyps[0]))
    assert found == f"{expected}$"


def test_the_primer_is_no_repetition():
    # The primer ends in a, and a may stand once.
    hyps, _ = decode(SimpleBeamSearch, MOSTLY_A, 1, 1, primer=[END, A])
    assert labels(hyps[0], start=2) == (A, END)


def test_the_end_label_is_never_one_too_many():
    # Before the first label the last one is the start label, which is the end label.
    table = [logs(0.1, 0.1, 0.8)]
    hyps, _ = decode(ExplicitLengthBeamSearch, table, 1, 1)
    assert labels(hyps[0]) == (END,)


def test_where_only_the_repeated_label_was_possible_the_text_is_cut():
    table = [logs(1.0, 0.0, 0.0)]
    hyps, trace = decode(ExplicitLengthBeamSearch, table, 4, 3)
    assert labels(hyps[0]) == (A, A, A, END)
    assert hyps[0].forced
    assert (trace.steps, trace.stopped) == (4, "forced")


@pytest.mark.parametrize("seed", range(40))
def test_masks_against_copies_that_are_counted(seed):
    """Random labels, of which some hypotheses are dropped and some are extended twice."""
    draw = random.Random(seed)
    vocab, n = draw.choice([1, 2, 2, 3]), 6
    times, longest = draw.choice([(1, 1), (1, 3), (2, 1), (2, 4), (3, 2), (4, 10)])
    primer = [draw.randrange(vocab + 1) for _ in range(draw.randint(1, 3))]
    primers = torch.tensor([primer])
    beam = first_beam([], torch.zeros(1, 1, 1), primers, RepeatLimit(times, longest))
    texts, some = [()], 0
    for _ in range(16):
        scores = torch.zeros(len(texts), vocab + 1)
        masked = beam.repeats.mask(scores, beam.yseq)
        expected = [
            [one_too_many((*text, v), (times, longest)) for v in range(vocab)] + [False]
            for text in texts
        ]
        assert (masked == -math.inf).tolist() == expected
        assert not scores.any()
        some += sum(map(sum, expected))
        # also what is masked: a search may be told to do so, e.g. by a beam that is wide
        parents = [draw.randrange(len(texts)) for _ in range(n)]
        new = [draw.randrange(vocab) for _ in range(n)]
        texts = [(*texts[p], v) for p, v in zip(parents, new)]
        parents = torch.tensor(parents)
        chosen = Selection(parents, parents, torch.tensor(new), [])
        beam = beam.extend(chosen, scores, {})
        assert beam.yseq[:, len(primer) :].tolist() == [list(t) for t in texts]
    assert some
    assert beam.repeats.counts.size(1) == min(longest, 16)


def test_nothing_is_counted_without_a_limit():
    assert first_beam([], torch.zeros(1, 1, 1), torch.zeros(1, 1)).repeats is None
