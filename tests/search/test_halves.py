"""Memory that is too small for a large beam or long audio.

The work is split and goes on, or an error says of which utterance, and what to lower.
"""

import weakref

import pytest
import torch

from espnet_lenbias import ExplicitLengthBeamSearch
from espnet_lenbias.search.loop import BatchDecoding
from tests.search.kinds import both, searching
from tests.toys import RandomScorer, encoder_output, labels, padded


@pytest.fixture
def room_for(monkeypatch):
    """Let the memory hold only so many utterances at once."""

    def limit(most, error):
        def run(decoding):
            if len(decoding.limits) > most:
                raise error
            return whole_run(decoding)

        whole_run = BatchDecoding.run
        monkeypatch.setattr(BatchDecoding, "run", run)

    return limit


@both
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        # as torch says it of the memory of the CPU
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
            "allocate memory: you tried to allocate 4000000000000000 bytes"
        ),
    ],
    ids=["GPU", "CPU"],
)
def test_a_batch_too_large_for_the_memory_is_halved(kind, error, room_for, caplog):
    frames = [7, 9, 5]
    x, lengths = padded([encoder_output(b, n) for b, n in enumerate(frames)])
    search = searching(kind, RandomScorer(5, 6), 4)
    expected = search(x, x_lengths=lengths)
    room_for(1, error)
    found = search(x, x_lengths=lengths)
    for mine, whole in zip(found, expected, strict=True):
        assert [labels(h) for h in mine] == [labels(h) for h in whole]
        assert [h.score for h in mine] == pytest.approx([h.score for h in whole])
    assert [len(t.kept) for t in search.trace] == [h[0].steps for h in expected]
    # three are one and two, and the two are one and one
    assert caplog.text.count("going on in halves") == 2


def test_what_was_too_large_is_gone_when_the_halves_begin(monkeypatch):
    """Caches of the whole batch in the memory would leave its halves no room."""
    started, run = [], BatchDecoding.run

    def run_if_alone(decoding):
        gone = [other() is None for other in started]
        assert all(gone)
        started.append(weakref.ref(decoding))
        if len(decoding.limits) > 1:
            raise torch.OutOfMemoryError("no room")
        return run(decoding)

    monkeypatch.setattr(BatchDecoding, "run", run_if_alone)
    x, lengths = padded([encoder_output(b, 4) for b in range(4)])
    searching(ExplicitLengthBeamSearch, RandomScorer(5, 6), 4)(x, x_lengths=lengths)
    assert len(started) == 7


@both
def test_one_utterance_too_large_says_what_to_lower(kind, room_for):
    x, lengths = padded([encoder_output(b, n) for b, n in enumerate([7, 9])])
    room_for(0, torch.OutOfMemoryError("no room"))
    with pytest.raises(MemoryError, match="beam_size 4 and 7 encoder frames.* lower"):
        searching(kind, RandomScorer(5, 6), 4)(x, x_lengths=lengths)


def test_other_errors_stay_what_they_are():
    class Broken(RandomScorer):
        def batch_score(self, ys, states, xs):
            raise RuntimeError("shapes do not fit")

    x, lengths = padded([encoder_output(b, 4) for b in range(2)])
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        searching(ExplicitLengthBeamSearch, Broken(5, 6), 4)(x, x_lengths=lengths)
