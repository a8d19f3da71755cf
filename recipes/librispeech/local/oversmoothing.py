"""Measure how much of the length bias is the model's: its oversmoothing rate.

For each position of the references: is ending there more probable than the rest of the
reference? The rate is the share of such positions, the mean over utterances (Kulikov et
al. 2021). Nothing is searched, so it is the same for all rows but those of
`label_smoothing`.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import yaml
from tqdm import tqdm

from espnet_lenbias import Speech2Text
from espnet_lenbias.compare.compare import ComparedSearch, row_search
from espnet_lenbias.compare.oversmoothing import Oversmoothing, oversmoothing
from espnet_lenbias.report.tables import column, markdown_table, write_csv
from local.tune import read_set


@dataclass(frozen=True)
class Line:
    """The oversmoothing of a set."""

    dataset: str = column("set")
    label_smoothing: float = column("label smoothing", "g")  # what was taken out
    utterances: int = column("utterances")
    positions: int = column("positions")
    rate: float = column("oversmoothing rate %", ".1f")  # mean over utterances
    empty_wins: float = column("no text before the reference %", ".1f")


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("model", type=Path, help="what local/model.py has written")
    add("out", type=Path, help="folder, gets oversmoothing.md and oversmoothing.csv")
    add("--data", type=Path, default=Path("data"), help="holds <set>/{wav.scp,text}")
    add("--sets", nargs="+", default=["dev-other"], help="measured one by one")
    add("--lm_weight", type=float, default=0.0, help="LM scale")
    what = "label smoothing taken out of the decoder's scores, one after the other"
    add("--label_smoothing", nargs="+", type=float, default=[0.0], help=what)
    add("--ngpu", type=int, default=0, choices=[0, 1], help="1: on the GPU")
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    try:
        files = yaml.safe_load(args.model.read_text(encoding="utf-8"))
        files.pop("vocabulary")
        if args.lm_weight and "lm_file" not in files:
            raise ValueError(
                "the model comes without language model: leave --lm_weight out"
            )
        utterances = [u for name in args.sets for u in read_set(args.data, name)]
        device = "cuda" if args.ngpu else "cpu"
        options = {"ctc_weight": 0.0, "lm_weight": args.lm_weight, "device": device}
        model = Speech2Text(**files, **options)
        searches = {s: search(model, s) for s in args.label_smoothing}
    except (OSError, ValueError) as e:
        sys.exit(f"oversmoothing.py: {e}")
    lines: list[Line] = []
    for label_smoothing, own in searches.items():
        bar = tqdm(utterances, unit="utterance")
        lines += summary(label_smoothing, oversmoothing(model, own, bar))
    args.out.mkdir(parents=True, exist_ok=True)
    write_csv(args.out / "oversmoothing.csv", lines)
    table = markdown_table(lines)
    (args.out / "oversmoothing.md").write_text(table, encoding="utf-8")
    print(table)


def search(model: Any, label_smoothing: float) -> Any:
    """Return a search whose scores are measured: no beam matters."""
    conf = {"label_smoothing": label_smoothing}
    return row_search(model, ComparedSearch("", "explicit_length", 1, conf))


def summary(
    label_smoothing: float, measured: Sequence[Oversmoothing]
) -> Iterator[Line]:
    """Yield a line for each set, in the order of the utterances."""
    for name in dict.fromkeys(m.dataset for m in measured):
        own = [m for m in measured if m.dataset == name]
        yield Line(
            name,
            label_smoothing,
            len(own),
            sum(m.positions for m in own),
            100 * mean(m.rate for m in own),
            100 * mean(m.empty_wins for m in own),
        )


if __name__ == "__main__":
    main()
