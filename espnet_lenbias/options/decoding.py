"""The options of a decoding run, ESPnet's and the search's, verified at the start.

No torch in here: a mistake in a decode config must show in a second, not after the
imports that decoding needs.
"""

import argparse
import re
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from espnet_lenbias.errors import OptionError, one_line
from espnet_lenbias.options.choices import check_choices, check_config, choices_of, hint
from espnet_lenbias.options.data_files import DATA, check_types
from espnet_lenbias.options.espnet_checks import (
    check_espnet_options,
    check_lm_files,
    check_nbest,
)
from espnet_lenbias.options.espnet_parser import inference_parser
from espnet_lenbias.options.espnet_tools import SYMBOLS, symbol
from espnet_lenbias.options.fast_yaml import NO_YAML, fast_yaml, read_config, read_yaml
from espnet_lenbias.options.formats import add_formats_option, check_formats
from espnet_lenbias.options.packed_model import check_tag
from espnet_lenbias.options.posteriors import (
    POSTERIOR_OPTIONS,
    add_posterior_options,
    check_posteriors,
)
from espnet_lenbias.options.precision import (
    DECODER_DTYPES,
    check_decoder_dtype,
    check_dtype,
)
from espnet_lenbias.options.registry import (
    ESPNET,
    available_searches,
    check_search_conf,
    where_it_belongs,
)
from espnet_lenbias.options.train_config import check_file, check_train_configs
from espnet_lenbias.options.values import nearest

# ESPnet's tools have some eighty options, which `--help` tells of one by one.
_USAGE = f"%(prog)s --output_dir DIR --{DATA} FILE,NAME,TYPE [options]"

# ESPnet's whole numbers that have a range: numpy's of seeds, Linux's of processes.
_RANGES = (("seed", 0, 2**32 - 1), ("num_workers", 0, 2**22))


def get_parser(module: str) -> argparse.ArgumentParser:
    """Return the parser of an ESPnet inference tool with the search options added."""
    # ESPnet's own action and import path; light, unlike the tool itself.
    from espnet2.utils.nested_dict_action import NestedDictAction

    parser = inference_parser(module)
    parser.usage = _USAGE
    parser.error = partial(_usage_error, parser)  # type: ignore[method-assign]
    parser.add_argument(
        "--segments",
        metavar="FILE",
        help="Kaldi's `segments` of the recordings in wav.scp: each line, `utterance "
        "recording start end` in seconds, is decoded; `espnet-lenbias segment` makes it",
    )
    group = parser.add_argument_group("The search")
    group.add_argument(
        "--search",
        default=ESPNET,
        help=f"One of: {', '.join(available_searches())}; {ESPNET} is ESPnet's own",
    )
    group.add_argument(
        "--search_conf",
        action=NestedDictAction,
        default={},
        help="Options of the search, e.g. --search_conf score_threshold=8.0; "
        "`espnet-lenbias searches` lists them",
    )
    group.add_argument(
        "--batch_bins",
        help="How much is decoded together: hypotheses times seconds of audio. Batches "
        "are made of utterances that are about equally long. Where neither this nor "
        "--batch_size is given, a size is chosen that keeps a CPU busy",
    )
    # not 1: whether it is given tells whether batches are to be chosen
    for action in parser._actions:
        if action.dest == "batch_size":
            action.default = None
        if action.dest == DATA:
            action.type = _data
        if isinstance(action, NestedDictAction):
            action.type = _yaml
    group.add_argument(
        "--decoder_dtype",
        choices=DECODER_DTYPES,
        help="What decoder and language model compute in, where the rest of the model "
        "computes in --dtype; bfloat16 is faster on processors that have it",
    )
    add_posterior_options(parser.add_argument_group("The n-best list"))
    add_formats_option(parser.add_argument_group("The results"))
    return parser


def _data(text: str) -> tuple[str, str, str]:
    """Read FILE,NAME,TYPE as ESPnet does, or with commas in the name of the file."""
    from espnet2.utils.types import str2triple_str

    try:
        path, name, kind = str2triple_str(text)
    except ValueError:
        if text.count(",") < 2:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not FILE,NAME,TYPE, such as wav.scp,speech,sound"
            ) from None
        path, name, kind = text.rsplit(",", 2)
    return path, name, kind


def _yaml(text: str) -> str:
    """Return KEY=VALUE, or a mapping, as it is, for ESPnet to read: VALUE must be yaml."""
    key, sign, value = text.partition("=")
    try:
        read_yaml(value if sign else key)
    except OptionError as e:
        raise argparse.ArgumentTypeError(f"{text!r}: {e}") from e
    except NO_YAML as e:
        raise argparse.ArgumentTypeError(f"{text!r} is no yaml: {one_line(e)}") from e
    return text


