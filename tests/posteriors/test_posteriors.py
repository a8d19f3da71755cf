"""N-best lists as probabilities, on lists that can be worked out by hand."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espnet_lenbias import label_confidence, minimum_bayes_risk, word_confidence
from espnet_lenbias.posteriors.confusion import agreement, confidences
from espnet_lenbias.posteriors.distribution import posteriors
from espnet_lenbias.posteriors.risk import expected_errors, least_risk
from espnet_lenbias.search.hypotheses import Hypothesis, Score
from tests.posteriors.edits import distance
from tests.toys import logs

# exp of the scores: .4, .3, .1, of which the posteriors are 1/2, 3/8 and 1/8.
NBEST = [("the cat sat", 0.4), ("a cat sat", 0.3), ("a cat", 0.1)]


def result(text: str, score: float):
    """One line of an n-best list; tokens are letters, their ids code points."""
    tokens = list(text)
    ids = [ord(t) for t in tokens]
    return text, tokens, ids, Hypothesis(ids, Score(score), {}, {})


@pytest.fixture
def nbest():
    return [result(text, math.log(p)) for text, p in NBEST]


many = settings(max_examples=100)  # they are quick
words = st.lists(st.sampled_from("abc"), max_size=5)
lists = st.lists(st.tuples(words, st.floats(-20, 0)), min_size=1, max_size=6)


# --- Posteriors -----------------------------------------------------------------------


def test_posteriors_are_shares():
    assert posteriors(logs(0.4, 0.3, 0.1)) == pytest.approx([1 / 2, 3 / 8, 1 / 8])


def test_a_temperature_of_two_takes_square_roots():
    # .4, .3, .1 become .6325, .5477, .3162, of the sum 1.4964
    warmer = posteriors(logs(0.4, 0.3, 0.1), temperature=2.0)
    assert warmer == pytest.approx([0.4226, 0.3660, 0.2113], abs=1e-4)


def test_a_list_that_was_sampled():
    """Each counts as often as it was drawn, and what is impossible was not."""
    shares = posteriors([-1.0, -900.0, -math.inf, -2.0], math.inf)
    assert shares.tolist() == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])
    # "a b" was drawn twice: two of three draws have no error with it, one has two
    drawn = [result("c d", -0.1), result("a b", -5.0), result("a b", -5.0)]
    assert minimum_bayes_risk(drawn)[0][0] == "c d"
    assert minimum_bayes_risk(drawn, math.inf)[0][0] == "a b"


def test_posteriors_of_scores_far_below_zero():
    assert posteriors([-1000.0, -1000.0 + math.log(3)]) == pytest.approx([1 / 4, 3 / 4])


def test_impossible_hypotheses_have_none_unless_all_are():
    assert posteriors([-1.0, -math.inf]).tolist() == [1.0, 0.0]
    assert posteriors([-math.inf, -math.inf]).tolist() == [0.5, 0.5]
    assert posteriors([]).tolist() == []


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_scores_that_are_none(score):
    with pytest.raises(ValueError, match="scores must be numbers"):
        posteriors([-1.0, score])


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, "x"])
def test_temperatures_that_are_none(temperature):
    with pytest.raises(ValueError, match="temperature must be a number above 0"):
        posteriors([-1.0], temperature)


@pytest.mark.filterwarnings("error")
def test_the_smallest_temperature_leaves_the_best_alone():
    assert posteriors([-1.0, -2.0], 5e-324).tolist() == [1.0, 0.0]


@many
@given(st.lists(st.floats(-1e4, 1e4), min_size=1), st.floats(0.1, 10))
def test_the_sum_is_one_and_the_order_stays(scores, temperature):
    share = posteriors(scores, temperature)
    assert share.sum() == pytest.approx(1)
    assert share[np.argmax(scores)] == share.max()


# --- Confidence -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [word_confidence, label_confidence, minimum_bayes_risk]
)
def test_the_lists_of_several_utterances(function, nbest):
    with pytest.raises(TypeError, match="of several utterances: give one of them"):
        function([nbest, nbest])


@pytest.mark.parametrize(
    "function", [word_confidence, label_confidence, minimum_bayes_risk]
)
@pytest.mark.parametrize(
    "wrong",
    [None, "the cat", [object()], [("the cat",)], [("the", ["the"], [1], None)]],
)
def test_what_is_no_nbest_list(function, wrong):
    with pytest.raises(
        TypeError, match="an n-best list is what an inference object re"
    ):
        function(wrong)


def test_word_confidence_is_the_mass_of_those_with_the_word(nbest):
    # the: 1/2; cat: all; sat: 1/2 + 3/8
    assert word_confidence(nbest) == pytest.approx([1 / 2, 1, 7 / 8])
    assert word_confidence(nbest, rank=2) == pytest.approx([1 / 2, 1, 7 / 8])
    assert word_confidence(nbest, rank=3) == pytest.approx([1 / 2, 1])


@pytest.mark.parametrize("rank", [-1, 0, 4])
def test_a_rank_that_there_is_not(rank, nbest):
    nbest = nbest[:3]
    with pytest.raises(ValueError, match=f"rank is {rank}, and the n-best list has 3"):
        word_confidence(nbest, rank)
    with pytest.raises(ValueError, match="rank must be a whole number, not 'a'"):
        word_confidence(nbest, "a")
    with pytest.raises(ValueError, match="rank is 1, and the n-best list has 0"):
        word_confidence([])


def test_label_confidence_is_that_of_tokens():
    nbest = [result("ab", math.log(0.6)), result("cb", math.log(0.4))]
    assert label_confidence(nbest) == pytest.approx([0.6, 1.0])


def test_words_of_one_text_in_two_spellings_of_labels_count_together():
    """Two hypotheses with other labels and the same words leave nothing unsure."""
    nbest = [("a", ["▁a"], [1], Hypothesis([1], Score(-1.0), {}, {}))]
    nbest += [("a", ["▁", "a"], [2, 3], Hypothesis([2, 3], Score(-2.0), {}, {}))]
    assert word_confidence(nbest) == pytest.approx([1.0])


def test_a_word_in_another_place_is_aligned():
    # b and c stand at other places in the second one, whose a is missing
    share = confidences("abc", ["abc", "bc"], np.array([0.75, 0.25]))
    assert share == pytest.approx([0.75, 1, 1])


def test_one_hypothesis_alone_is_certain():
    assert word_confidence([result("oh yes", -9.0)]) == [1.0, 1.0]


def test_a_text_without_words():
    assert word_confidence([result("", -1.0), result("a", -2.0)]) == []


def test_a_text_that_is_none_has_its_tokens_for_words():
    """So it is with a model without tokenizer."""
    nbest = [(None, ["a", "b"], [1, 2], Hypothesis([], Score(-1.0), {}, {}))]
    assert word_confidence(nbest) == [1.0, 1.0]


@many
@given(words, words)
def test_alignments_have_the_fewest_errors(a, b):
    """What is marked can be kept in an alignment as short as any, and nothing else."""
    [same] = agreement(a, [b])

    def cost(i, j):
        """Errors of a[i:], b[j:] if exactly the marked words are aligned with their own."""
        if i == len(a):
            return len(b) - j
        ways = [math.inf]
        if not same[i]:
            ways.append(1 + cost(i + 1, j))
        if j < len(b):
            ways.append(1 + cost(i, j + 1))
            if same[i] == (a[i] == b[j]):
                ways.append(int(not same[i]) + cost(i + 1, j + 1))
        return min(ways)

    assert cost(0, 0) == distance(a, b)


@many
@given(lists)
def test_confidences_are_from_the_best_ones_share_to_one(nbest):
    share = posteriors([score for _, score in nbest])
    values = confidences(nbest[0][0], [w for w, _ in nbest], share)
    assert len(values) == len(nbest[0][0])
    assert all(share[0] - 1e-12 <= value <= 1 for value in values)


# --- Minimum Bayes risk ---------------------------------------------------------------


def test_expected_errors(nbest):
    # the cat sat: 1 from the second, 2 from the third: 3/8 + 2/8
    # a cat sat: 1 from each: 1/2 + 1/8; a cat: 2 and 1: 2/2 + 3/8
    hypotheses = [text.split() for text, _ in NBEST]
    risk = expected_errors(hypotheses, np.array([1 / 2, 3 / 8, 1 / 8]))
    assert risk == pytest.approx([5 / 8, 5 / 8, 11 / 8])


def test_of_equal_risks_the_more_probable_one_is_first(nbest):
    assert [r[0] for r in minimum_bayes_risk(nbest)] == [text for text, _ in NBEST]


def test_minimum_bayes_risk_moves_one_to_the_front():
    nbest = [("a b c", 0.4), ("a x y", 0.3), ("a x z", 0.2), ("d x y", 0.1)]
    nbest = [result(text, math.log(p)) for text, p in nbest]
    # a b c: 2*.3 + 2*.2 + 3*.1 = 1.3; a x y: 2*.4 + .2 + .1 = 1.1
    # a x z: 2*.4 + .3 + 2*.1 = 1.3; d x y: 3*.4 + .3 + 2*.2 = 1.9
    order = [r[0] for r in minimum_bayes_risk(nbest)]
    assert order == ["a x y", "a b c", "a x z", "d x y"]


def test_of_equal_posteriors_the_median_string_is_chosen():
    """Every other one differs from it in one word, and from one another in two."""
    nbest = ["b x c", "b y d", "b y c", "e y c"]
    assert least_risk([text.split() for text in nbest], np.full(4, 1 / 4)) == 2


def test_no_hypotheses():
    assert minimum_bayes_risk([]) == []


@many
@given(lists)
def test_expected_errors_are_those_of_all_pairs(nbest):
    share = posteriors([score for _, score in nbest])
    hypotheses = [w for w, _ in nbest]
    slow = np.zeros(len(nbest))
    for (i, a), (j, b) in product(enumerate(hypotheses), repeat=2):
        slow[i] += share[j] * distance(a, b)
    assert expected_errors(hypotheses, share) == pytest.approx(slow)
    assert slow[least_risk(hypotheses, share)] == pytest.approx(slow.min())
