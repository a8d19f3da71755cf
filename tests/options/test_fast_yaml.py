"""Configs read and written by libyaml."""

import pytest
import yaml

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.fast_yaml import fast_yaml, read_config

CONFIG = {"token_list": ["<blank>", "Ġé", "yes", "0.5", "#"], "a": None, "b": [1, 5e-4]}


def test_the_same_is_read_and_written():
    slow = yaml.safe_dump(CONFIG)
    with fast_yaml():
        assert yaml.SafeLoader is getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        assert yaml.safe_load(slow) == CONFIG
        fast = yaml.safe_dump(CONFIG)
    assert yaml.safe_load(fast) == CONFIG


def test_it_ends_with_the_context_whatever_ends_that():
    classes = yaml.SafeLoader, yaml.SafeDumper
    with pytest.raises(yaml.YAMLError), fast_yaml():
        yaml.safe_load("a: [")
    assert (yaml.SafeLoader, yaml.SafeDumper) == classes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 1\n", "lines 1 and 3 have a"),
        ("a:\n  x: 1\n  y: 1\n  x: 2\n", "lines 2 and 4 have x"),
        ("a: [1, {x: 1,\n x: 2}]\n", "lines 1 and 2 have x"),
        ("a: 1\nb: {x: 8, x: 0}\n", "line 2 has x twice"),
    ],
)
def test_an_option_twice(text, message, tmp_path):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(OptionError, match=f"c.yaml: {message}"):
        read_config(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    "text",
    [
        *("a: [", "a: \0", "row: 2024-02-30", "x: 0x_", "[" * 10000),
        *("a: !!timestamp x", "a: !!bool x", 'a: !!int ""', "a: !x y"),
    ],
)
def test_what_is_no_yaml_is_told_in_a_line(text, tmp_path):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(OptionError, match="c.yaml: not a yaml file: .") as raised:
        read_config(tmp_path / "c.yaml")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["a: &x [*x]", "a: &x {b: [1, *x]}", "&x [[*x]]"])
def test_a_value_that_holds_itself(text, tmp_path):
    (tmp_path / "c.yaml").write_text(text)
    message = "c.yaml: an alias stands within what it names: write out what is meant"
    with pytest.raises(OptionError, match=message):
        read_config(tmp_path / "c.yaml")


def test_the_same_option_in_two_places_of_a_config(tmp_path):
    (tmp_path / "c.yaml").write_text("a: &a {x: 1}\nb: {x: 2, c: *a, d: [*a, *a]}\n")
    x = {"x": 1}
    assert read_config(tmp_path / "c.yaml") == {
        "a": x,
        "b": {"x": 2, "c": x, "d": [x, x]},
    }
