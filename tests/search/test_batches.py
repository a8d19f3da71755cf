"""Batches and short input.

An utterance has the labels and scores in a padded batch that it has alone. One that is too
short for the encoder gets an empty result and leaves the others alone. Empty input, or one
frame, has a result, never an empty list.
"""

import pytest
import torch

from tests.search.kinds import assert_alike, both, every, searching
from tests.tables import END
from tests.toys import (
    AllFramesScorer,
    PlainAllFramesScorer,
    PlainRandomScorer,
    PlainTableScorer,
    RandomScorer,
    TableScorer,
    encoder_output,
    labels,
    logs,
    padded,
)


@every
@pytest.mark.parametrize(
    "scorer_kind",
    [RandomScorer, PlainRandomScorer, AllFramesScorer, PlainAllFramesScorer],
)
def test_the_same_alone_and_in_a_padded_batch(kind, options, scorer_kind):
    search = searching(kind, scorer_kind(9, 5), 5, **options)
    xs = [encoder_output(i, T) for i, T in enumerate([3, 7, 5, 1])]
    alone = [search(x) for x in xs]
    for garbage in [0.0, 7.0, 1e4]:
        x, lengths = padded(xs, frames=10, garbage=garbage)
        for hyps, others in zip(search(x, x_lengths=lengths), alone, strict=True):
            assert_alike(hyps, others)


@every
@pytest.mark.parametrize("frames", [[0], [0, 6], [4, 0, 6, 0], [0, 0]])
def test_an_utterance_without_frames_leaves_its_batch_alone(kind, options, frames):
    search = searching(kind, RandomScorer(10, 5), 3, **options)
    xs = [encoder_output(i, T) for i, T in enumerate(frames)]
    alone = [search(x) for x in xs]
    x, lengths = padded(xs, frames=2)
    found = search(x, x_lengths=lengths)
    assert len(found) == len(search.trace) == len(frames)
    for hyps, others, T, trace in zip(found, alone, frames, search.trace):
        assert_alike(hyps, others)
        if T == 0:
            assert [h.yseq.tolist() for h in hyps] == [[4, 4]]
            assert (hyps[0].score, hyps[0].forced, trace.stopped) == (
                0.0,
                True,
                "empty",
            )


@every
@pytest.mark.parametrize("beam", [1, 8])
@pytest.mark.parametrize(
    "maxlenratio, minlenratio", [(0, 0), (0.1, 0), (-3, 0), (0, -2), (0, 1.0)]
)
@pytest.mark.parametrize("frames", [0, 1])
@pytest.mark.parametrize("end_bias", [-9.0, 9.0])
def test_a_result_for_every_length(
    kind, options, beam, maxlenratio, minlenratio, frames, end_bias
):
    search = searching(kind, PlainRandomScorer(11, 4, end_bias), beam, **options)
    hyps = search(encoder_output(0, frames), maxlenratio, minlenratio)
    assert hyps
    for h in hyps:
        assert h.yseq.dtype == torch.int64
        assert h.yseq[0] == h.yseq[-1] == 3
        assert labels(h).count(3) == 1


@both
def test_empty_input_ends_behind_the_primer(kind):
    scorer = RandomScorer(0, 4, start=3)
    search = searching(kind, scorer, 2, primer=[3, 0, 1])
    (best,) = search(encoder_output(0, 0))
    assert best.yseq.tolist() == [3, 0, 1, 3]
    assert (best.score, best.forced) == (0.0, True)


@both
@pytest.mark.parametrize("scorer_kind", [TableScorer, PlainTableScorer])
def test_one_frame(kind, scorer_kind):
    # Limit 1: the end label .3 is within the beam of two, and alone within the limit.
    hyps = searching(kind, scorer_kind([logs(0.6, 0.1, 0.3)]), 2)(encoder_output(0, 1))
    assert [labels(h) for h in hyps] == [(END,)]
    assert not hyps[0].forced
