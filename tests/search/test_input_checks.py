"""What a search is called with: frames, lengths and primers that fit together, or not."""

import re

import pytest
import torch

from tests.search.kinds import both, searching
from tests.tables import END, A
from tests.toys import (
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
    padded,
)


@both
@pytest.mark.parametrize(
    "frames, message",
    [
        ({"x": (4,)}, r"x must be .*, not \(4,\)"),
        ({"x": (1, 1, 4, 2)}, r"x must be .*, not \(1, 1, 4, 2\)"),
        ({"x": (4, 2), "pre_x": (2, 5, 2)}, r"pre_x must be .* not \(2, 5, 2\)"),
        ({"x": (2, 4, 2), "pre_x": (3, 5, 2)}, r"pre_x must be .* not \(3, 5, 2\)"),
        ({"x": (2, 4, 2), "pre_x": (5, 2)}, r"pre_x must be .* not \(5, 2\)"),
    ],
)
def test_frames_of_a_wrong_shape(kind, frames, message):
    search = searching(kind, RandomScorer(0, 6), 2)
    with pytest.raises(ValueError, match=message):
        search(**{name: torch.zeros(shape) for name, shape in frames.items()})


@both
@pytest.mark.parametrize("name, longest", [("x_lengths", 4), ("pre_x_lengths", 5)])
@pytest.mark.parametrize("lengths", [[4, 6], [-1, 4], [4], [4, 4, 4]])
def test_lengths_that_are_not_those_of_the_frames(kind, name, longest, lengths):
    search = searching(kind, RandomScorer(0, 6), 2)
    frames = {"x": torch.zeros(2, 4, 2), "pre_x": torch.zeros(2, 5, 2)}
    said = f"{name} must be 2 numbers from 0 to {longest}, not {lengths}"
    with pytest.raises(ValueError, match=re.escape(said)):
        search(**frames, **{name: torch.tensor(lengths)})


@both
def test_nothing_is_heard_in_a_first_source_without_frames(kind):
    ends_at_three = TableScorer([logs(0.6, 0.4, 0.0)] * 2 + [logs(0.0, 0.0, 1.0)])
    search = build(kind, {"lm": ends_at_three}, {"lm": 1.0}, 1, 3)
    x, lengths = padded([encoder_output(0, 4), encoder_output(1, 4)])
    pre_lengths = torch.tensor([3, 0])
    found = search(x, pre_x=x, x_lengths=lengths, pre_x_lengths=pre_lengths)
    assert [labels(hyps[0]) for hyps in found] == [(A, A, END), (END,)]
    assert search.trace[1].stopped == "empty" != search.trace[0].stopped


@both
def test_an_empty_primer_of_one_utterance(kind):
    search = searching(kind, RandomScorer(0, 6), 2)
    search.set_hyp_primer([[5], []])
    with pytest.raises(ValueError, match=r"empty for the utterances \[1\]"):
        search(torch.zeros(2, 4, 2))
