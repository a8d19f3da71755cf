"""``espnet-lenbias transcribe``: texts of audio files.

Prints the text of each FILE, and writes it below the output folder; of a folder all audio
in it is taken. Files are of any rate, and of any format that soundfile or ffmpeg reads. A
long one is cut at silences, where the detector of speech is Silero's, an extra of this
package (`vad`). Search, weights and all else come from a decode config and from options,
those of espnet_lenbias.bin.asr_inference, or of the tool of translation or OWSM that the
model is of:

    --config conf/decode.yaml  --beam_size 64  --confidence true  --formats json,trn
    --lang_sym eng  --task_sym st_deu  --ngpu 1

What is not said is as ESPnet has it, but that the search is explicit_length, that the
weights of CTC and of a language model are 0 where the model has none, and that words get
times where formats need them. The same command goes on with a run that was interrupted.
Exit status: 0; 1 if files failed, which are named at the end; 2 for a mistake in the
options.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from espnet_lenbias.decoding.cues import cues
from espnet_lenbias.decoding.cutting import CutOptions
from espnet_lenbias.decoding.drop_in import run
from espnet_lenbias.decoding.folder_lock import locked
from espnet_lenbias.decoding.format_files import write_formats
from espnet_lenbias.decoding.format_lines import clock
from espnet_lenbias.decoding.found_audio import SCP, SEGMENTS, left_out, named_audio
from espnet_lenbias.decoding.join_pieces import RECORDINGS
from espnet_lenbias.decoding.journal import ResultRow, check_journal
from espnet_lenbias.decoding.model_command import (
    decoding_parser,
    files_of_model,
    own_parser,
    parse_decoding,
    parse_own,
    said,
)
from espnet_lenbias.decoding.older_results import remove_results
from espnet_lenbias.decoding.plain_files import replace_file
from espnet_lenbias.decoding.prepared_audio import cut_at_silences, prepared
from espnet_lenbias.decoding.transcript import (
    recordings_of,
    speakers_in,
    transcript_of,
)
from espnet_lenbias.errors import OptionError, shown
from espnet_lenbias.options.audio_files import USUAL_RATE, model_rate
from espnet_lenbias.options.data_files import DATA
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.formats import need_times
from espnet_lenbias.options.output_folder import named_path
from espnet_lenbias.options.run_journal import JOURNAL, read_run_options
from espnet_lenbias.options.run_options import run_options
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.tool_choice import add_tool_option, choose_tool
from espnet_lenbias.options.train_config import check_hears, read_train_config, section
from espnet_lenbias.options.values import finite

_PROG = "espnet-lenbias transcribe"
_USAGE = (
    f"{_PROG} FILE... --model MODEL [--output_dir DIR] [--longest SECONDS] "
    "[--tool TOOL] [decoding options]"
)
_DEFAULTS = {"search": "explicit_length", "log_level": "WARNING"}

# Lists that are written anew, and how each of their lines begins.
_LISTS = {SCP: re.compile(r"\S+ /"), SEGMENTS: re.compile(r"\S+ \S+ [\d.]+ -?[\d.]+$")}

_CTC_WEIGHT = 0.5  # ESPnet's default in training


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of what the command takes beyond the decoding options."""
    parser = own_parser(_PROG, _USAGE, __doc__)
    add = parser.add_argument
    add(
        "--output_dir",
        type=named_path,
        default=Path("transcripts"),
        help="gets the results (default: transcripts)",
    )
    add(
        "--longest",
        type=finite,
        default=CutOptions.longest,
        metavar="SECONDS",
        help="longer files are cut at silences, into pieces of at most so many seconds "
        "(default: %(default)g)",
    )
    add_tool_option(parser)
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    wait_passively()
    cmd = sys.argv[1:] if cmd is None else cmd
    parser = get_parser()
    own, rest = parse_own(parser, cmd)
    folder = own.output_dir.absolute()  # whose files are the same from anywhere
    try:
        cut_options = CutOptions(own.longest)
        tool = _chosen_tool(own.model, cmd)
        args = decoding_options(tool, own, rest)
        named = vars(args).pop("files")
        files, others = named_audio(named, folder), left_out(named, folder)
        held = files_of_model(tool, own.model)
        config = read_train_config(tool.model_options[0], held[tool.model_options[0]])
        check_hears(f"model: {own.model}", config)
        has_lm = "lm_file" in held or args.lm_file is not None
        _weigh_what_is_there(args, config, has_lm, rest)
        rate = model_rate(section(config, "frontend_conf")) or USUAL_RATE
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    with ExitStack() as stack:  # one lock for all: what is decoded lies there, too
        try:
            stack.enter_context(locked(folder))
            # a run that is refused leaves copies and lists of what has been decoded
            setattr(args, DATA, [(str(folder / SCP), "speech", "sound")])
            args.segments = str(folder / SEGMENTS)
            args.recordings = list(files)
            check_journal(folder / JOURNAL, run_options(args))
            _check_lists(folder)
            ready, failures = prepared(files, rate, folder)
            pieces = cut_at_silences(ready, cut_options)
            scp = (f"{name} {path}\n" for name, path in ready.items())
            replace_file(folder, SCP, scp)
            replace_file(folder, SEGMENTS, pieces)
            if not pieces:
                _write_no_texts(folder, args)
        except (OSError, ValueError) as e:
            parser.exit(2, f"{parser.prog}: error: {e}\n")
        show, status = partial(_show, args, own.output_dir), 0
        if pieces:
            status = run(tool, parser, args, finished=show, lock=_is_locked)
        else:
            show({})
        for line in _not_decoded(failures, others):
            print(f"{_PROG}: {shown(line)}", file=sys.stderr)
    return 1 if failures else status


