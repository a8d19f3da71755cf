"""BLEU and chrF of counts, against sacrebleu on the texts."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from espnet_lenbias.report.bleu import (
    bleu,
    chrf,
    length_ratio,
    signatures,
    translation_counts,
)

REFERENCES = [
    "The cat sat on the mat, and the dog did not.",
    "yes",
    "",
    "it is 3.5 m long",
    "Das H\u00e4uschen am See",
    "a b c d e f g",
]
HYPOTHESES = [
    "the cat sat on a mat and the dog did not .",
    "yes yes sir",
    "oh",
    "",
    "das H\u00e4uschen",
    "a b c d e f g",
]
WORST = [[0, 1], [0, 2], [1], [2], [3], [1, 2, 3], [3, 4], []]


def by_sacrebleu(metric, which):
    """Of no texts sacrebleu raises an error; nothing is right then."""
    if not which:
        return 0.0
    hypotheses, references = ([x[i] for i in which] for x in (HYPOTHESES, REFERENCES))
    return metric.corpus_score(hypotheses, [references]).score


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "char", "none"])
def test_any_choice_of_texts_scores_as_sacrebleu_scores_it(tokenizer):
    counts = translation_counts(REFERENCES, HYPOTHESES, tokenizer)
    rng = np.random.default_rng(0)
    choices = [*WORST, *(rng.integers(6, size=6).tolist() for _ in range(60))]
    totals = np.stack([counts[which].sum(axis=0) for which in choices])
    expected = [by_sacrebleu(BLEU(tokenize=tokenizer), which) for which in choices]
    assert bleu(totals) == pytest.approx(expected, abs=1e-9)
    expected = [by_sacrebleu(CHRF(), which) for which in choices]
    assert chrf(totals) == pytest.approx(expected, abs=1e-9)
    assert len(set(np.round(bleu(totals), 3))) > 20


def test_a_bleu_by_hand():
    # "a b c e" for "a b c d e": hits 4, 2, 1, 0 of 4, 3, 2, 1; no four-gram: half a hit;
    # brevity exp(1 - 5/4)
    counts = translation_counts(["a b c d e"], ["a b c e"], "13a")[0]
    expected = 100 * (1 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25 * np.exp(-0.25)
    assert float(bleu(counts)) == pytest.approx(expected)
    assert float(length_ratio(counts)) == 0.8


def test_a_chrf_by_hand():
    # "ab" for "abc": precision 1 and 1, recall 2/3 and 1/2; longer n-grams of one alone
    counts = translation_counts(["a bc"], ["ab"], "13a")[0]
    recall = (2 / 3 + 1 / 2) / 2
    assert float(chrf(counts)) == pytest.approx(100 * 5 * recall / (4 + recall))


def test_without_reference_words_there_is_no_length_ratio():
    assert np.isnan(length_ratio(translation_counts([""], ["a"], "13a").sum(axis=0)))


def test_the_signatures_are_sacrebleus():
    names = []
    for metric in (BLEU(tokenize="intl"), CHRF()):
        metric.corpus_score(HYPOTHESES, [REFERENCES])
        names.append(str(metric.get_signature()))
    assert signatures("intl") == f"BLEU {names[0]}, chrF2 {names[1]}"
