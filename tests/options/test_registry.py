import argparse
import re
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import EntryPoint

import pytest

import espnet_lenbias
from espnet_lenbias import cli
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options import registry
from espnet_lenbias.options.espnet_checks import (
    check_espnet_options,
)
from espnet_lenbias.options.registry import (
    OPTIONS,
    available_searches,
    build_search,
    check_search_conf,
    load_search,
    search_options,
    where_it_belongs,
)
from espnet_lenbias.options.repeat_limit import RepeatLimit
from espnet_lenbias.options.search_conf import SimpleOptions


def _another_packages_search(scorers, weights, *, temperature=1.0):
    """Stand for a search that some other package registers."""


@pytest.fixture
def another_package(monkeypatch):
    points = dict(registry._entry_points())
    points["annealed"] = EntryPoint(
        "annealed", f"{__name__}:_another_packages_search", registry.GROUP
    )
    monkeypatch.setattr(registry, "_entry_points", lambda: points)


class _CannotBeBuilt:
    """Stand for a search that some other package has not finished."""

    def __init__(self, *, warmth: float = 1.0, **espnets):
        raise TypeError("no\nwarmth")


class _NeedsAnOption:
    """Stand for a search with an option that has no default."""

    def __init__(self, *, cold: float, nbest: int | None = None, **espnets): ...


@pytest.fixture
def broken_packages(monkeypatch):
    points = dict(registry._entry_points())
    for name, value in {
        "gone": "no_such_package:Search",
        "nameless": f"{__name__}:NoSuchSearch",
        "unfinished": f"{__name__}:_CannotBeBuilt",
        "demanding": f"{__name__}:_NeedsAnOption",
        "module": __name__,
        "number": "math:pi",
    }.items():
        points[name] = EntryPoint(name, value, registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: points)


@pytest.mark.parametrize(
    "name, message",
    [
        (
            "gone",
            "search: gone is no_such_package:Search of another package, which cannot be "
            "loaded (ModuleNotFoundError: No module named 'no_such_package'): mend or",
        ),
        ("nameless", "search: nameless is "),
        (
            "module",
            f"search: module is {__name__} of another package, which is no class",
        ),
        (
            "number",
            "search: number is math:pi of another package, which is no class: na",
        ),
    ],
)
def test_a_search_that_cannot_be_loaded(name, message, broken_packages, capsys):
    for look in (load_search, search_options, lambda n: check_search_conf(n, {})):
        with pytest.raises(OptionError, match=re.escape(message)):
            look(name)
    assert cli.main(["searches"]) == 0
    listed = capsys.readouterr().out.splitlines()
    (line,) = [line for line in listed if line.startswith(name)]
    assert message in line and line.startswith(f"{name}  # search: ")
    assert "simple" in listed and "    warmth: 1.0" in listed
    assert "    cold:  # needed" in listed


@pytest.mark.parametrize("wrong", ["x", -1, 1.5])
def test_the_nbest_of_another_packages_search(wrong, broken_packages):
    assert check_search_conf("demanding", {"nbest": "3"}) == {"nbest": 3}
    with pytest.raises(
        ValueError, match="search_conf: nbest must be a whole number of"
    ):
        check_search_conf("demanding", {"nbest": wrong})


def test_a_search_that_cannot_be_built(broken_packages):
    like = argparse.Namespace(pre_beam_size=3, beam_size=2, n_vocab=3, sos=2, eos=2)
    for name in (
        *("scorers", "weights", "token_list", "pre_beam_score_key", "return_hs"),
        *("hyp_primer", "normalize_length"),
    ):
        setattr(like, name, None)
    with pytest.raises(
        OptionError, match=r"^search: unfinished cannot be built \(TypeError: no warmth"
    ):
        build_search("unfinished", like)


