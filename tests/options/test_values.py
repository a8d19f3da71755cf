"""Whole numbers of command lines, and switches."""

import argparse

import pytest

from espnet_lenbias.options.values import from_one, from_zero, switch


@pytest.mark.parametrize(
    "read, right, wrong",
    [(from_one, ["1", "20"], ["0", "-4", "x", "1.5"]), (from_zero, ["0"], ["-1", ""])],
)
def test_what_is_below_is_refused(read, right, wrong):
    assert [read(text) for text in right] == list(map(int, right))
    for text in wrong:
        with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number"):
            read(text)


@pytest.mark.parametrize("value", [True, 1, "1", "true", "Yes", "on", "t"])
def test_a_switch_is_read_as_on_a_command_line(value):
    assert switch("times", value) is True


@pytest.mark.parametrize("value", [False, 0, "0", "false", "No", "off", "f"])
def test_a_switch_that_is_off(value):
    assert switch("times", value) is False


@pytest.mark.parametrize("value", [2, -1, 0.0, 1.0, "2", "", None, [1]])
def test_what_is_no_switch(value):
    with pytest.raises(ValueError, match="times must be true or false, not"):
        switch("times", value)
