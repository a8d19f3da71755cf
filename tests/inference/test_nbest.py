"""Confidences and minimum Bayes risk in inference objects."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from espnet_lenbias import (
    Speech2Text,
    label_confidence,
    minimum_bayes_risk,
    s2t,
    st,
    use_search,
    word_confidence,
)
from espnet_lenbias.espnet_compat import Hypothesis as EspnetHypothesis
from espnet_lenbias.inference.nbest import confidence_of, decided, label_smoothing
from espnet_lenbias.options.posteriors import CONFIDENCES, PosteriorOptions
from espnet_lenbias.search.hypotheses import Hypothesis, Score
from tests.releases import needs_batches
from tests.toys import logs

DECODING = {"beam_size": 4, "ctc_weight": 0.0, "maxlenratio": -6.0}
OURS = {**DECODING, "search": "explicit_length"}


def outputs(results):
    return [(text, ids) for text, _, ids, _ in results]


# --- By hand --------------------------------------------------------------------------


def fake_model(results, smoothing=0.0, search="explicit_length", **options):
    """Return a model that has the labels A, B and C, and what makes its n-best list."""
    nbest = options.pop("nbest", 1)
    model = SimpleNamespace(
        search=search,
        nbest=nbest,
        posterior_options=PosteriorOptions(**options),
        beam_search=SimpleNamespace(
            beam_size=len(results), n_vocab=101, scorers={"decoder": None}
        ),
        asr_train_args=SimpleNamespace(model_conf={"lsm_weight": smoothing}),
        tokenizer=SimpleNamespace(tokens2text=" ".join),
    )
    return model, lambda: results[: model.nbest]


def chosen(model, decode):
    return decided(model, decode, lambda: 0)


def result(text, score, *label_probs):
    """One line of an n-best list; the last label is the end label's."""
    tokens = text.split()
    ids = [ord(token[-1]) for token in tokens]
    hyp = Hypothesis(
        yseq=torch.tensor([1, *ids, 1]),
        score=Score(math.log(score)),
        label_scores=logs(*label_probs),
    )
    return text, tokens, ids, hyp


@pytest.fixture
def nbest():
    return [
        result("A B", 0.4, 0.9, 0.5, 1.0),
        result("A C", 0.3, 0.9, 0.4, 1.0),
        result("B C", 0.1, 0.1, 0.4, 1.0),
    ]


@pytest.mark.parametrize("measure", CONFIDENCES)
def test_labels_that_make_no_word(measure):
    """Such as a space alone, somewhere in the list: there is no word to be sure of."""
    _, _, ids, hyp = result("S", 0.3, 0.6, 1.0)
    results = [result("A", 0.4, 0.9, 1.0), ("", ["S"], ids, hyp)]
    model, decode = fake_model(results, nbest=2, confidence=measure)
    model.tokenizer.tokens2text = lambda tokens: " ".join(t for t in tokens if t != "S")
    first, second = chosen(model, decode)
    assert len(first[-1].word_confidence) == 1
    assert second[-1].word_confidence == []
    assert len(second[-1].label_confidence) == 1


def test_nothing_is_done_unless_it_is_asked_for(nbest):
    model, decode = fake_model(nbest)
    assert chosen(model, decode) == nbest[:1]


@pytest.mark.parametrize(
    "confidence, expected",
    [
        ("posterior", [7 / 8, 1 / 2]),  # A is in .7 of .8, B in .4 at its place
        ("label_probability", [0.9, 0.5]),
        ("combined", [(0.9 * 7 / 8) ** 0.5, (0.5 / 2) ** 0.5]),
    ],
)
def test_confidence(confidence, expected, nbest):
    model, decode = fake_model(nbest, confidence=confidence)
    [(_, _, _, hyp)] = chosen(model, decode)
    assert hyp.word_confidence == pytest.approx(expected)
    assert hyp.label_confidence == pytest.approx(expected)
    is_compared = confidence != "label_probability"
    assert hyp.posterior == (pytest.approx(1 / 2) if is_compared else None)
    assert model.nbest == 1