def test_public_names():
    assert set(espnet_lenbias.__all__) == {
        "AudioError",
        "ExplicitLengthBeamSearch",
        "Hypothesis",
        "OptionError",
        "ScorerError",
        "SimpleBeamSearch",
        "Speech2Text",
        "Trace",
        "label_confidence",
        "minimum_bayes_risk",
        "word_confidence",
        "use_search",
        "available_searches",
        "__version__",
    }
    for name in espnet_lenbias.__all__:
        assert getattr(espnet_lenbias, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Speech2Txt'"):
        _ = espnet_lenbias.Speech2Txt


def test_listing_and_checking_do_not_import_torch():
    code = (
        "import sys, espnet_lenbias as e; "
        "from espnet_lenbias.options.registry import check_search_conf; "
        "check_search_conf('explicit_length', {'score_threshold': 8.0}); "
        "check_search_conf('espnet', {}); "
        "print(e.available_searches(), 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.stdout == "['espnet', 'explicit_length', 'simple'] False\n", out.stderr


def test_searches_are_found_by_name():
    from espnet_lenbias.search.beam_search import (
        ExplicitLengthBeamSearch,
        SimpleBeamSearch,
    )

    assert available_searches() == ["espnet", "explicit_length", "simple"]
    assert load_search("explicit_length") is ExplicitLengthBeamSearch
    assert load_search("simple") is SimpleBeamSearch


def test_another_package_can_add_a_search(another_package):
    assert available_searches() == ["annealed", "espnet", "explicit_length", "simple"]
    assert load_search("annealed") is _another_packages_search
    assert search_options("annealed") == {"temperature": 1.0}
    check_search_conf("annealed", {"temperature": 2})
    with pytest.raises(ValueError, match="no option temprature; did you mean temper"):
        check_search_conf("annealed", {"temprature": 2})
    check_espnet_options("annealed", {"normalize_length": True})  # its own business


def test_unknown_search_names_the_nearest():
    with pytest.raises(ValueError, match="no search 'explicit_lenght'") as e:
        load_search("explicit_lenght")
    assert str(e.value) == (
        "there is no search 'explicit_lenght'; did you mean explicit_length? "
        "(available: espnet, explicit_length, simple)"
    )


@pytest.mark.parametrize(
    "search, conf, message",
    [
        (
            "explicit_length",
            {"eos_threshold": 1.5},
            "eos_threshold is an option of search: simple, not of explicit_length",
        ),
        (
            "simple",
            {"score_threshold": 8.0},
            "score_threshold is an option of search: explicit_length, not of simple",
        ),
        ("espnet", {"length_norm": True}, "an option of search: simple, not of espnet"),
        (
            "explicit_length",
            {"confidence": True},
            "confidence is no option of explicit_length or of another search: it stands",
        ),
        (
            "simple",
            {"beam_size": 4},
            "it stands beside search and search_conf in a dec",
        ),
        (
            "simple",
            {"length_nrom": True},
            "no option length_nrom; did you mean length_n",
        ),
        (
            "explicit_length",
            {"score_threshold": -1},
            "search_conf of explicit_length: score_threshold must be a number of 0 or",
        ),
        ("simple", {"keep_ended": "both"}, "keep_ended must be 'joint' or 'separate'"),
        ("explicit_length", ["score_threshold"], "must be a mapping of options"),
        (
            "simple",
            {"length_norm": True, "length_penalty": 0.6},
            "length_norm is length_penalty: 1: leave one of the two out",
        ),
        ("simple", {"patience": 2}, "patience counts .* say keep_ended: separate"),
        (
            "simple",
            {"patience": 0, "keep_ended": "separate"},
            "patience must be a number above 0, up to 1000 .*, not 0",
        ),
        (
            "explicit_length",
            {"label_smoothing": 1.5},
            "label_smoothing must be a number from 0 to 1 .*lsm_weight.*, not 1.5",
        ),
        ("simple", {"label_smoothing": "auto"}, "label_smoothing must be a number"),
    ],
)
def test_mistakes_in_search_conf(search, conf, message):
    with pytest.raises(ValueError, match=message):
        check_search_conf(search, conf)


def test_what_search_conf_may_hold():
    check_search_conf("explicit_length", {"score_threshold": 8, "nbest": 3})
    check_search_conf("simple", {"length_norm": True, "eos_threshold": 1.5})
    # the n-best size that it needs is ESPnet's option
    check_search_conf("explicit_length", {"exact_nbest": True})


@pytest.mark.parametrize("search", OPTIONS)
def test_defaults_that_are_written_out_say_nothing(search):
    """So that a run with them is the same run as one without."""
    defaults = search_options(search)
    assert check_search_conf(search, defaults) == {}
    if search == "explicit_length":
        asked = {**defaults, "exact_nbest": True, "label_smoothing": "0"}
        assert check_search_conf(search, asked) == {"exact_nbest": True}


@pytest.mark.parametrize("value", [10**22, str(10**22), 1e22, Fraction(10**22)])
def test_whole_numbers_beyond_those_of_torch(value):
    [read] = check_search_conf("explicit_length", {"score_threshold": value}).values()
    assert (type(read), read) == (float, 1e22)


def test_texts_in_search_conf():
    conf = {"score_threshold": "8", "nbest": "3", "exact_nbest": "true"}
    read = {"score_threshold": 8.0, "nbest": 3, "exact_nbest": True}
    assert check_search_conf("explicit_length", conf) == read
    conf = {
        "length_norm": "no",
        "eos_threshold": "1.5",
        "length_reward": "5e-1",
        "coverage": {"weight": "1e-1"},
        "keep_ended": "separate",
    }
    read = {  # without what has its default
        "eos_threshold": 1.5,
        "length_reward": 0.5,
        "coverage": {"weight": 0.1},
        "keep_ended": "separate",
    }
    assert check_search_conf("simple", conf) == read
    assert check_search_conf("simple", read) == read


@pytest.mark.parametrize(
    "search, option, wrong",
    [
        (
            "explicit_length",
            "score_threshold",
            [True, "much", float("nan"), "-1", 10**400],
        ),
        ("explicit_length", "exact_nbest", [2, "maybe"]),
        ("explicit_length", "nbest", [True, "1.5", 0]),
        ("explicit_length", "stop_margin", [True, -1, "x", float("inf")]),
        ("explicit_length", "stop_length", [0, 0.5, "much"]),
        ("simple", "eos_threshold", [False, "0", float("inf")]),
        ("simple", "length_reward", [True, ".inf", None, 1e39, -1e7]),
        ("simple", "length_penalty", ["x", 11, -1000]),
        ("simple", "length_norm", [0.0, "never"]),
        (
            "simple",
            "coverage",
            [0.1, {"weight": True}, {"weight": "x"}, {"weight": 1e39}],
        ),
    ],
)
def test_values_that_are_none(search, option, wrong):
    for value in wrong:
        with pytest.raises(ValueError, match=f"{option}.* must be "):
            check_search_conf(search, {option: value, "nbest": 2} | {option: value})


def test_the_limit_of_repetitions():
    """A number, or a mapping; it comes back in the form in which it was given."""
    for search in ("explicit_length", "simple"):
        for given, read in [
            ("4", 4),
            ({"times": "4"}, {"times": 4}),
            ({"times": 4, "labels": 7.0}, None),
            ({"labels": 7, "times": 1}, {"labels": 7, "times": 1}),
        ]:
            conf = {"repeat_limit": given}
            if given and not read:
                with pytest.raises(
                    ValueError, match=r"repeat_limit\.labels must be a w"
                ):
                    check_search_conf(search, conf)
            else:
                assert check_search_conf(search, conf) == {"repeat_limit": read}
    assert SimpleOptions(repeat_limit=3).repeat_limit == RepeatLimit(3, 100)
    limit = {"times": 3, "labels": 100}
    conf = {"repeat_limit": RepeatLimit(3)}
    assert check_search_conf("simple", conf) == {"repeat_limit": limit}


@pytest.mark.parametrize(
    "limit, message",
    [
        (0, "repeat_limit must be a whole number of 1 or more, not 0"),
        (True, "repeat_limit must be a whole number of 1 or more, not True"),
        (10**24, "repeat_limit must be 2147483647 at most, not 1000000000000000000000"),
        ({"times": 0}, "repeat_limit.times must be a whole number of 1 or more"),
        ({"labels": 9}, "repeat_limit needs times: say"),
        ({"times": 3, "label": 9}, "no option label; did you mean labels?"),
    ],
)
def test_limits_of_repetitions_that_are_none(limit, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        check_search_conf("explicit_length", {"repeat_limit": limit})


def test_a_wrong_key_of_coverage_is_named_with_the_nearest():
    conf = {"coverage": {"weight": 0.1, "treshold": 0.5}}
    message = (
        "search_conf of simple: coverage has no option treshold; did you mean "
        "threshold? (its options: weight, threshold)"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        check_search_conf("simple", conf)
    with pytest.raises(ValueError, match="coverage needs a weight: say"):
        check_search_conf("simple", {"coverage": {"threshold": 0.5}})


def test_where_an_option_belongs():
    assert where_it_belongs("beamsize", ["beam_size"]) == "; did you mean beam_size?"
    assert where_it_belongs("eos_threshold", ["beam_size"]) == (
        "; it is an option of search: simple, and goes into search_conf"
    )
    assert where_it_belongs("xyz", ["beam_size"]) == ""
