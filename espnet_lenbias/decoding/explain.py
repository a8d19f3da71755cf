"""``espnet-lenbias explain``: what a search does with one audio file or text.

Prints what is kept at each position N and why the search stops, then the hypotheses it
has found; draws the same as a plot, and with --html as a page to look at and listen to.
The model says whose tool it is: recognition, speech translation, OWSM, spoken language
understanding; or translation of texts, where TEXT takes the place of AUDIO. Search,
weights and all else come from a decode config and from options, those of
espnet_lenbias.bin.asr_inference or of the other tool:

    --config conf/decode.yaml  --search simple  --search_conf length_norm=true
    --beam_size 64  --ctc_weight 0.0  --lm_weight 0.6  --nbest 5  --ngpu 1
    --lang_sym eng  --task_sym st_deu

What is not said is as ESPnet has it, but that the search is explicit_length and the
five best hypotheses are shown. AUDIO is a file that soundfile can read.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from espnet_lenbias.decoding.explained_input import (
    Input,
    check_input,
    check_place,
    input_of,
)
from espnet_lenbias.decoding.model_command import (
    decoding_parser,
    files_of_model,
    own_parser,
    parse_decoding,
    parse_own,
)
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.decoding import refuse, show_cause
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.html_page import (
    add_html_options,
    audio_choice,
    check_html_options,
)
from espnet_lenbias.options.output_folder import make_output_dir, named_path
from espnet_lenbias.options.posteriors import PosteriorOptions
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.tool_choice import add_tool_option, choose_tool
from espnet_lenbias.options.train_config import (
    check_hears,
    check_train_configs,
    read_train_config,
)
from espnet_lenbias.options.values import finite

_PROG = "espnet-lenbias explain"
_USAGE = (
    f"{_PROG} AUDIO --model MODEL [--output_dir DIR] [--html] [--doubtful SCORE] "
    "[--text TEXT] [--tool TOOL] [decoding options]"
)
_NO_AUDIO = "a text is explained, without audio"
_DEFAULTS = {"search": "explicit_length", "nbest": 5}


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of what the command takes beyond the decoding options."""
    parser = own_parser(_PROG, _USAGE, __doc__)
    add = parser.add_argument
    add(
        "--text",
        help="the text to translate, in place of AUDIO; of OWSM the text before the "
        "audio, of understanding its transcript",
    )
    add(
        "--output_dir",
        type=named_path,
        default=Path("explained"),
        help="gets the plot, and the page (default: explained)",
    )
    add(
        "--doubtful",
        type=finite,
        metavar="SCORE",
        help="say that a result with a lower original score per label is not to be "
        "trusted; `espnet-lenbias report` of a development set tells such a score",
    )
    add_html_options(parser, "beside the plot, with its name")
    add_tool_option(parser)
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    wait_passively()
    cmd = sys.argv[1:] if cmd is None else cmd
    parser = get_parser()
    own, rest = parse_own(parser, cmd)
    try:
        tool = choose_tool(cmd)
        args = decoding_options(tool, own, rest)
        check_html_options(own)
        given = input_of(tool, args.input, own.text)
        how = audio_choice(own.html_audio, given.audio is not None, _NO_AUDIO)
        files = files_of_model(tool, own.model)
        vars(args).update(files, model_tag=None)  # found already
        key = tool.model_options[0]
        config = read_train_config(key, files[key])
        check_train_configs(vars(args))
        if given.audio is not None:
            check_hears(f"model: {own.model}", config)
        warnings = check_input(given, config)
        make_output_dir(own.output_dir)
        how_searched = f"_{args.search}_beam{args.beam_size}"
        plot = own.output_dir / given.file(f"{how_searched}.png")
        page = own.output_dir / given.file(f"{how_searched}.html")
        for path in (plot, page) if own.html else (plot,):
            check_place(given, path)
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    for warning in warnings:
        _warn(warning)

    if given.text is not None and os.path.isfile(given.text):
        _warn(f"{given.text} is taken for a text, though there is a file of that name")

    # Here, not above: these load torch and ESPnet.
    from espnet_lenbias.decoding.utterances import reason
    from espnet_lenbias.espnet_compat import TooShortUttError
    from espnet_lenbias.report.figures.saving import save

    title = f"{given.name}, {args.search}, beam {args.beam_size}"
    try:
        explanation = _explained(tool, args, given, title, own.doubtful)
    except OptionError as e:
        show_cause(args.log_level)
        refuse(parser, args, e)
    except (TooShortUttError, MemoryError, RuntimeError, TypeError, ValueError) as e:
        # e.g. audio too short for the encoder, a model that is a transducer
        parser.exit(1, f"{parser.prog}: error: {given.source}: {reason(e)}\n")
    print(f"{title}\n\n{explanation.text}")
    written = []
    try:
        if explanation.figure is not None:
            save(explanation.figure, plot, given.mark)
            written.append(f"plot: {plot}")
        if own.html:
            _write_page(page, explanation.searched, title, given, how)
            written.append(f"page: {page}")
    except OSError as e:
        parser.exit(2, f"{parser.prog}: error: the plot or the page: {e}\n")
    print(*written, sep="\n")  # here: that nobody reads it is no fault of the plot's
    return 0


