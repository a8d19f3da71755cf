"""What `explain` and `transcribe` share: options of their own, and those of decoding.

The model is named by ``--model``, what is decoded by arguments, and all else as for the
drop-in of the tool whose model it is.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.data_files import DATA
from espnet_lenbias.options.decoding import get_parser as inference_parser
from espnet_lenbias.options.decoding import parse, peek_config
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.output_folder import named_path
from espnet_lenbias.options.packed_model import check_owner, model_files
from espnet_lenbias.options.tool_choice import check_tool
from espnet_lenbias.options.values import take_as_written

# Of the options of decoding those that say what is decoded.
_OF_DATA = (DATA, "segments", "key_file")


def own_parser(prog: str, usage: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of what a command takes beyond the decoding options: the model.

    That of its inputs is not among them: where they stand only the parser can tell that
    knows all options.

    Args:
        prog: The command.
        usage: Its usage.
        doc: Of its module, whose first paragraph is only its name.
    """
    parser = argparse.ArgumentParser(
        prog=prog,
        usage=usage,
        description=(doc or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    take_as_written(parser)
    parser.add_argument(
        "--model",
        required=True,
        help="packed model (.zip), or a tag of the model zoo",
    )
    return parser


def parse_own(
    parser: argparse.ArgumentParser, cmd: Sequence[str]
) -> tuple[argparse.Namespace, list[str]]:
    """Return a command's own options, and what else is on the command line.

    Args:
        parser: See :func:`own_parser`. A decode config can say its `output_dir`, too.
        cmd: The command line.
    """
    own, rest = parser.parse_known_args(cmd)
    folder = said(cmd, "output_dir").get("output_dir")
    if isinstance(folder, str):  # of what is no text the parser of decoding tells
        try:
            own.output_dir = named_path(folder)
        except argparse.ArgumentTypeError as e:
            parser.exit(2, f"{parser.prog}: error: output_dir: {e}\n")
    return own, rest


def said(cmd: Sequence[str], *keys: str) -> dict[str, Any]:
    """Return what a command line, or else its decode config, says of these options."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for key in ("config", *keys):
        finder.add_argument(f"--{key}", nargs="?")
    found = vars(finder.parse_known_args(cmd)[0])
    config = peek_config(found.pop("config"))
    of_config = {key: config[key] for key in keys if key in config}
    return of_config | {k: value for k, value in found.items() if value is not None}


def decoding_parser(
    tool: Tool, prog: str, usage: str, **defaults: Any
) -> argparse.ArgumentParser:
    """Return the parser of the decoding options, to which inputs can be added.

    Args:
        tool: Whose options they are.
        prog: The command.
        usage: Its usage.
        **defaults: Of options, which are not ESPnet's.
    """
    parser = inference_parser(tool.module)
    parser.prog, parser.usage = prog, usage
    # Short forms of the command's own options would be taken for those of decoding.
    parser.allow_abbrev = False
    parser.set_defaults(**defaults)
    for action in parser._actions:
        if action.dest == DATA:
            action.default, action.required = [], False
    return parser


def parse_decoding(
    parser: argparse.ArgumentParser,
    tool: Tool,
    own: argparse.Namespace,
    rest: Sequence[str],
    how_named: str,
) -> argparse.Namespace:
    """Return the options of decoding, verified; exit with status 2 on a mistake.

    Args:
        parser: See :func:`decoding_parser`.
        tool: Whose options they are.
        own: The command's own options.
        rest: The others on the command line, and the inputs.
        how_named: How the command is told what to decode.

    Raises:
        OptionError: They name a model, or what to decode.
    """
    args = parse(parser, ["--output_dir", str(own.output_dir), *rest])
    for key in (*tool.model_options, "model_tag"):
        if getattr(args, key) is not None:
            raise OptionError(f"{key}: the model is named by --model: leave {key} out")
    args.model_tag = own.model
    for key in _OF_DATA:
        if getattr(args, key):
            raise OptionError(f"{key}: {how_named}: leave {key} out")
    return args


def files_of_model(tool: Tool, model: str) -> dict[str, str]:
    """Return the files of a model; fetch them where it is of the model zoo.

    Args:
        tool: Whose model it is to be.
        model: A tag of the model zoo, or a packed model.

    Raises:
        OSError: A file cannot be read.
        OptionError: It is none, or no model of this tool.
    """
    with _named_as_here():
        files = model_files(model)
        check_tool(tool, model, files)
        check_owner(model, files, tool)
    return files


@contextmanager
def _named_as_here() -> Iterator[None]:
    """Have errors of a model name the option as a person has written it."""
    try:
        yield
    except (OSError, OptionError) as e:
        name, colon, what = str(e).partition(": ")
        if name != "model_tag":
            raise
        raise type(e)(f"model{colon}{what}") from e
