"""Which of ESPnet's tools is to decode, for commands that can be any of them.

``--tool`` says it. Where nothing is said, the options that name a model do, for each
tool's begin with other letters, and so does what a packed model on disk holds.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.decoding import peek_config
from espnet_lenbias.options.espnet_tools import ASR, TOOLS, Tool, owner_of
from espnet_lenbias.options.packed_model import packed_options
from espnet_lenbias.options.values import nearest

# What --tool can be: `mt`, or as ESPnet's tool is called `mt_inference`.
CHOICES = {tool.key: tool for tool in TOOLS if not tool.streams}
_BY_NAME = CHOICES | {tool.name: tool for tool in TOOLS}
_BY_NAME |= {f"{tool.key}_streaming": tool for tool in TOOLS if tool.streams}

# What names a packed model, here and in `explain`.
_TAGS = ("model_tag", "model")


def add_tool_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that :func:`choose_tool` looks for."""
    parser.add_argument(
        "--tool",
        metavar="{" + ",".join(CHOICES) + "}",
        help="Whose model it is: speech recognition (the default, Whisper too), speech "
        "translation, text translation, OWSM, spoken language understanding. Needed "
        "for a tag of the model zoo alone: else the model says it",
    )


def choose_tool(cmd: Sequence[str]) -> Tool:
    """Return the tool that a command line, or its decode config, asks for.

    Raises:
        OptionError: There is no such tool, or it does not decode whole utterances.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    owners = {key: tool for tool in CHOICES.values() for key in tool.model_options}
    for option in ("tool", "config", *_TAGS, *owners):
        finder.add_argument(f"--{option}", nargs="?")
    found = {k: v for k, v in vars(finder.parse_known_args(cmd)[0]).items() if v}
    options = {**peek_config(found.get("config")), **found}
    models = {str(options[key]) for key in (*_TAGS, *owners) if options.get(key)}
    held = {key: path for path in models for key in packed_options(Path(path))}
    held |= {key: str(options[key]) for key in owners if options.get(key)}
    if options.get("tool") is None:
        return next((owners[key] for key in sorted(held.keys() & owners.keys())), ASR)
    tool = _named(str(options["tool"]))
    for key, model in held.items():
        check_tool(tool, model, [key])
    return tool


def check_tool(tool: Tool, model: str, files: Iterable[str]) -> None:
    """Verify that a model is one that a tool decodes with.

    Args:
        tool: The tool.
        model: What names the model.
        files: The names of the options that hold its files.

    Raises:
        OptionError: It is another tool's.
    """
    names = set(files)
    other = owner_of(names)
    if other is not None and not names & {*tool.model_options}:
        raise OptionError(
            f"tool: {model} is a model of {other.key}, and not of {tool.key}: say "
            f"--tool {other.key}"
        )


def _named(name: str) -> Tool:
    tool = _BY_NAME.get(name)
    if tool is None:
        raise OptionError(
            f"tool: there is no tool {name!r}{nearest(name, CHOICES)} (one of: "
            f"{', '.join(CHOICES)})"
        )
    if tool.streams:
        raise OptionError(
            f"tool: {name} takes an utterance chunk by chunk, in one process: run "
            f"python -m {tool.drop_in}, or say --tool {tool.key} for whole utterances"
        )
    return tool
