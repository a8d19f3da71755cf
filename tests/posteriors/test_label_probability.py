"""The probability of labels, and of the words that they make."""

import math

import numpy as np
import pytest

from espnet_lenbias.posteriors.label_probability import (
    label_probabilities,
    mean_probability,
    products_of_words,
    without_smoothing,
    word_probabilities,
)
from tests.toys import logs

SOS, EOS, BLANK = 9, 9, 0


def test_the_end_label_is_left_out():
    values = label_probabilities([SOS, 1, 2, EOS], logs(0.5, 0.8, 0.9), [1, 2])
    assert values == pytest.approx([0.5, 0.8])


def test_labels_of_the_primer_were_given():
    """An S2T result begins with the symbols of its primer."""
    yseq = [8, SOS, 5, 6, 1, 2, EOS]
    values = label_probabilities(yseq, logs(0.5, 0.8, 0.9), [5, 6, 1, 2])
    assert values == pytest.approx([1, 1, 0.5, 0.8])


def test_labels_that_are_no_output_are_left_out():
    yseq = [SOS, 1, BLANK, 2, 2, EOS]
    scores = logs(0.1, 0.2, 0.3, 0.4, 0.5)
    assert label_probabilities(yseq, scores, [1, 2, 2]) == pytest.approx(
        [0.1, 0.3, 0.4]
    )


def test_a_score_above_zero_is_certain_and_no_more():
    """A length bonus can make one so."""
    assert label_probabilities([SOS, 1, EOS], [0.7, -1.0], [1]).tolist() == [1.0]


def test_smoothing_is_taken_back():
    """Of 101 labels smoothing by .1 leaves .9 of a certain label and .001 of others."""
    smoothed = np.array([0.0, 0.001, 0.5 * 0.9 + 0.5 * 0.001, 0.9, 1.0])
    exact = without_smoothing(smoothed, 0.1, 101)
    assert exact == pytest.approx([0, 0, 0.5, 1, 1])
    assert exact.min() >= 0 and exact.max() <= 1
    assert without_smoothing(smoothed, 0.0, 101).tolist() == smoothed.tolist()


def test_labels_of_another_hypothesis():
    with pytest.raises(ValueError, match="not those of"):
        label_probabilities([SOS, 1, EOS], [-1.0, -1.0], [2])


def test_where_only_the_sum_is_known_all_labels_have_the_geometric_mean():
    score = math.log(0.5 * 0.8 * 0.9)
    assert mean_probability(score, 3, 2) == pytest.approx([0.36 ** (1 / 3)] * 2)
    assert mean_probability(2.0, 3, 1).tolist() == [1.0]


def test_a_word_has_the_mean_of_its_labels():
    labels = np.array([0.5, 0.8, 0.6])
    assert word_probabilities(labels, [0, 1, 1], 2) == pytest.approx([0.5, 0.7])


def test_where_labels_are_of_no_word_all_words_have_the_mean():
    labels = np.array([0.5, 0.8, 0.6])
    assert word_probabilities(labels, None, 2) == pytest.approx([1.9 / 3] * 2)
    assert word_probabilities(labels, [0, 0, 0], 2) == pytest.approx([1.9 / 3] * 2)
    assert word_probabilities(labels, None, 0).tolist() == []


def test_the_probability_of_a_word_is_that_of_all_its_labels():
    labels = np.array([0.5, 0.8, 0.6])
    assert products_of_words(labels, [0, 1, 1], 2) == pytest.approx([0.5, 0.48])
    assert products_of_words(labels, [0, 0, 1], 2) == pytest.approx([0.4, 0.6])
    # of labels that make no text, such as a space alone
    assert products_of_words(labels[:1], [0], 0).tolist() == []
    assert word_probabilities(labels[:1], [0], 0).tolist() == []
    assert products_of_words(labels * 0, [0, 1, 1], 2).tolist() == [0.0, 0.0]
    # one without a label cannot be improbable
    assert products_of_words(labels, [0, 0, 0], 2) == pytest.approx([0.24, 1.0])


def test_where_labels_are_of_no_word_all_words_are_equally_probable():
    labels = np.array([0.5, 0.8, 0.4])
    assert products_of_words(labels, None, 2) == pytest.approx([0.4, 0.4])  # of .16
    assert products_of_words(labels, None, 0).tolist() == []
    assert products_of_words(np.zeros(0), None, 2).tolist() == [1.0, 1.0]
