"""What is to be made of an n-best list: the options, alone and beside others."""

import pytest

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.posteriors import (
    PosteriorOptions,
    check_posteriors,
    check_times,
)


def check(search="explicit_length", conf=None, options=None, **own):
    return check_posteriors(search, conf or {}, own, options or {})


def test_nothing_is_made_of_it_unless_it_is_asked_for():
    options = check()
    assert not options.changes_results
    assert options.n_compared("explicit_length", 16, 1) == 1


@pytest.mark.parametrize("value", [True, "true", "yes", "1"])
def test_confidence_is_the_usual_one_of_the_search(value):
    options = check(confidence=value)
    assert options.measure("explicit_length") == "combined"
    assert options.measure("simple") == "label_probability"
    assert options.measure("espnet") == "label_probability"
    assert options.n_compared("simple", 16, 2) == 2


@pytest.mark.parametrize("value", [False, None, "false", "off"])
def test_no_confidence(value):
    assert check(confidence=value).measure("explicit_length") is None


@pytest.mark.parametrize("search", ["explicit_length", "simple", "espnet"])
def test_a_confidence_by_name_is_that_of_any_search(search):
    for name in ("combined", "posterior", "label_probability"):
        assert check(search, confidence=name).measure(search) == name


@pytest.mark.parametrize(
    "value, expected",
    [
        (True, True),
        ("true", True),
        ("yes", True),
        ("ctc", "ctc"),
        ("attention", "attention"),
        (False, False),
        (None, False),
        ("false", False),
    ],
)
def test_times(value, expected):
    options = check(times=value)
    assert options.times is expected or options.times == expected
    assert options.changes_results == bool(expected)
    assert not options.uses_posteriors("explicit_length")  # one hypothesis is enough
    assert options.n_compared("explicit_length", 16, 2) == 2


@pytest.mark.parametrize(
    "times, streams, hears, message",
    [
        (True, True, True, "times: true: in streaming the audio .*: leave times out"),
        ("ctc", False, False, "times: ctc: a text has no times, .*: leave times out"),
    ],
)
def test_tools_without_times(times, streams, hears, message):
    with pytest.raises(OptionError, match=message):
        check_times(times, streams, hears)
    check_times(False, streams, hears)
    check_times(times, False, True)


@pytest.mark.parametrize(
    "own, beam_size, nbest, compared",
    [
        ({"confidence": True}, 16, 1, 16),
        ({"decide": "mbr"}, 16, 20, 20),
        ({"decide": "mbr"}, 5000, 1, 256),
        ({"decide": "mbr", "posterior_nbest": "1000"}, 5000, 1, 1000),
    ],
)
def test_so_many_hypotheses_are_compared(own, beam_size, nbest, compared):
    assert check(**own).n_compared("explicit_length", beam_size, nbest) == compared


@pytest.mark.parametrize(
    "message, own",
    [
        ("decide must be map or mbr, not 'MBR'", {"decide": "MBR"}),
        ("confidence must be true, false, combined or", {"confidence": "words"}),
        ("confidence must be true, false, combined or", {"confidence": 0.5}),
        ("times must be true, false, ctc or attention", {"times": "words"}),
        ("times must be true, false, ctc or attention", {"times": 0.5}),
        ("posterior_nbest must be a whole", {"posterior_nbest": 0, "decide": "mbr"}),
        ("posterior_temperature must be", {"posterior_temperature": 0}),
        ("posterior_temperature must be", {"posterior_temperature": "warm"}),
        ("posterior_temperature has no effect", {"posterior_temperature": 2.0}),
        ("posterior_nbest has no effect .* or decide: mbr", {"posterior_nbest": 5}),
        (
            "posterior_nbest has no effect",
            {"posterior_nbest": 5, "confidence": "label_probability"},
        ),
        (
            "confidence_temperature has no effect without confidence: combined$",
            {"confidence_temperature": 2, "decide": "mbr"},
        ),
        ("posterior_nbest 1 leaves one", {"posterior_nbest": 1, "decide": "mbr"}),
        (
            "posterior_nbest 4 are compared, fewer than the 5 that nbest returns",
            {"posterior_nbest": 4, "decide": "mbr", "options": {"nbest": 5}},
        ),
    ],
)
def test_what_is_wrong_is_named(message, own):
    with pytest.raises(ValueError, match=message):
        check(**own)


@pytest.mark.parametrize(
    "message, conf, options",
    [
        ("confidence: true: ctc_greedy: the best path", {}, {"ctc_greedy": True}),
        ("confidence: true: time_sync: time-synch", {}, {"time_sync": True}),
        ("search_conf: nbest would take from confidence: true", {"nbest": 2}, {}),
        ("confidence: true compares .* beam_size 1", {}, {"beam_size": 1}),
    ],
)
def test_what_does_not_go_with_it_is_named(message, conf, options):
    with pytest.raises(ValueError, match=message):
        check(conf=conf, options=options, confidence=True)


@pytest.mark.parametrize("times", [True, "ctc"])
def test_there_are_no_times_without_a_search(times):
    message = f"times: {str(times).lower()}: ctc_greedy: the best path"
    with pytest.raises(ValueError, match=message):
        check(options={"ctc_greedy": True}, times=times)


def test_a_beam_of_one_has_label_probabilities():
    assert check("simple", options={"beam_size": 1}, confidence=True).changes_results


def test_options_are_what_a_journal_compares():
    """A switch is the same however it is written."""
    assert check(confidence="yes") == PosteriorOptions(confidence=True)
