"""Configs read and written by libyaml."""

import pytest
import yaml

from espnet_lenbias.options.fast_yaml import fast_yaml

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
