"""How sure the words of a result are: confidences of the bundled models, and how right.

Prints for each set, search and confidence the word errors, the expected calibration error
of words, the area under the ROC curve, and the error at the temperature that one of the
sets asks for; and the word errors of minimum Bayes risk (`decide: mbr`).
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from local.measured import (
    BUNDLED,
    MODELS,
    load_measured,
    measuring_parser,
    read_measured,
)
from tqdm import tqdm

import espnet_lenbias
from espnet_lenbias.compare.utterances import Utterance
from espnet_lenbias.options.audio_files import read_audio
from espnet_lenbias.options.posteriors import COMBINED, CONFIDENCES
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.values import from_one
from espnet_lenbias.posteriors.confusion import agreement
from espnet_lenbias.posteriors.temperature import at_temperature, fit_temperature
from espnet_lenbias.report.reliability import auc, calibration_error, reliability
from espnet_lenbias.report.scoring import count_errors
from espnet_lenbias.report.tables import column, markdown_table, write_csv

SEARCHES = ("espnet", "simple", "explicit_length")


@dataclass(frozen=True)
class Decoded:
    """What a search made of an utterance."""

    reference: str
    text: str
    mbr_text: str  # of minimum Bayes risk
    confidence: Mapping[str, Sequence[float]]  # of each word, by measure


@dataclass(frozen=True)
class Line:
    model: str = column("model")
    dataset: str = column("set")
    search: str = column("search")
    beam_size: int = column("beam")
    measure: str = column("confidence")
    wer: float = column("WER %", ".1f")
    mbr_wer: float = column("of mbr", ".1f")
    words: int = column("words")
    right: float = column("right", ".3f")
    mean: float = column("mean", ".3f")
    ece: float = column("ECE", ".3f")
    auc: float = column("AUC", ".3f")
    temperature: float = column("T", ".2f")
    ece_at_temperature: float = column("ECE at T", ".3f")


def get_parser() -> argparse.ArgumentParser:
    parser = measuring_parser(__doc__, "confidence", BUNDLED)
    add = parser.add_argument
    add("--models", nargs="+", default=MODELS, help="packed models")
    add("--temperature_from", default="dev-other", help="the set that T is fitted on")
    add("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    add("--beam_sizes", nargs="+", type=from_one, default=[16], help="2 or more")
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    wait_passively()
    parser = get_parser()
    args = parser.parse_args(cmd)
    if args.temperature_from not in args.sets:
        parser.error(f"--temperature_from {args.temperature_from} is none of --sets")
    if min(args.beam_sizes) < 2:
        parser.error("--beam_sizes must be 2 or more: one hypothesis has no others")
    logging.basicConfig(level=logging.ERROR)
    try:
        sets = read_measured(args, args.models)
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    lines: list[Line] = []
    for path in args.models:
        model = load_measured(parser, path, confidence=COMBINED)
        for beam_size in args.beam_sizes:
            for search in args.searches:
                model.nbest = beam_size  # all that the search gives is looked at
                espnet_lenbias.use_search(model, search, beam_size=beam_size)
                decoded = {
                    name: list(decode(model, utterances, f"{search} {name}"))
                    for name, utterances in sets.items()
                }
                for measure in CONFIDENCES:
                    dev = decoded[args.temperature_from]
                    fitted = fit_temperature(*judged(dev, measure))
                    for name, of_set in decoded.items():
                        head = (Path(path).stem, name, search, beam_size, measure)
                        lines.append(line_of(of_set, head, fitted))
    lines.sort(key=lambda line: (line.model, line.dataset))
    print(markdown_table(lines))
    write_csv(args.output_dir / "confidence.csv", lines)
    return 0


def decode(model: Any, utterances: Sequence[Utterance], what: str) -> Iterator[Decoded]:
    """Decode a set with all that a search gives for each utterance."""
    # Here, not above: this loads torch and ESPnet.
    from espnet_lenbias.inference.nbest import confidence_of

    for utterance in tqdm(utterances, desc=what, disable=not sys.stderr.isatty()):
        nbest = model(read_audio(utterance.audio))
        yield Decoded(
            utterance.reference,
            nbest[0][0],
            espnet_lenbias.minimum_bayes_risk(nbest)[0][0],
            {m: confidence_of(model, nbest, 1, m)[0].tolist() for m in CONFIDENCES},
        )


def judged(decoded: Sequence[Decoded], measure: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the confidences of the words of a set, (n,), and whether each is right."""
    confidence = [value for one in decoded for value in one.confidence[measure]]
    right = [
        is_right
        for one in decoded
        for is_right in agreement(one.text.split(), [one.reference.split()])[0]
    ]
    return np.array(confidence), np.array(right, dtype=bool)


def line_of(
    decoded: Sequence[Decoded], head: tuple[str, str, str, int, str], fitted: float
) -> Line:
    references = {str(i): one.reference for i, one in enumerate(decoded)}
    texts = {str(i): one.text for i, one in enumerate(decoded)}
    mbr_texts = {str(i): one.mbr_text for i, one in enumerate(decoded)}
    confidence, right = judged(decoded, head[-1])
    warmer = at_temperature(confidence, fitted)
    return Line(
        *head,
        wer=count_errors(references, texts).wer,
        mbr_wer=count_errors(references, mbr_texts).wer,
        words=len(right),
        right=float(right.mean()),
        mean=float(confidence.mean()),
        ece=calibration_error(reliability(confidence, right)),
        auc=auc(confidence, right),
        temperature=fitted,
        ece_at_temperature=calibration_error(reliability(warmer, right)),
    )


if __name__ == "__main__":
    sys.exit(main())
