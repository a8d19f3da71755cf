"""The files of the formats that are asked for, written from the results of a run.

Below the output folder, for each rank as ESPnet's files: ``<n>best_recog/text.ctm``,
``text.trn``, ``srt/<utterance>.srt`` and ``vtt/<utterance>.vtt``; and for all ranks
together ``1best_recog/text.jsonl``. Where utterances are pieces of recordings, ctm and
subtitles are those of recordings, in ``recordings/1best_recog``, and trn and json are
those of both.
"""

import argparse
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from espnet_lenbias.decoding.format_lines import (
    ctm_lines,
    json_line,
    srt_lines,
    vtt_lines,
)
from espnet_lenbias.decoding.format_list import renew_files
from espnet_lenbias.decoding.join_pieces import RECORDINGS
from espnet_lenbias.decoding.journal import ResultRow
from espnet_lenbias.decoding.plain_files import file_name
from espnet_lenbias.decoding.transcript import (
    Transcript,
    recordings_of,
    speakers_in,
    transcript_of,
)
from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.audio_files import seconds_of
from espnet_lenbias.options.data_files import DATA, SOUND, read_lines
from espnet_lenbias.options.formats import CTM, JSON, OF_TIMES, SRT, TRN, VTT
from espnet_lenbias.options.posteriors import POSTERIOR_OPTIONS
from espnet_lenbias.report.trn import trn_line, usual_speaker

logger = logging.getLogger(__name__)

_SUBTITLES = {SRT: srt_lines, VTT: vtt_lines}

# What the names of files of other formats end in.
_OF_ALL = {CTM: ".ctm", TRN: ".trn", JSON: ".jsonl"}

# What JSON tells of the options.
_TOLD = (
    *("search", "search_conf", "beam_size", "nbest", "ctc_weight", "lm_weight"),
    *("ngram_weight", "penalty", "maxlenratio", "minlenratio", "normalize_length"),
    *("dtype", "decoder_dtype", *POSTERIOR_OPTIONS),
    *("lang_sym", "task_sym", "predict_time", "model_tag"),
)

# Key -> the audio file, and its seconds, as far as they are known.
Audio = Mapping[str, tuple[str | None, float | None]]


def write_formats(
    folder: Path, args: argparse.Namespace, rows: Mapping[str, ResultRow]
) -> None:
    """Write what `formats` asks for; what else earlier runs have written of formats goes.

    Args:
        folder: The output folder.
        args: The options, with the pieces of recordings as `pieces`, if any, and as
            `recordings` what has a transcript without pieces, too.
        rows: Of all utterances in the order of the data; empty ones of those that
            could not be decoded.

    Raises:
        OSError: Names a file that cannot be read or written.
    """
    speakers = speakers_in(rows.values()) if args.formats else ()
    said = {
        speaker: [transcript_of(k, row, args.nbest, speaker) for k, row in rows.items()]
        for speaker in speakers
    }
    of_speakers = (_asked_for(args, said[speaker], speaker) for speaker in speakers)
    renew_files(folder, dict(chain.from_iterable(of_speakers)))
    formats = [name for name in args.formats or () if name in OF_TIMES]
    untimed = dict.fromkeys(
        transcript.key
        for transcript in chain.from_iterable(said.values())
        if any(word.time is None for word in transcript.words())
    )
    if formats and untimed:
        logger.warning(
            f"{len(untimed)} of {len(rows)} utterances have words without a time, which "
            f"are missing in {', '.join(formats)}: {', '.join(untimed)}"
        )


