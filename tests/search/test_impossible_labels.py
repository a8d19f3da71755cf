"""Labels that no scorer, or not all, take for possible, and scores that are no numbers.

The heading of each part says what has gone wrong in decoders, and what must hold.

Labels of the tables: a, b and the end label $.
"""

import math
import re

import pytest

from espnet_lenbias.errors import ScorerError
from tests.search.kinds import both, every, searching
from tests.tables import END, B, near
from tests.toys import (
    BatchPartialScorer,
    NanScorer,
    OneLabelScorer,
    PartialScorer,
    RandomScorer,
    TableScorer,
    build,
    encoder_output,
    labels,
    logs,
)

# The beam is larger than the vocabulary, or than all candidates. The search works, and
# the n-best list has no place without a hypothesis.


@every
@pytest.mark.parametrize("beam", [3, 4, 7, 1000])
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_beam_larger_than_all_candidates(kind, options, beam, frames):
    hyps = searching(kind, RandomScorer(2, 3), beam, **options)(
        encoder_output(0, frames)
    )
    assert hyps
    assert len({tuple(h.yseq.tolist()) for h in hyps}) == len(hyps)
    assert all(-100 < h.score and math.isfinite(h.original_score) for h in hyps)
    assert all(labels(h).count(END) == 1 and labels(h)[-1] == END for h in hyps)


@both
def test_impossible_candidates_take_no_place(kind):
    # Two labels of eight are possible at each position.
    scorer = TableScorer([logs(0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4)])
    hyps = searching(kind, scorer, 6)(encoder_output(0, 4))
    assert all(set(labels(h)) <= {0, 7} and math.isfinite(h.score) for h in hyps)


@both
def test_a_vocabulary_of_the_end_label_alone(kind):
    hyps = searching(kind, TableScorer([[0.0]]), 5)(encoder_output(0, 4))
    assert [h.yseq.tolist() for h in hyps] == [[0, 0]]
    assert hyps[0].score == 0.0


# A scorer returns NaN or +inf: an error names it and the position. It returns -inf for
# all labels but one: the search works.


@both
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("position", [1, 3])
def test_nan_is_an_error_that_names_scorer_and_position(kind, position, value):
    scorers = {
        "decoder": TableScorer([logs(0.9, 0.07, 0.03)]),
        "lm": NanScorer(3, position, value),
    }
    search = build(kind, scorers, {"decoder": 1.0, "lm": 0.3}, 2, 3)
    with pytest.raises(ScorerError, match="lm") as caught:
        search(encoder_output(0, 9))
    assert re.search(rf"\b{position}\b", str(caught.value))
    assert "decoder" not in str(caught.value)


@both
@pytest.mark.parametrize("weight, smallest", [(-0.3, 0.0), (-1e38, 1e-9)])
def test_a_weighted_sum_that_is_no_number(kind, weight, smallest):
    """Each scorer gives what it may: -0.3 * -inf is too large, and so is 1e38 * 21."""
    lm = TableScorer([logs(smallest, 0.5, 0.5)])
    scorers = {"decoder": TableScorer([logs(0.9, 0.07, 0.03)]), "lm": lm}
    search = build(kind, scorers, {"decoder": 1.0, "lm": weight}, 2, 3)
    said = r"weighted sum of \['decoder', 'lm'\].* at position 1: a weight is too l"
    with pytest.raises(ScorerError, match=said):
        search(encoder_output(0, 9))


@both
@pytest.mark.parametrize("partial", [PartialScorer, BatchPartialScorer])
def test_nan_of_a_partial_scorer(kind, partial):
    class Broken(partial):
        def log_probs(self, utterance, prefix):
            return [math.nan] * 3 if self.position(prefix) == 2 else logs(*[1 / 3] * 3)

    scorers = {"decoder": TableScorer([logs(0.9, 0.07, 0.03)]), "ctc": Broken(0, 3)}
    with pytest.raises(ScorerError, match="ctc") as caught:
        build(kind, scorers, {"decoder": 1.0, "ctc": 0.3}, 2, 3)(encoder_output(0, 9))
    assert re.search(r"\b2\b", str(caught.value))


@every
@pytest.mark.parametrize("beam", [1, 4])
def test_one_possible_label_at_each_position(kind, options, beam):
    scorer = OneLabelScorer(5, [3, 0, 2, 4])
    hyps = searching(kind, scorer, beam, **options)(encoder_output(0, 9))
    assert [labels(h) for h in hyps] == [(3, 0, 2, 4)]
    assert hyps[0].original_score == 0.0


@every
def test_no_possible_label_is_a_result_all_the_same(kind, options):
    scorer = OneLabelScorer(5, [3, 0, None])
    hyps = searching(kind, scorer, 4, **options)(encoder_output(0, 9))
    assert [labels(h) for h in hyps] == [(3, 0, 4)]
    assert hyps[0].score == -math.inf
    assert hyps[0].forced


@both
def test_running_hypotheses_die_out_beside_an_ended_one(kind):
    # $ .4 at once; a .6 has nothing behind it.
    scorer = TableScorer([logs(0.6, 0.0, 0.4), logs(0.0, 0.0, 0.0)])
    search = searching(kind, scorer, 3)
    hyps = search(encoder_output(0, 9))
    assert [labels(h) for h in hyps] == [(END,)]
    assert hyps[0].score == near(math.log(0.4))
    assert (search.trace[0].steps, search.trace[0].stopped) == (2, "ended")


@both
def test_scorers_that_exclude_each_others_labels(kind):
    # Only b is possible for both, then only $.
    scorers = {
        "decoder": TableScorer([logs(0.5, 0.5, 0.0), logs(0.0, 0.5, 0.5)]),
        "lm": TableScorer([logs(0.0, 0.5, 0.5), logs(0.5, 0.0, 0.5)]),
    }
    (best,) = build(kind, scorers, {"decoder": 1.0, "lm": 0.5}, 3, 3)(
        encoder_output(0, 9)
    )
    assert labels(best) == (B, END)
    assert best.original_score == near(1.5 * math.log(0.25))