def test_a_word_of_several_labels():
    """Its labels have .9 and .5; the list, with .8 and .2, is sure of the word to .8."""
    nbest = [result("_A B", 0.4, 0.9, 0.5, 1.0), result("_A C", 0.1, 0.9, 0.1, 1.0)]
    nbest = [(tokens[0][1:] + tokens[1], tokens, *rest) for _, tokens, *rest in nbest]
    expected = {
        "posterior": 0.8,
        "label_probability": (0.9 + 0.5) / 2,
        "combined": (0.9 * 0.5 * 0.8) ** 0.5,
    }
    for confidence, of_word in expected.items():
        model, decode = fake_model(nbest, confidence=confidence)
        model.tokenizer.tokens2text = lambda t: "".join(t).replace("_", " ").strip()
        [(text, _, _, hyp)] = chosen(model, decode)
        assert text == "AB"
        assert hyp.word_confidence == pytest.approx([of_word])


def test_scores_of_several_scorers_are_a_mean_of_their_probabilities(nbest):
    """By weights of 1.6 in all .9 is .9 ** 1.6 in the sum; a penalty of 3 is added."""
    for _, _, _, hyp in nbest:
        hyp.label_scores = [1.6 * score + 3.0 for score in hyp.label_scores]
    model, decode = fake_model(nbest, confidence="label_probability")
    model.beam_search.scorers = dict.fromkeys(("decoder", "ctc", "lm", "length_bonus"))
    weights = {"decoder": 0.7, "ctc": 0.3, "lm": 0.6, "length_bonus": 3.0, "ngram": 9.0}
    model.beam_search.weights = weights
    [(_, _, _, hyp)] = chosen(model, decode)
    assert hyp.word_confidence == pytest.approx([0.9, 0.5])


@pytest.mark.parametrize("penalty", [0.0, 3.0])
@pytest.mark.parametrize(
    "hyp_primer", [None, [7, 8, 9], torch.tensor([7, 8, 9]), [[5], [7, 8, 9], [7]]]
)
def test_where_only_the_sum_of_scores_is_known(hyp_primer, penalty):
    """Of two labels and the end label: .001 for all is .1 for each."""
    text, tokens, ids, hyp = result("A B", 0.001)
    primer = [1] if hyp_primer is None else [7, 8, 9]
    yseq = torch.tensor([*primer, *ids, 1])
    score = Score(hyp.score + 3 * penalty)
    nbest = [(text, tokens, ids, EspnetHypothesis(yseq=yseq, score=score))]
    model, decode = fake_model(nbest, search="espnet", confidence="label_probability")
    model.beam_search.scorers = dict.fromkeys(("decoder", "length_bonus"))
    model.beam_search.weights = {"decoder": 1.0, "length_bonus": penalty}
    model.beam_search.hyp_primer = hyp_primer
    assert chosen(model, decode)[0][-1].word_confidence == pytest.approx([0.1, 0.1])


def test_label_smoothing_is_taken_back_where_confidences_are_combined(nbest):
    """Of e = .1 and 101 labels: .9 becomes 1, .1 + .001 - .0001 a ninth."""
    assert label_smoothing(fake_model(nbest, smoothing=0.1)[0]) == 0.1
    model, decode = fake_model(nbest, smoothing=0.1, confidence="combined")
    [(_, _, _, hyp)] = chosen(model, decode)
    half = (0.5 - 0.001) / (0.9 - 0.001)
    assert hyp.word_confidence == pytest.approx([(7 / 8) ** 0.5, (half / 2) ** 0.5])
    model, decode = fake_model(nbest, smoothing=0.1, confidence="label_probability")
    assert chosen(model, decode)[0][-1].word_confidence == pytest.approx([0.9, 0.5])


def test_label_smoothing_that_the_search_takes_out_is_not_taken_out_again(nbest):
    model, _ = fake_model(nbest, smoothing=0.1)
    model.beam_search.label_smoothing = 0.1
    assert label_smoothing(model) == 0.0


