"""Options that are one of a few: argparse takes anything for them from a config."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

# Option -> the values that it can have.
Choices = Mapping[str, Sequence[Any]]


def choices_of(parser: argparse.ArgumentParser) -> Choices:
    """Return what options can be that are one of a few, before a config is read.

    A config changes the defaults, which are among the choices here. Types of tokens are
    left to what they are compared with, the model: ESPnet takes some from a config alone,
    such as word.
    """
    return {
        action.dest: list(dict.fromkeys([*action.choices, action.default]))
        for action in parser._actions
        if action.choices and not action.dest.endswith("token_type")
    }


def check_choices(choices: Choices, options: Mapping[str, Any]) -> None:
    """Verify the options that are one of a few.

    Args:
        choices: Of the parser, see :func:`choices_of`.
        options: As the parser has read them.

    Raises:
        ValueError: Names the option that is none of them.
    """
    for key, valid in choices.items():
        value = options[key]
        if value not in valid:
            named = ", ".join(str(choice) for choice in valid if choice is not None)
            raise ValueError(
                f"{key} must be one of {named}, not {value!r}{hint(key, value)}"
            )


def hint(key: str, value: Any) -> str:
    """Return what else to say of a value that is no choice; "" if nothing."""
    if (key, value) == ("dtype", "bfloat16"):
        return "; decoder and language model can compute in it: decoder_dtype: bfloat16"
    return ""
