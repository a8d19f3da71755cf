"""Tune what decode configs leave open, on development sets, each for its best.

Every row is tried with every LM scale, and with every value of those heuristics that
its decode config has. The setting of the lowest WER goes into a decode config of the
same name. The model is loaded once, and each utterance is encoded once for all
settings.
"""

import argparse
import copy
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

from espnet_lenbias import Speech2Text
from espnet_lenbias.compare.compare import ComparedSearch, Contestant, Result, encode
from espnet_lenbias.compare.summary import errors_of
from espnet_lenbias.compare.utterances import Utterance, batches
from espnet_lenbias.options.espnet_tools import ASR, owner_of
from espnet_lenbias.options.output_folder import make_output_dir
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.report.scoring import Errors, read_text
from espnet_lenbias.report.tables import column, markdown_table, write_csv
from local.rows import check, read_row
from local.settings import (
    PLACES,
    Setting,
    at_the_edge,
    choose,
    grid,
    shared_options,
)

# The values tried unless others are given: wide, so that the best of a row is not at an
# edge.
TRIED = {
    "lm_weight": [0.0, 0.2, 0.4, 0.6],
    "eos_threshold": [0.75, 1.0, 1.25, 1.5, 2.0],
    "length_reward": [0.1, 0.3, 0.5, 1.0, 2.0],
    "coverage_weight": [0.05, 0.1, 0.2, 0.4],
    "coverage_threshold": [0.1, 0.3, 0.5],
    "patience": [0.5, 1.0, 2.0, 4.0],
    "length_penalty": [0.25, 0.5, 1.0, 1.5, 2.0],
    "label_smoothing": [0.03, 0.1, 0.3, 1.0],
}


@dataclass(frozen=True)
class Line:
    """How a setting did on the development sets."""

    row: str = column("row")
    lm_weight: str = column("LM scale")
    eos_threshold: str = column("EOS threshold")
    length_reward: str = column("length reward")
    coverage_weight: str = column("coverage weight")
    coverage_threshold: str = column("coverage threshold")
    patience: str = column("patience")
    length_penalty: str = column("length penalty")
    label_smoothing: str = column("label smoothing")
    wer: float = column("WER %", ".2f")
    insertions: int = column("ins")
    deletions: int = column("del")
    substitutions: int = column("sub")
    best: str = column("best")


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog="A row with three of these numbers, the LM scale aside, has every second "
        "of the default values.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("model", type=Path, help="what local/model.py has written")
    add("out", type=Path, help="gets decode_<row>.yaml, tune.md and tune.csv")
    add("--data", type=Path, default=Path("data"), help="holds <set>/{wav.scp,text}")
    add("--sets", nargs="+", default=["dev-other"], help="tuned on, taken together")
    add("--conf", type=Path, default=Path("conf"), help="holds decode_<row>.yaml")
    rows = ["simple", "simple_heuristics", "explicit_length"]
    add("--rows", nargs="+", default=rows, help="decode configs to tune")
    add("--beam", type=int, default=64, help="tuned at")
    add("--ngpu", type=int, default=0, choices=[0, 1], help="1: on the GPU")
    add("--batch_size", type=int, default=1, help="utterances decoded together")
    for name, values in TRIED.items():
        what = f"values tried for {'.'.join(PLACES[name])} (default: {values})"
        add(f"--{name}", nargs="+", type=float, default=argparse.SUPPRESS, help=what)
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    # That an output reached the length limit is a warning, of many searches a flood.
    logging.basicConfig(level=logging.ERROR)
    given = {name: vars(args)[name] for name in PLACES if name in args}
    tried = TRIED | given
    try:
        model = yaml.safe_load(args.model.read_text(encoding="utf-8"))
        vocabulary = model.pop("vocabulary")
        if "lm_file" not in model:
            print("the model comes without language model: the LM scale stays 0")
            tried["lm_weight"] = [0.0]
        tool = owner_of(model) or ASR
        rows = {row: read_row(args.conf, row, tool) for row in args.rows}
        rows = {row: {**config, "beam_size": args.beam} for row, config in rows.items()}
        settings = [
            setting
            for row, config in rows.items()
            for setting in grid(row, config, tried, PLACES.keys() - given)
        ]
        for setting in settings:
            check(setting.row, setting.config, "lm_file" in model, vocabulary)
        options = {
            **model,
            **shared_options(rows),
            "lm_weight": max(tried["lm_weight"]),
        }
        utterances = [u for name in args.sets for u in read_set(args.data, name)]
        make_output_dir(args.out)
    except (OSError, ValueError) as e:
        sys.exit(f"tune.py: {e}")

    what = f"beam {args.beam}, {' and '.join(args.sets)}, {len(utterances)} utterances"
    print(f"{len(settings)} settings at {what}", flush=True)
    errors = decode(options, settings, utterances, args.batch_size, args.ngpu)
    best = {row: choose(row, settings, errors, tried) for row in rows}
    write(args.out, settings, errors, best, what)
    for setting in best.values():
        for name in at_the_edge(setting, tried):
            print(
                f"{setting.row}: the best {name}, {setting.values[name]:g}, is at the "
                "edge of the values tried: try some beyond it"
            )
    print(f"decode configs with the best settings are in {args.out}")


