"""``espnet-lenbias explain``: what a search does with one audio file, step by step.

Prints what is kept at each position N and why the search stops, then the hypotheses it
has found; draws the same as a plot. Search, weights and all else come from a decode
config and from options, those of espnet_lenbias.bin.asr_inference:

    --config conf/decode.yaml  --search simple  --search_conf length_norm=true
    --beam_size 64  --ctc_weight 0.0  --lm_weight 0.6  --nbest 5  --ngpu 1

What is not said is as ESPnet has it, but that the search is explicit_length and the
five best hypotheses are shown. AUDIO is a file that soundfile can read.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.audio_files import (
    are_large,
    audio_rate,
    check_audio_file,
    check_rate,
    read_audio,
    scale_warning,
    training_types,
)
from espnet_lenbias.options.decoding import get_parser as inference_parser
from espnet_lenbias.options.decoding import parse
from espnet_lenbias.options.espnet_tools import ASR
from espnet_lenbias.options.output_folder import make_output_dir
from espnet_lenbias.options.packed_model import model_files
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.values import finite

_PROG = "espnet-lenbias explain"
_USAGE = (
    f"{_PROG} AUDIO --model MODEL [--output_dir DIR] [--doubtful SCORE] "
    "[decoding options]"
)
# In capitals it is no key that a decode config has.
_AUDIO = "AUDIO"
# Other ways of naming a model.
_MODEL = ("asr_train_config", "asr_model_file")
_DEFAULTS = {"search": "explicit_length", "nbest": 5}


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of what the command takes beyond the decoding options.

    AUDIO is not its own: only who knows the decoding options can tell it from their
    values.
    """
    parser = argparse.ArgumentParser(
        prog=_PROG,
        usage=_USAGE,
        description=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--model",
        required=True,
        help="packed model (.zip), or a tag of the model zoo",
    )
    add(
        "--output_dir",
        type=Path,
        default=Path("explained"),
        help="gets the plot (default: explained)",
    )
    add(
        "--doubtful",
        type=finite,
        metavar="SCORE",
        help="say that a result with a lower original score per label is not to be "
        "trusted; `espnet-lenbias report` of a development set tells such a score",
    )
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    wait_passively()
    parser = get_parser()
    own, rest = parser.parse_known_args(cmd)
    try:
        args = decoding_options(own, rest)
        audio: Path = args.audio
        check_audio_file(audio)
        files = model_files(own.model)
        vars(args).update(files, model_tag=None)  # found already
        config = yaml.safe_load(Path(files["asr_train_config"]).read_text("utf-8"))
        check_rate(audio, audio_rate(audio), config.get("frontend_conf"))
        trained_on = training_types(config).get("speech")
        speech = read_audio(audio)
        warning = scale_warning(str(audio), "sound", are_large(speech), trained_on)
        make_output_dir(own.output_dir)
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")

    if warning:
        print(f"{parser.prog}: warning: {warning}", file=sys.stderr)

    # Here, not above: these load torch and ESPnet.
    from espnet_lenbias.decoding.dataset import reason
    from espnet_lenbias.decoding.decode import load_model
    from espnet_lenbias.espnet_compat import TooShortUttError
    from espnet_lenbias.report.explanation import explain
    from espnet_lenbias.report.figures.saving import save

    title = f"{audio.stem}, {args.search}, beam {args.beam_size}"
    try:
        model = load_model(args)
        explanation = explain(model, speech, title, own.doubtful)
    except OptionError as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    except (TooShortUttError, MemoryError, RuntimeError, TypeError, ValueError) as e:
        # e.g. audio too short for the encoder, a model that is a transducer
        parser.exit(1, f"{parser.prog}: error: {audio}: {reason(e)}\n")
    print(f"{title}\n\n{explanation.text}")
    if explanation.figure is not None:
        name = f"{audio.stem}_{args.search}_beam{args.beam_size}.png"
        try:
            save(explanation.figure, own.output_dir / name)
        except OSError as e:
            parser.exit(2, f"{parser.prog}: error: the plot: {e}\n")
        print(f"plot: {own.output_dir / name}")
    return 0


def decoding_options(
    own: argparse.Namespace, rest: Sequence[str]
) -> argparse.Namespace:
    """Return the options of decoding, and `audio`; exit with status 2 on a mistake.

    Args:
        own: The command's own options.
        rest: The others on the command line, and AUDIO.
    """
    parser = inference_parser(ASR.module)
    parser.prog, parser.usage = _PROG, _USAGE
    # Short forms of the command's own options would be taken for those of decoding.
    parser.allow_abbrev = False
    parser.set_defaults(**_DEFAULTS)
    for action in parser._actions:
        if action.dest == "data_path_and_name_and_type":
            action.default, action.required = [], False
    parser.add_argument(_AUDIO, type=Path)
    required = ["--output_dir", str(own.output_dir), "--model_tag", own.model]
    args = parse(parser, [*required, *rest])
    args.audio = vars(args).pop(_AUDIO)
    named = {key for key in _MODEL if getattr(args, key) is not None}
    if named or args.model_tag != own.model:
        key = min(named, default="model_tag")
        raise ValueError(f"{key}: the model is named by --model: leave {key} out")
    if args.search == ESPNET:
        raise ValueError(
            f"search: {ESPNET} does not tell how it goes: choose another one, e.g. "
            "--search simple"
        )
    return args
