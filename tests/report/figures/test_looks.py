"""One look a search, the same in all figures of the project."""

import sys
from pathlib import Path

import pytest
import yaml

from espnet_lenbias.report.figures.looks import Kind, kinds_of, looks
from espnet_lenbias.report.systems import option_names, system_of
from tests.report.made import system

ROOT = Path(__file__).parents[3]
CONF = ROOT / "recipes" / "librispeech" / "conf"


def kind(search, *options, models=(False, False)):
    return Kind(search, frozenset(options), models)


@pytest.fixture
def recipe_kinds():
    """Return the kinds of the rows of the paper's recipe: the paper's, ESPnet's, rivals."""
    kinds = {}
    for path in sorted(CONF.glob("decode_*.yaml")):
        described = system_of(path.stem, yaml.safe_load(path.read_text()))
        kinds[path.stem] = Kind(described.search, described.options)
    return kinds


def test_the_paper_s_searches_differ_in_colour_and_marker(recipe_kinds):
    assert len(recipe_kinds) == 20
    chosen = looks(recipe_kinds).values()
    assert len({look.colour for look in chosen}) == 20
    assert len({(look.marker, look.line) for look in chosen}) == 20


def test_a_search_looks_the_same_whatever_it_is_compared_with(recipe_kinds):
    together = looks(recipe_kinds)
    for label, own in recipe_kinds.items():
        assert looks({label: own}) == {label: together[label]}
    backwards = dict(reversed(recipe_kinds.items()))
    assert looks(backwards) == together


def test_a_report_and_a_comparison_agree():
    row = system("my row", search="explicit_length")
    (of_report,) = looks(kinds_of([row])).values()
    assert of_report == looks({"explicit_length": kind("explicit_length")}).popitem()[1]
    assert of_report.is_highlighted


def test_a_search_looks_the_same_with_and_without_lm():
    """They are in different panels; two values of an option are in one."""
    options = {"search": "simple", "options": frozenset({"eos_threshold"})}
    one = system("simple + eos_threshold 1", **options)
    two = system("simple + eos_threshold 2", **options)
    with_lm = system("simple + eos_threshold 2", lm_weight=0.3, **options)
    first, second = looks(kinds_of([one, two])).values()
    assert first != second
    first, second = looks(kinds_of([one, with_lm])).values()
    assert first == second


@pytest.mark.parametrize("search", ["simple", "espnet", "explicit_length", "another"])
def test_24_rows_of_one_kind_differ(search):
    kinds = {f"row {n}": kind(search, "x") for n in range(23)}
    kinds = {"plain": kind(search), **kinds}
    chosen = list(looks(kinds).values())
    assert len(chosen) == 24
    assert len({(look.colour, look.marker, look.line) for look in chosen}) == 24


def test_nothing_but_the_proposed_search_is_highlighted(recipe_kinds):
    kinds = {**recipe_kinds, "pruned": kind("explicit_length", "score_threshold", "x")}
    chosen = looks(kinds)
    highlighted = [label for label, look in chosen.items() if look.is_highlighted]
    assert highlighted == ["decode_explicit_length"]
    widest = max(chosen, key=lambda label: chosen[label].width)
    assert widest in ("decode_espnet", "decode_explicit_length")
    assert chosen["pruned"].colour == chosen["decode_explicit_length"].colour


def test_coverage_with_and_without_threshold_are_two_options():
    assert option_names({"coverage": {"weight": 0.1}}) == {"coverage"}
    both = {"coverage": {"weight": 0.1, "threshold": 0.5}, "length_norm": False}
    assert option_names(both) == {"coverage.threshold"}


def test_the_bench_draws_searches_alike(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "recipes" / "speed"))
    for name in ("figure", "beams"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    from figure import LOOKS

    assert LOOKS["explicit_length"] == looks({"x": kind("explicit_length")})["x"]
    assert LOOKS["espnet"] == looks({"x": kind("espnet")})["x"]
