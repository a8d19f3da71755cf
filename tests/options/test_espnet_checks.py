"""Options of ESPnet's own beside a search."""

import sys

import pytest

import espnet_lenbias
from espnet_lenbias.options.espnet_checks import (
    check_espnet_options,
    check_lm_files,
    check_nbest,
)


@pytest.mark.parametrize(
    "option", ["streaming", "time_sync", "partial_ar", "hugging_face_decoder"]
)
def test_other_kinds_of_decoding_are_refused(option):
    check_espnet_options("espnet", {option: True})
    check_espnet_options("simple", {option: False})
    with pytest.raises(ValueError, match=f"{option}: .* does not go with search: simp"):
        check_espnet_options("simple", {option: True})


def test_normalize_length_is_refused():
    with pytest.raises(ValueError, match="search: simple: say length_norm: true"):
        check_espnet_options("simple", {"normalize_length": True})
    with pytest.raises(ValueError, match="it has no length bias to correct"):
        check_espnet_options("explicit_length", {"normalize_length": True})
    check_espnet_options("espnet", {"normalize_length": True})


@pytest.mark.parametrize("name", ["espnet", "simple"])
@pytest.mark.parametrize("option", ["beam_size", "nbest", "batch_size"])
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "0", "4.0", "many", None])
def test_counts_are_whole_numbers(name, option, value):
    check_espnet_options(name, {option: 1})
    with pytest.raises(ValueError, match=f"{option} must be a whole number of 1 or mo"):
        check_espnet_options(name, {option: value})


def test_espnets_search_may_have_any_weight_and_length():
    check_espnet_options("espnet", {"ctc_weight": 2.0, "minlenratio": 1.5})
    with pytest.raises(ValueError, match="ctc_weight must be from 0 to 1 .* not 2.0"):
        check_espnet_options("simple", {"ctc_weight": 2.0})


@pytest.mark.parametrize("key", ["penalty", "lm_weight", "ngram_weight", "asr_penalty"])
@pytest.mark.parametrize("value", [1e39, -1e7])
def test_weights_that_leave_nothing_of_a_log_prob(key, value):
    with pytest.raises(ValueError, match=f"{key} must be from -1e.06 to 1e.06, not"):
        check_espnet_options("explicit_length", {key: value})


# Of a text, ESPnet's parser makes a number: int("4"), float("5e-1").
AS_TEXT = {
    "beam_size": ("4", 4),
    "asr_nbest": ("2", 2),
    "lm_weight": ("6e-1", 0.6),
    "asr_penalty": ("-.5", -0.5),
    "ctc_weight": ("0", 0.0),
    "maxlenratio": ("-5", -5.0),
}


@pytest.mark.parametrize("search", ["espnet", "simple", "explicit_length"])
@pytest.mark.parametrize("option", AS_TEXT)
def test_numbers_that_are_text(search, option):
    text, read = AS_TEXT[option]
    given = {option: text, "batch_size": 3, "device": "cpu"}
    assert check_espnet_options(search, given) == {**given, option: read}
    for wrong in (True, False, None, "much", [1], "1;2"):
        with pytest.raises(ValueError, match=f"{option} must be a"):
            check_espnet_options(search, {option: wrong})


@pytest.mark.parametrize("value", [float("inf"), float("nan"), ".inf", "inf", "-inf"])
@pytest.mark.parametrize("search", ["espnet", "simple"])
@pytest.mark.parametrize("option", ["maxlenratio", "asr_minlenratio", "penalty"])
def test_numbers_are_finite(search, option, value):
    with pytest.raises(ValueError, match=f"{option} must be a number, not"):
        check_espnet_options(search, {option: value})


@pytest.mark.parametrize("option", ["maxlenratio", "asr_minlenratio"])
@pytest.mark.parametrize("value", [1001, "1e20", -100_001])
def test_no_text_is_so_long(option, value):
    with pytest.raises(ValueError, match=f"{option} must be from -100000 "):
        check_espnet_options("simple", {option: value})


@pytest.mark.parametrize("option", ["ngram_file", "asr_ngram_file"])
@pytest.mark.parametrize("search", ["espnet", "simple"])
def test_an_n_gram_model_without_kenlm(monkeypatch, option, search):
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(espnet_lenbias.OptionError, match=f"{option}: .* kenlm, which"):
        check_espnet_options(search, {option: "4gram.bin"})
    check_espnet_options(search, {option: None})


def test_the_nbest_of_a_search_is_within_espnets():
    check_nbest({"nbest": 2}, {"nbest": 2})
    check_nbest({"nbest": None}, {"nbest": 2})  # all that there are
    check_nbest({}, {})
    with pytest.raises(ValueError, match="nbest 2, .* leave 1: set nbest to 2 there"):
        check_nbest({"nbest": 2}, {})


@pytest.mark.parametrize("prefix", ["", "src_"])
def test_a_language_model_takes_two_files(prefix):
    config, file = (f"{prefix}lm_{key}" for key in ("train_config", "file"))
    check_lm_files({config: "config.yaml", file: "model.pth"})
    check_lm_files({config: None, file: None})
    for given, missing in ((config, file), (file, config)):
        with pytest.raises(ValueError, match=f"^{given}: .* name its {missing}, too"):
            check_lm_files({given: "x", missing: None})
