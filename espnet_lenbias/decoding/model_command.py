"""What `explain` and `transcribe` share: options of their own, and those of decoding.

The model is named by ``--model``, what is decoded by arguments, and all else as for the
drop-in of the tool whose model it is.
"""

import argparse
from collections.abc import Sequence
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.data_files import DATA
from espnet_lenbias.options.decoding import get_parser as inference_parser
from espnet_lenbias.options.decoding import parse
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.packed_model import check_owner, model_files
from espnet_lenbias.options.tool_choice import check_tool


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
    parser.add_argument(
        "--model",
        required=True,
        help="packed model (.zip), or a tag of the model zoo",
    )
    return parser


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
) -> argparse.Namespace:
    """Return the options of decoding, verified; exit with status 2 on a mistake.

    Args:
        parser: See :func:`decoding_parser`.
        tool: Whose options they are.
        own: The command's own options.
        rest: The others on the command line, and the inputs.

    Raises:
        OptionError: They name a model.
    """
    required = ["--output_dir", str(own.output_dir), "--model_tag", own.model]
    args = parse(parser, [*required, *rest])
    named = [key for key in tool.model_options if getattr(args, key) is not None]
    if named or args.model_tag != own.model:
        key = min(named, default="model_tag")
        raise OptionError(f"{key}: the model is named by --model: leave {key} out")
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
    files = model_files(model)
    check_tool(tool, model, files)
    check_owner(model, files, tool)
    return files