def test_label_smoothing_of_a_sum_of_scorers_is_not_known(nbest):
    model, _ = fake_model(nbest, smoothing=0.1)
    model.beam_search.scorers["length_bonus"] = None  # tells no labels apart
    assert label_smoothing(model) == 0.1
    model.beam_search.scorers["lm"] = None
    assert label_smoothing(model) == 0.0


def test_temperatures(nbest):
    model, decode = fake_model(
        nbest,
        confidence="posterior",
        posterior_temperature=0.5,
        confidence_temperature=2,
    )
    [(_, _, _, hyp)] = chosen(model, decode)
    # squares: 16, 9 and 1
    assert hyp.posterior == pytest.approx(16 / 26)
    expected = [(25 / 26) ** 0.5, (16 / 26) ** 0.5]
    assert hyp.word_confidence == pytest.approx(expected)


def test_minimum_bayes_risk_and_the_confidences_of_its_words(nbest):
    # errors expected: A B .3 + 2 * .1 = .5; A C .4 + .1 = .5; B C 2 * .4 + .3 = 1.1;
    # with B C at .2, A C has the fewest
    nbest = [*nbest[:2], result("B C", 0.2, 0.1, 0.4, 1.0)]
    model, decode = fake_model(nbest, decide="mbr", confidence="posterior", nbest=2)
    first, second = chosen(model, decode)
    assert (first[0], second[0]) == ("A C", "A B")
    assert first[-1].word_confidence == pytest.approx([7 / 9, 5 / 9])
    assert second[-1].word_confidence == pytest.approx([7 / 9, 4 / 9])


def test_lists_within_what_espnet_returns(nbest):
    """Of two speakers, with predictions of the encoder, and of a batch of such."""
    model, _ = fake_model(nbest, confidence="posterior")
    other = {3: ["A"]}
    for results, places in (
        ([nbest, nbest], lambda r: [r[0], r[1]]),
        ((nbest, other), lambda r: [r[0]]),
        ([(nbest, other), (nbest, other)], lambda r: [r[0][0], r[1][0]]),
    ):
        found = chosen(model, lambda results=results: results)
        assert type(found) is type(results)
        for [(text, _, _, hyp)] in places(found):
            assert (text, hyp.word_confidence) == (
                "A B",
                pytest.approx([7 / 8, 1 / 2]),
            )


def test_the_number_returned_is_as_it_was_whatever_happens(nbest):
    model, _ = fake_model(nbest, decide="mbr", nbest=2)

    def fail():
        assert model.nbest == 3
        raise RuntimeError

    with pytest.raises(RuntimeError):
        chosen(model, fail)
    assert model.nbest == 2


# --- ESPnet's models ------------------------------------------------------------------


@pytest.mark.parametrize("search", ["explicit_length", "simple", "espnet"])
def test_the_functions_say_what_the_options_do(search, transformer_model, waves):
    """An n-best list that was asked for says the same as the options."""
    options = {**DECODING, "search": search}
    plain = Speech2Text(**transformer_model.files, **options, nbest=4)
    sure = Speech2Text(
        **transformer_model.files, **options, confidence="posterior", decide="mbr"
    )
    assert sure.nbest == 1
    for wave in waves.values():
        nbest = minimum_bayes_risk(plain(wave))
        [result] = sure(wave)
        assert outputs([result]) == outputs(nbest[:1])
        assert result[-1].word_confidence == pytest.approx(word_confidence(nbest))
        assert result[-1].label_confidence == pytest.approx(label_confidence(nbest))


@needs_batches
@pytest.mark.parametrize("search", ["explicit_length", "espnet"])
def test_a_batch_has_what_each_utterance_has_alone(search, transformer_model, waves):
    """But for the padding with which ESPnet's own search encodes a batch."""
    model = Speech2Text(
        **transformer_model.files, **DECODING, search=search, confidence="combined"
    )
    together = model(list(waves.values()))
    for wave, results in zip(waves.values(), together):
        [alone], [of_batch] = model(wave), results
        assert of_batch[-1].word_confidence == pytest.approx(
            alone[-1].word_confidence, abs=5e-3
        )


