"""Long audio cut at silences: word errors against those of the utterances alone.

Joins utterances of a set, silence between them, to one recording; cuts it with several
settings of `espnet-lenbias segment`; decodes the pieces and compares the joined text with
that of the utterances decoded one by one. Needs the extra `vad`.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import soundfile
from local.measured import MODELS, load_measured, measuring_parser, read_measured
from tqdm import tqdm

from espnet_lenbias.compare.utterances import Utterance
from espnet_lenbias.decoding.cutting import CutOptions, cut
from espnet_lenbias.options.audio_files import audio_rate, read_audio
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.values import finite, from_one
from espnet_lenbias.report.scoring import count_errors
from espnet_lenbias.report.tables import column, markdown_table, write_csv


@dataclass(frozen=True)
class Line:
    dataset: str = column("set")
    gap: str = column("between")
    seconds: float = column("recording s", ".0f")
    alone: float = column("utterances alone, WER %", ".1f")
    uncut: float = column("uncut", ".1f")
    silence: float = column("silence s", "g")
    margin: float = column("margin s", "g")
    utterances: int = column("utterances")
    pieces: int = column("pieces")
    wer: float = column("cut, WER %", ".1f")


def get_parser() -> argparse.ArgumentParser:
    parser = measuring_parser(__doc__, "long_audio", ["dev-clean", "dev-other"])
    add = parser.add_argument
    add("--model", default=MODELS[0])
    add("--beam_size", type=from_one, default=16)
    add("--gap", type=finite, default=0.5, help="seconds between utterances")
    add("--noise", type=finite, default=-60.0, help="dB of noise there, 0: full scale")
    add("--silences", nargs="+", type=finite, default=[CutOptions.silence])
    add("--margins", nargs="+", type=finite, default=[CutOptions.margin])
    add("--longest", type=finite, default=CutOptions.longest, help="seconds of a piece")
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    wait_passively()
    parser = get_parser()
    args = parser.parse_args(cmd)
    if args.gap < 0:
        parser.error(f"--gap must be 0 or more, not {args.gap:g}")
    logging.basicConfig(level=logging.ERROR)
    try:
        for silence, margin in product(args.silences, args.margins):
            CutOptions(args.longest, silence, margin)
        sets = read_measured(args, [args.model])
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    # Here, not above: this loads torch.
    from espnet_lenbias.decoding.voice import load_detector
    from espnet_lenbias.espnet_compat import TooShortUttError

    try:
        detector = load_detector()
    except ValueError as e:  # without the extra
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    model = load_measured(
        parser, args.model, search="explicit_length", beam_size=args.beam_size
    )

    def decode(audio: np.ndarray) -> str:
        try:
            text: str = model(audio)[0][0]
        except TooShortUttError:  # the tools leave its line empty
            return ""
        return text

    lines = [
        line
        for utterances in sets.values()
        for line in lines_of(utterances, decode, detector, args)
    ]
    print(markdown_table(lines))
    write_csv(args.output_dir / "long_audio.csv", lines)
    return 0


def lines_of(
    utterances: Sequence[Utterance],
    decode: Callable[[np.ndarray], str],
    detector: object,
    args: argparse.Namespace,
) -> Iterator[Line]:
    """Decode a set alone, as one recording, and cut; yield a line for each setting."""
    from espnet_lenbias.decoding.voice import FRAME_SECONDS, speech_probabilities

    name = utterances[0].dataset
    rate = audio_rate(utterances[0].audio)
    waves = [read_audio(utterance.audio) for utterance in utterances]
    alone = " ".join(map(decode, tqdm(waves, f"{name}, alone")))
    reference = " ".join(utterance.reference for utterance in utterances)

    def wer(text: str) -> float:
        return count_errors({name: reference}, {name: text}).wer

    for noise in (None, args.noise):
        wave = joined(waves, round(args.gap * rate), noise)
        gap = "zeros" if noise is None else f"noise, {noise:g} dB"
        path = args.output_dir / f"{name}_{gap.replace(', ', '_').replace(' ', '')}.wav"
        soundfile.write(path, wave, rate, subtype="FLOAT")
        probabilities = speech_probabilities(path, detector)
        uncut = wer(decode(wave))

        @cache
        def piece(start: float, end: float, wave: np.ndarray = wave) -> str:
            return decode(wave[round(start * rate) : round(end * rate)])

        for silence, margin in product(args.silences, args.margins):
            options = CutOptions(args.longest, silence, margin)
            pieces = cut(probabilities, FRAME_SECONDS, len(wave) / rate, options)
            texts = [piece(*p) for p in tqdm(pieces, f"{name}, {gap}, {silence:g} s")]
            yield Line(
                dataset=name,
                gap=gap,
                seconds=len(wave) / rate,
                alone=wer(alone),
                uncut=uncut,
                silence=silence,
                margin=margin,
                utterances=len(utterances),
                pieces=len(pieces),
                wer=wer(" ".join(texts)),
            )


def joined(
    waves: Sequence[np.ndarray], gap: int, noise: float | None, seed: int = 0
) -> np.ndarray:
    """Return utterances in a row, (samples,), with silence between them.

    Args:
        waves: (samples,) each.
        gap: Samples between two.
        noise: White noise of so many dB of full scale lies over all; None: none, so
            that there are zeros between two.
    """
    silence = np.zeros(gap, dtype=np.float32)
    parts = [part for wave in waves for part in (wave, silence)]
    wave = np.concatenate(parts[:-1]).astype(np.float32)
    if noise is None:
        return wave
    amount = 10 ** (noise / 20) * np.random.default_rng(seed).standard_normal(len(wave))
    return wave + amount.astype(np.float32)


if __name__ == "__main__":
    sys.exit(main())
