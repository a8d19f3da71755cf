"""What options can be: argparse takes anything for them from a config."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from espnet_lenbias.options.espnet_options import COUNTS
from espnet_lenbias.options.values import count, number, switch, whole

# They are read before a config is.
_OF_THE_COMMAND_LINE = ("help", "config")

# How options end that name files and models, of which others tell what is no such name.
_NAMES = ("_file", "_config", "model_tag")

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


def check_config(parser: argparse.ArgumentParser, config: Mapping[str, Any]) -> None:
    """Verify the types of what a decode config says, which argparse takes as it is.

    Args:
        parser: Of a tool, which has not read the config: its defaults are its own.
        config: What the file holds, no key of it unknown.

    Raises:
        ValueError: Names the option.
    """
    for action in parser._actions:
        key, value = action.dest, config.get(action.dest)
        if key not in config or (value is None and action.default is None):
            continue
        if key in _OF_THE_COMMAND_LINE:
            raise ValueError(f"{key} is an option of the command line alone")
        if isinstance(action, argparse._AppendAction):
            if not isinstance(value, list) or not all(map(_is_triple, value)):
                raise ValueError(
                    f"{key} must be a list of lists [FILE, NAME, TYPE], not {value!r}"
                )
        elif type(action).__name__ == "NestedDictAction":
            if not isinstance(value, Mapping | None):
                raise ValueError(f"{key} must be a mapping of options, not {value!r}")
        elif action.type is int:
            (count if key in COUNTS else whole)(key, value)
        elif action.type is float:
            number(key, value)
        elif getattr(action.type, "__name__", "") == "str2bool":
            switch(key, value)
        elif key.endswith(_NAMES):
            continue
        elif getattr(action.type, "__name__", "") in ("str", "str_or_none"):
            texts = value if isinstance(value, list) and action.nargs else [value]
            for text in texts:
                if not isinstance(text, str):
                    raise ValueError(
                        f"{key} must be a text, not {text!r}: put it into quotes"
                    )


def _is_triple(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(text, str) for text in value)
    )


def hint(key: str, value: Any) -> str:
    """Return what else to say of a value that is no choice; "" if nothing."""
    if (key, value) == ("dtype", "bfloat16"):
        return "; decoder and language model can compute in it: decoder_dtype: bfloat16"
    return ""