def read_set(data: Path, name: str) -> list[Utterance]:
    """Read the utterances of a data directory, as stage 1 has made it.

    Raises:
        OSError: It is not there.
        ValueError: Names an utterance that is not in both files.
    """
    if not (data / name).is_dir():
        raise FileNotFoundError(
            f"there is no folder {data / name}: stage 1 of run.sh makes it, or name "
            "another one with --data"
        )
    texts = read_text(data / name / "text")
    audio = read_text(data / name / "wav.scp")
    if texts.keys() != audio.keys():
        odd = min(texts.keys() ^ audio.keys())
        raise ValueError(f"{data / name}: {odd} is not in both text and wav.scp")
    return [Utterance(name, key, texts[key], Path(audio[key])) for key in texts]


def decode(
    options: Mapping[str, Any],
    settings: Sequence[Setting],
    utterances: Sequence[Utterance],
    batch_size: int,
    ngpu: int,
) -> list[Errors]:
    """Decode the utterances with every setting; return the errors of each setting.

    Args:
        options: The model's, with an LM scale other than 0 if any setting has one.
        settings: The searches.
        utterances: What to decode.
        batch_size: How many of them together.
        ngpu: 1 for the GPU.
    """
    device = "cuda" if ngpu else "cpu"
    model = Speech2Text(**options, search=ESPNET, device=device)
    searches = [contestant(model, setting, batch_size) for setting in settings]
    results: list[list[Result]] = [[] for _ in settings]
    with tqdm(total=len(utterances), unit="utterance") as bar:
        for batch in batches(utterances, batch_size):
            encoded = [encode(model, utterance.audio) for utterance in batch]
            for search, found in zip(searches, results, strict=True):
                found += search.decode(batch, encoded)
            bar.update(len(batch))
    return [errors_of(found) for found in results]


def contestant(model: Any, setting: Setting, batch_size: int) -> Contestant:
    """Return a setting's search on the model.

    A search takes scorers and weights from the model's, and leaves out what has weight
    0.
    """
    config = setting.config
    model = copy.copy(model)
    model.beam_search = copy.copy(model.beam_search)
    weights = {**model.beam_search.weights, "lm": config["lm_weight"]}
    model.beam_search.weights = weights
    conf = config.get("search_conf") or {}
    row = ComparedSearch(setting.row, config["search"], config["beam_size"], conf)
    return Contestant(model, row, batch_size)


def write(
    out: Path,
    settings: Sequence[Setting],
    errors: Sequence[Errors],
    best: Mapping[str, Setting],
    what: str,
) -> None:
    """Print and write the table of the grid; write the best decode configs.

    Args:
        out: Folder, made if need be.
        settings: The grid.
        errors: Of each setting.
        best: Row -> the setting chosen.
        what: What it was tuned on.
    """
    lines = []
    for setting, e in zip(settings, errors, strict=True):
        chosen = best[setting.row] is setting
        lines.append(line(setting, e, chosen))
        if chosen:
            heading = f"# Tuned at {what}: WER {e.wer:.2f} %.\n"
            text = heading + yaml.safe_dump(dict(setting.config), sort_keys=False)
            (out / f"decode_{setting.row}.yaml").write_text(text, encoding="utf-8")
    write_csv(out / "tune.csv", lines)
    table = f"{what}\n\n{markdown_table(lines)}"
    (out / "tune.md").write_text(table, encoding="utf-8")
    print(table)


def line(setting: Setting, errors: Errors, chosen: bool) -> Line:
    """Return a setting's line in the table; what its row does without is a dash."""
    values = dict.fromkeys(PLACES, "-")
    values |= {name: f"{value:g}" for name, value in setting.values.items()}
    return Line(
        row=setting.row,
        wer=errors.wer,
        insertions=errors.insertions,
        deletions=errors.deletions,
        substitutions=errors.substitutions,
        best="*" if chosen else "",
        **values,
    )


if __name__ == "__main__":
    main()
