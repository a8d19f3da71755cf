"""When words start: what `times` says, against what the speech engines know.

Prints for each model, set and method the share of the word starts that are right within
50, 100 and 200 ms, and by how much they are off. Words that were recognised count, as far
as their engine says when they start; a file `word_starts` in the output folder has that
of all words, `-` where it does not.
"""

import argparse
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from local.make_corpus import plan
from local.measured import (
    BUNDLED,
    HERE,
    MODELS,
    load_measured,
    measuring_parser,
    read_measured,
)
from local.spoken_words import word_starts
from local.voices import check_engines
from rapidfuzz.distance import Levenshtein
from tqdm import tqdm

from espnet_lenbias.alignment import ctc
from espnet_lenbias.compare.utterances import Utterance
from espnet_lenbias.inference.times import ctc_of
from espnet_lenbias.options.audio_files import read_audio
from espnet_lenbias.options.posteriors import ATTENTION, CTC
from espnet_lenbias.options.threads import wait_passively
from espnet_lenbias.options.values import finite, from_one
from espnet_lenbias.report.tables import column, markdown_table, write_csv

DEFAULT_LEAD = ctc.LEAD


@dataclass(frozen=True)
class Line:
    model: str = column("model")
    dataset: str = column("set")
    method: str = column("times")
    words: int = column("words")
    within_50: float = column("within 50 ms %", ".1f")
    within_100: float = column("100 ms %", ".1f")
    within_200: float = column("200 ms %", ".1f")
    error: float = column("median error, ms", ".0f")
    late: float = column("median delay, ms", ".0f")


def get_parser() -> argparse.ArgumentParser:
    parser = measuring_parser(__doc__, "word_times", BUNDLED)
    add = parser.add_argument
    add("--models", nargs="+", default=MODELS, help="packed models")
    add("--beam_size", type=from_one, default=16)
    add(
        "--ctc_leads",
        nargs="+",
        type=finite,
        default=[DEFAULT_LEAD],
        help="by how many frames CTC is taken to be late",
    )
    return parser


def main(cmd: Sequence[str] | None = None) -> int:
    wait_passively()
    check_engines()
    parser = get_parser()
    args = parser.parse_args(cmd)
    logging.basicConfig(level=logging.ERROR)
    try:
        sets = read_measured(args, args.models)
        starts = {key: known for us in sets.values() for key, known in said(us).items()}
        write_starts(args.output_dir / "word_starts", starts)
    except (OSError, ValueError) as e:
        parser.exit(2, f"{parser.prog}: error: {e}\n")
    lines = []
    for path in args.models:
        model = load_measured(
            parser,
            path,
            search="explicit_length",
            beam_size=args.beam_size,
            times=ATTENTION,
        )
        leads = [] if ctc_of(model) is None else args.ctc_leads
        ways = [*((CTC, lead) for lead in leads), (ATTENTION, DEFAULT_LEAD)]
        for method, lead in ways:
            ctc.LEAD = lead
            model.posterior_options = replace(model.posterior_options, times=method)
            shown = method if lead == DEFAULT_LEAD else f"{method}, {lead:g} frames"
            for name, utterances in sets.items():
                head = (Path(path).stem, name, shown)
                off = errors(model, utterances, starts, " ".join(head))
                lines.append(line_of(head, np.array(list(off))))
    print(markdown_table(lines))
    write_csv(args.output_dir / "word_times.csv", lines)
    return 0


def said(utterances: Sequence[Utterance]) -> Mapping[str, list[float | None]]:
    """Return when the words of utterances start: key -> s of each word.

    Raises:
        ValueError: An utterance is none of the corpus.
    """
    conf = yaml.safe_load((HERE / "conf/corpus.yaml").read_text())
    jobs = {
        f"{speaker.id}-{chapter}-{number:04d}": (speaker, text)
        for of_set in plan(conf)[1].values()
        for speaker, chapter, number, text, _ in of_set
    }
    for utterance in utterances:
        if jobs.get(utterance.key, (None, None))[1] != utterance.reference:
            raise ValueError(
                f"{utterance.audio} is not of the corpus that conf/corpus.yaml makes"
            )
    keys = [utterance.key for utterance in utterances]
    return dict(zip(keys, word_starts([jobs[key] for key in keys]), strict=True))


def write_starts(path: Path, starts: Mapping[str, Sequence[float | None]]) -> None:
    """Write a line `key start start ...` for each utterance, in s."""
    lines = (
        " ".join([key, *("-" if s is None else f"{s:.3f}" for s in known)])
        for key, known in starts.items()
    )
    path.write_text("".join(f"{line}\n" for line in lines))


def errors(
    model: Any,
    utterances: Sequence[Utterance],
    starts: Mapping[str, Sequence[float | None]],
    what: str,
) -> Iterator[float]:
    """Yield by how much a word that is right starts late, s."""
    for utterance in tqdm(utterances, desc=what, disable=not sys.stderr.isatty()):
        text, *_, hypothesis = model(read_audio(utterance.audio))[0]
        known = starts[utterance.key]
        for i, j in right_words(text.split(), utterance.reference.split()):
            if known[j] is not None:
                yield hypothesis.word_times[i][0] - known[j]


def right_words(
    words: Sequence[str], reference: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the places of words that are right, in both texts."""
    for tag, start, stop, other, _ in Levenshtein.opcodes(words, reference):
        if tag == "equal":
            yield from zip(range(start, stop), range(other, other + stop - start))


def line_of(head: tuple[str, str, str], late: np.ndarray) -> Line:
    """Return a line of the table; `late` is (n,) in s."""
    # a millisecond more: times have whole ones
    shares = (100 * np.mean(np.abs(late) < ms / 1000 + 0.0005) for ms in (50, 100, 200))
    return Line(
        *head,
        len(late),
        *map(float, shares),
        error=1000 * float(np.median(np.abs(late))),
        late=1000 * float(np.median(late)),
    )


if __name__ == "__main__":
    sys.exit(main())