def _check_lists(folder: Path) -> None:
    """Verify that the lists of an earlier run are its lists, and not a person's own.

    Raises:
        OptionError: Names the file that is none.
        OSError: It cannot be read.
    """
    for name, line in _LISTS.items():
        path = folder / name
        if path.is_file() and not path.is_symlink():
            with path.open(encoding="utf-8", errors="surrogateescape") as lines:
                is_own = all(map(line.match, lines))
            if not is_own:
                raise OptionError(
                    f"output_dir: {path} stands where a list of this program goes, and it "
                    "is something else: move it, or name another folder"
                )


def _is_locked(_: Path) -> AbstractContextManager[None]:
    """Stand for the lock of a folder that this process has locked."""
    return nullcontext()


def _write_no_texts(folder: Path, args: argparse.Namespace) -> None:
    """Write what there is of files of which none can be decoded, or holds speech.

    Raises:
        OSError: Names a file that cannot be written or removed.
    """
    remove_results(folder)
    args.pieces = {}
    empty = (f"{name} \n" for name in args.recordings)
    replace_file(folder, f"{RECORDINGS}/1best_recog/text", empty)
    write_formats(folder, args, {})


def _not_decoded(failures: Sequence[str], others: Mapping[str, int]) -> Iterator[str]:
    """Yield what is to be said of files that are not decoded.

    Args:
        failures: Why files cannot be read.
        others: How many files of folders were left out, by how their names end.
    """
    for why in failures:
        yield f"failed: {why}"
    if others:
        kinds = ", ".join(f"{ending} ({n})" for ending, n in others.items())
        yield (
            f"left out, for their names are none of audio: {kinds}; a file that is audio "
            "all the same can be named itself"
        )


def _chosen_tool(model: str, cmd: Sequence[str]) -> Tool:
    """Return the tool whose model it is, which decodes audio.

    Raises:
        OptionError: It translates texts.
    """
    tool = choose_tool(cmd)
    if tool.source == tool.text:
        raise OptionError(
            f"model: {model} is a model of {tool.key}, which translates texts, and "
            f"audio is transcribed here: run python -m {tool.drop_in}"
        )
    return tool


def decoding_options(
    tool: Tool, own: argparse.Namespace, rest: Sequence[str]
) -> argparse.Namespace:
    """Return the options of decoding, and the `files`; exit with status 2 on a mistake.

    Args:
        tool: Whose options they are.
        own: The command's own options.
        rest: The others on the command line, and FILE.

    Raises:
        OptionError: Names an option that has no place here.
    """
    formats = said(rest, "formats").get("formats")
    times = need_times(formats) or _had_times(own.output_dir)
    parser = decoding_parser(tool, _PROG, _USAGE, **_DEFAULTS, times=times)
    parser.add_argument("files", nargs="+", type=named_path, metavar="FILE")
    how_named = "what to transcribe is named as FILE"
    return parse_decoding(parser, tool, own, rest, how_named)


def _had_times(folder: Path) -> bool:
    """Tell whether what has been decoded has times: it is gone on with."""
    with suppress(OSError):
        options = read_run_options(folder / JOURNAL) or {}
        return options.get("times") == str(True)
    return False


def _weigh_what_is_there(
    args: argparse.Namespace,
    config: Mapping[str, Any],
    has_lm: bool,
    rest: Sequence[str],
) -> None:
    """Set the weights to 0 of what a model lacks, where nobody has said them.

    Args:
        args: The options, which are changed.
        config: Of the model's training.
        has_lm: Whether there is a language model.
        rest: The command line, which tells what was said; so does its decode config.
    """
    given = said(rest, "ctc_weight", "lm_weight")
    has_ctc = section(config, "model_conf").get("ctc_weight", _CTC_WEIGHT) != 0
    for key, is_there in (("ctc_weight", has_ctc), ("lm_weight", has_lm)):
        if not is_there and key not in given:
            setattr(args, key, 0.0)


def _show(
    args: argparse.Namespace, folder: Path, rows: Mapping[str, ResultRow]
) -> None:
    """Print the texts, with times where they are asked for, and where they are."""
    for speaker in speakers_in(rows.values()):
        pieces = [transcript_of(key, row, 1, speaker) for key, row in rows.items()]
        for transcript in recordings_of(args.pieces, pieces, args.recordings):
            name = transcript.key + speaker
            timed = [
                f"  {clock(cue.start)} --> {clock(cue.end)}  {' '.join(cue.lines)}"
                for cue in cues(transcript.words())
            ]
            if timed:
                print(f"{shown(name)}:", *timed, sep="\n")
            else:
                print(f"{shown(name)}: {transcript.text()}")
    print(f"in {folder / RECORDINGS / '1best_recog'}")