def parse(
    parser: argparse.ArgumentParser, cmd: Sequence[str] | None
) -> argparse.Namespace:
    """Parse the command line and its decode config; exit with status 2 on a mistake."""
    config = read_decode_config(parser, cmd)
    choices = choices_of(parser)
    with fast_yaml():  # what has been verified and what is taken: by one loader
        args, unknown = parser.parse_known_args(cmd)
    if unknown:
        flags = [flag for a in parser._actions for flag in a.option_strings]
        flag = unknown[0].partition("=")[0]
        hint = where_it_belongs(flag.lstrip("-"), []) or nearest(flag, flags)
        _fail(parser, f"unrecognized arguments: {' '.join(unknown)}{hint}")
    args.search_conf = args.search_conf or {}
    options = vars(args)

    try:
        check_choices(choices, options)
        options.update({k: symbol(options[k]) for k in SYMBOLS if k in options})
        check_search_conf(args.search, {})
        args.search_conf = check_search_conf(args.search, args.search_conf)
        options.update(check_espnet_options(args.search, _said(options)))
        check_nbest(args.search_conf, options)
        check_dtype(options)
        check_decoder_dtype(args.search, args.decoder_dtype, options)
        of_nbest = {key: options[key] for key in POSTERIOR_OPTIONS}
        checked = check_posteriors(args.search, args.search_conf, of_nbest, options)
        options.update(vars(checked))
        options["pieces"] = {}  # of recordings: a run reads them from `segments`
        options["recordings"] = []  # with a line even if they have no pieces
        options["formats"] = check_formats(options["formats"], options)
        _check_files(options)
    except (ValueError, OSError) as e:
        _fail(parser, f"{_origin(str(e), config, args)}{e}")
    return args


def refuse(
    parser: argparse.ArgumentParser, args: argparse.Namespace, error: Exception
) -> NoReturn:
    """Exit with status 2 on a mistake that shows once the options are read.

    Args:
        parser: Reports it.
        args: What it has read.
        error: The mistake; where it begins with an option of the decode config, that is
            named, too.
    """
    option = re.match(r"\w*", str(error))
    named = _origin(option[0] if option else "", peek_config(args.config), args)
    _fail(parser, f"{named}{error}")


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the sizes of batches that nothing is said about."""
    sizes = ("batch_size", "batch_bins")
    return {k: v for k, v in options.items() if v is not None or k not in sizes}


def show_cause(log_level: str) -> None:
    """Show where the error in hand comes from if the log is to tell all."""
    if log_level in ("DEBUG", "NOTSET"):
        traceback.print_exc()


def peek_config(path: str | Path | None) -> Mapping[str, Any]:
    """Return what a decode config holds, before the parser of a tool is known.

    Of one that cannot be read, nothing: the tool's own parser tells.
    """
    config = None
    with suppress(OSError, *NO_YAML):
        config = read_config(path) if path else None
    return config if isinstance(config, dict) else {}


def read_decode_config(
    parser: argparse.ArgumentParser, cmd: Sequence[str] | None
) -> Mapping[str, Any]:
    """Read the file of ``--config``, if any, and verify its keys, and types of values.

    Exits with status 2 on a mistake, which argparse would not name.
    """
    finder = argparse.ArgumentParser(add_help=False)
    finder.add_argument("--config", nargs="?")  # without a value: below
    path = finder.parse_known_args(cmd)[0].config
    if path is None:
        return {}
    try:
        check_file("config", path)
        config = read_config(path)
    except OSError as e:
        _fail(parser, f"config: {path} cannot be read: {e.strerror}")
    except OptionError as e:
        _fail(parser, str(e))
    if not isinstance(config, dict):
        _fail(parser, f"{path}: a decode config holds `option: value` lines")
    valid = [action.dest for action in parser._actions]
    for key in config:
        if key not in valid:
            _fail(parser, f"{path}: unknown option {key}{where_it_belongs(key, valid)}")
    try:
        check_config(parser, config)
    except ValueError as e:
        _fail(parser, f"{path}: {e}")
    return config


def _check_files(options: Mapping[str, Any]) -> None:
    """Verify that the files which the options name are there, and the types of data."""
    if not options["output_dir"].strip():
        raise ValueError("output_dir names no folder: name one")
    for key, least, most in _RANGES:
        value = options.get(key, least)
        if not least <= value <= most:
            raise ValueError(f"{key} must be from {least} to {most}, not {value}")
    check_types(options[DATA])
    files = {
        key: value
        for key, value in options.items()
        if key.endswith(("_file", "_config", "segments")) and value is not None
    }
    files |= {
        key: value
        for key, value in options.items()
        # a tokenizer can have a name in place of a file, e.g. whisper_en
        if key.endswith("bpemodel") and value is not None and Path(str(value)).suffix
    }
    files |= {f"data of {name}": path for path, name, _ in options[DATA]}
    for key, path in files.items():
        check_file(key, path)
    check_train_configs(options)
    check_lm_files(options)
    if options["model_tag"] is not None:
        check_tag(options["model_tag"])


def _origin(message: str, config: Mapping[str, Any], args: argparse.Namespace) -> str:
    """Return the decode config as what a message begins with, if it is about it.

    It is if the first option that the message names has its value from there.
    """
    words = re.findall(r"\w+", message)
    named = next((word for word in words if word in vars(args)), "")
    if named in config and _is_read(config[named], getattr(args, named)):
        return f"{args.config}: "
    return ""


def _is_read(given: Any, value: Any) -> bool:
    """Tell whether a value is what the parser has made of another one."""
    if value is None:
        return given is None
    try:
        return str(type(value)(given)) == str(value)  # as texts: NaN equals nothing
    except (TypeError, ValueError):
        return False


def _usage_error(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Exit as argparse does, with what helps."""
    bfloat16 = message.startswith("argument --dtype: invalid choice: 'bfloat16'")
    more = hint("dtype", "bfloat16") if bfloat16 else ""
    usage = parser.format_usage()
    parser.exit(2, f"{usage}{parser.prog}: error: {message}{more}; see --help\n")


def _fail(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Exit without the usage, which has nothing to do with it."""
    parser.exit(2, f"{parser.prog}: error: {message}\n")