def _asked_for(
    args: argparse.Namespace, of_all: Sequence[Transcript], speaker: str
) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the files of one speaker, by their names below the output folder.

    With their lines, which are made when they are written.
    """
    by_line = [name for name in args.formats if name in (TRN, JSON)]
    of_recordings = bool(args.pieces or args.recordings)
    for rank in range(1, args.nbest + 1):
        formats = by_line if of_recordings else args.formats
        for file, lines in _files(args, of_all, rank, speaker, formats):
            yield f"{rank}best_recog/{file}", lines
    if of_recordings:
        recordings = recordings_of(args.pieces, of_all, args.recordings)
        for file, lines in _files(args, recordings, 1, speaker, args.formats):
            yield f"{RECORDINGS}/1best_recog/{file}", lines


def _files(
    args: argparse.Namespace,
    transcripts: Sequence[Transcript],
    rank: int,
    speaker: str,
    formats: Iterable[str],
) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the files of one rank, with their lines.

    Args:
        args: The options.
        transcripts: Of all utterances, or all recordings.
        rank: From 1.
        speaker: What the names of the speaker's files end in.
        formats: Those to write.
    """
    for name in formats:
        if name in _SUBTITLES:
            lines_of = _SUBTITLES[name]
            for transcript in transcripts:
                file = f"{file_name(transcript.key, '.' + name)}.{name}"
                yield f"{name}{speaker}/{file}", lines_of(transcript, rank)
        elif name == CTM:
            of_each = (ctm_lines(transcript, rank) for transcript in transcripts)
            yield f"text{speaker}{_OF_ALL[name]}", chain.from_iterable(of_each)
        elif name == TRN:
            yield f"text{speaker}{_OF_ALL[name]}", _trn_lines(args, transcripts, rank)
        elif rank == 1:  # JSON, which holds all ranks
            yield f"text{speaker}{_OF_ALL[name]}", _json_lines(args, transcripts)


def named_speakers(args: argparse.Namespace) -> Mapping[str, str]:
    """Return the speakers of utterances that lie beside the data, if trn tells of them.

    Raises:
        OSError: The file cannot be read.
        OptionError: Names what is wrong in it.
    """
    path = Path(getattr(args, DATA)[0][0]).with_name("utt2spk")
    if TRN not in args.formats or not os.path.lexists(path):
        return {}
    if not path.is_file():
        raise OptionError(
            f"{path} is no file, and trn has the speakers that stand there: mend it, "
            "remove it, or leave trn out of formats"
        )
    speakers = read_lines(path)
    for key, speaker in speakers.items():
        if len(speaker.split()) != 1:
            found = "several words" if speaker else "nothing"
            raise OptionError(
                f"{path}: {key} has {found} as its speaker: write `utterance speaker`"
            )
    return speakers


def _trn_lines(
    args: argparse.Namespace, transcripts: Sequence[Transcript], rank: int
) -> Iterator[str]:
    """Yield lines of trn, with the speakers that lie beside the data."""
    speakers = named_speakers(args)
    keys = [transcript.key for transcript in transcripts]
    lacking = [key for key in keys if key not in speakers]
    if 0 < len(lacking) < len(keys) and speakers:
        logger.warning(
            f"{len(lacking)} of {len(keys)} utterances, such as {lacking[0]}, have no "
            'speaker in utt2spk: in trn it is what stands before the first "-"'
        )
    for transcript in transcripts:
        key = transcript.key
        speaker = speakers.get(key) or usual_speaker(key)
        yield trn_line(key, transcript.text(rank), speaker)


def _json_lines(
    args: argparse.Namespace, transcripts: Sequence[Transcript]
) -> Iterator[str]:
    options = {
        key: value
        for key, value in vars(args).items()
        if (key in _TOLD or key.endswith("_model_file")) and value is not None
    }
    audio = _audio(args, {transcript.key for transcript in transcripts})
    for transcript in transcripts:
        file, seconds = audio.get(transcript.key, (None, None))
        yield json_line(transcript, file, seconds, options)


def _audio(args: argparse.Namespace, keys: set[str]) -> Audio:
    """Return the audio of these utterances, or recordings."""
    found: dict[str, tuple[str | None, float | None]] = {}
    for path, name, kind in getattr(args, DATA):
        if name == "speech" and kind in SOUND:
            # empty where no file of `transcribe` is audio
            lines = read_lines(Path(path)) if os.path.getsize(path) else {}
            for key in lines.keys() & keys - args.pieces.keys():
                value = lines[key]
                seconds = None
                with suppress(OSError, ValueError):  # no file, or a broken one
                    seconds = seconds_of(Path(value))
                found[key] = value, seconds
    for key in args.pieces.keys() & keys:
        piece = args.pieces[key]
        found[key] = piece.file, piece.seconds if piece.seconds > 0 else None
    return found