def test_audio_that_cannot_be_decoded_has_no_words(transformer_model, waves):
    model = Speech2Text(**transformer_model.files, **OURS, confidence=True)
    _, [(text, _, _, hyp)] = model([waves["utt1"], np.zeros(0)])
    assert (text, hyp.word_confidence, hyp.label_confidence) == ("", [], [])


def test_labels_have_the_log_prob_that_the_search_adds_up(transformer_model, waves):
    model = Speech2Text(**transformer_model.files, **OURS, confidence=True)
    [(_, _, ids, hyp)] = nbest = model(waves["utt2"])
    assert sum(hyp.label_scores) == pytest.approx(hyp.original_score, abs=1e-4)
    _, labels = confidence_of(model, nbest, 1, "label_probability")
    assert labels.tolist() == pytest.approx(np.exp(hyp.label_scores[:-1]).tolist())
    assert len(labels) == len(ids)


def test_another_search_goes_on_with_the_options(transformer_model, waves):
    model = Speech2Text(
        **transformer_model.files, **OURS, confidence=True, decide="mbr"
    )
    assert model.beam_search.options.nbest == 4
    use_search(model, "simple", beam_size=6)
    assert model.beam_search.options.nbest == 6
    assert model.beam_search.keep_label_scores
    [(_, _, _, hyp)] = model(waves["utt1"])
    assert hyp.posterior < 1
    use_search(model, "espnet")
    assert len(model(waves["utt1"])) == 1


@pytest.mark.parametrize("nbest", [1, 2])
def test_a_search_whose_own_list_is_shorter_returns_no_more_later(
    nbest, transformer_model, waves
):
    model = Speech2Text(
        **transformer_model.files,
        **OURS,
        confidence="label_probability",
        nbest=3,
        search_conf={"nbest": nbest},
    )
    assert [len(model(waves["utt1"])) for _ in range(3)] == 3 * [nbest]


def test_without_confidences_nothing_is_kept(transformer_model, waves):
    model = Speech2Text(**transformer_model.files, **OURS)
    assert model.beam_search.options.nbest == 1
    [(_, _, _, hyp)] = model(waves["utt1"])
    assert (hyp.word_confidence, hyp.posterior, hyp.label_scores) == (None, None, None)


def test_the_symbols_of_a_primer_are_certain(model_of, waves):
    model = s2t.Speech2Text(
        **model_of("s2t").files,
        **OURS,
        confidence="label_probability",
        lang_sym="<deu>",
        task_sym="<st_deu>",
    )
    [(_, tokens, _, _, hyp)] = model(waves["utt1"])
    assert tokens[:3] == ["<deu>", "<st_deu>", "<notimestamps>"]
    assert hyp.label_confidence[:3] == [1.0, 1.0, 1.0]
    assert len(hyp.label_confidence) == len(tokens)


def test_a_source_text_that_is_searched_too_is_left_alone(model_of, waves):
    model = st.Speech2Text(**model_of("st_multi").files, **OURS, confidence=True)
    [(_, _, _, hyp)], source = model(waves["utt1"])
    assert hyp.label_confidence is not None
    assert source[0][3].label_confidence is None


@pytest.mark.parametrize(
    "message, options",
    [
        ("confidence must be true, false, combined", {"confidence": "sure"}),
        ("decide must be map or mbr", {"decide": "vote"}),
        ("beam_size 1 leaves one alone", {"confidence": True, "beam_size": 1}),
        ("search_conf: nbest would", {"decide": "mbr", "search_conf": {"nbest": 1}}),
    ],
)
@pytest.mark.parametrize("tag", [False, True])
def test_mistakes_are_named_before_a_model_is_loaded(message, options, tag):
    """There is no such model."""
    with pytest.raises(ValueError, match=message):
        if tag:
            Speech2Text.from_pretrained("nobody/nothing", **{**OURS, **options})
        else:
            Speech2Text("gone.yaml", "gone.pth", **{**OURS, **options})