def _explained(
    tool: Tool,
    args: argparse.Namespace,
    given: Input,
    title: str,
    doubtful: float | None,
) -> Any:
    """Decode the input; return how it went."""
    from espnet_lenbias.decoding.loading import load_model
    from espnet_lenbias.decoding.preprocessing import prepared
    from espnet_lenbias.report.explanation import explain

    model = load_model(args, tool)
    data, left_out = prepared(model, tool, given.data)
    if left_out:
        _warn(f"{given.source} {left_out}")
    return explain(model, data, title, doubtful)


def _write_page(path: Path, searched: Any, title: str, given: Input, how: str) -> None:
    """Write the page to look at and listen to."""
    from espnet_lenbias.report.page.audio import Source, page_audio
    from espnet_lenbias.report.page.explained import explained_page
    from espnet_lenbias.report.page.render import write_page

    audio = None
    if given.audio is not None:
        audio = page_audio(Source(str(given.audio)), how, path.parent)
    shown = explained_page(searched, title, audio)
    write_page(path, "explain.html", {**shown, "mark": given.mark})


def _check_shown(key: str, on_a_page: bool) -> None:
    """Verify that an option of the n-best list has an effect on what is shown.

    Raises:
        OptionError: It has none.
    """
    if key == "decide":
        raise OptionError(
            "decide: here is shown what the search finds: leave decide out"
        )
    if not on_a_page:
        raise OptionError(
            f"{key}: only a page shows it: say --html, or leave {key} out"
        )


def _warn(warning: str) -> None:
    print(f"{_PROG}: warning: {warning}", file=sys.stderr)


def decoding_options(
    tool: Tool, own: argparse.Namespace, rest: Sequence[str]
) -> argparse.Namespace:
    """Return the options of decoding, and the `input`; exit with status 2 on a mistake.

    Args:
        tool: Whose options they are.
        own: The command's own options.
        rest: The others on the command line, and AUDIO.
    """
    parser = decoding_parser(tool, _PROG, _USAGE, **_DEFAULTS)
    parser.add_argument("input", nargs="?", type=named_path, metavar="AUDIO")
    how_named = "what is to be explained is named as AUDIO, or with --text"
    args = parse_decoding(parser, tool, own, rest, how_named)
    for field in fields(PosteriorOptions):
        if getattr(args, field.name) != field.default:
            _check_shown(field.name, own.html)
    if args.formats:
        raise ValueError(
            "formats: what a search does is printed and drawn: leave formats out"
        )
    if args.search == ESPNET:
        raise ValueError(
            f"search: {ESPNET} does not tell how it goes: choose another one, e.g. "
            "--search simple"
        )
    return args
