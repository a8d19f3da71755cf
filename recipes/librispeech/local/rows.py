"""Write the decode configs of a grid of rows, beams and LM scales; print their folders.

All are verified here, before the first of them decodes.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from espnet_lenbias.options.decoding import get_parser as inference_parser
from espnet_lenbias.options.decoding import parse
from espnet_lenbias.options.espnet_tools import ASR, Tool, owner_of
from espnet_lenbias.options.registry import ESPNET
from espnet_lenbias.options.values import nearest


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("model", type=Path, help="what local/model.py has written")
    add("out", type=Path, help="gets a folder for each decode config")
    add("--conf", type=Path, required=True, help="folder of decode_<row>.yaml")
    add("--rows", nargs="+", required=True, help="<row>, or <row>:<beam>,<beam>,...")
    add("--beams", nargs="*", type=beam, default=[], help="of rows without their own")
    add("--lm_weights", nargs="*", type=float, default=[], help="none: the config's")
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    model = yaml.safe_load(args.model.read_text(encoding="utf-8"))
    vocabulary = model.pop("vocabulary")
    try:
        tool = owner_of(model) or ASR
        configs = dict(grid(args.conf, args.rows, args.beams, args.lm_weights, tool))
        for tag, config in configs.items():
            check(tag, config, "lm_file" in model, vocabulary)
        for tag, config in configs.items():
            write(args.out / tag / "decode.yaml", {**model, **config})
    except (OSError, ValueError) as e:
        sys.exit(f"rows.py: {e}")
    print("\n".join(configs))


def beam(size: str) -> int:
    """Read a beam size.

    Raises:
        ValueError: It is none.
    """
    if not size.isdecimal() or int(size) < 1:
        raise ValueError(f"{size!r} is no beam size")
    return int(size)


def grid(
    conf: Path,
    rows: Sequence[str],
    beams: Sequence[int],
    lm_weights: Sequence[float],
    tool: Tool,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each decode config with the config.

    Args:
        conf: Where ``decode_<row>.yaml`` are.
        rows: As on the command line.
        beams: Of rows that name none of their own; none: the config's.
        lm_weights: None: the config's.
        tool: The one that decodes.

    Raises:
        FileNotFoundError: There is no such row.
        ValueError: A row names a beam that is no number.
    """
    for item in rows:
        row, _, own = item.partition(":")
        config = read_row(conf, row, tool)
        sizes = [beam(size) for size in own.split(",")] if own else beams
        for size in sizes or [config["beam_size"]]:
            for weight in lm_weights or [config["lm_weight"]]:
                tag = f"{row}_beam{size}_lm{weight}"
                yield tag, {**config, "beam_size": size, "lm_weight": weight}


def read_row(conf: Path, row: str, tool: Tool) -> dict[str, Any]:
    """Read the decode config of a row, with ESPnet's defaults where it says nothing."""
    path = conf / f"decode_{row}.yaml"
    if not path.is_file():
        there = sorted(p.stem.removeprefix("decode_") for p in conf.glob("decode_*"))
        raise FileNotFoundError(
            f"there is no {path}{nearest(row, there)} (rows: {', '.join(there)})"
        )
    arguments = ["--config", str(path), "--output_dir", str(conf)]
    arguments += ["--data_path_and_name_and_type", f"{path},speech,sound"]
    parser = inference_parser(tool.module)  # which keeps what a config has said
    args = parse(parser, arguments)  # exits where the yaml is wrong
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    used = ("search", "beam_size", "ctc_weight", "lm_weight")
    # As parsed: a yaml file can hold a number as text.
    return {key: getattr(args, key) for key in dict.fromkeys((*used, *config))}


def check(tag: str, config: Mapping[str, Any], has_lm: bool, vocabulary: int) -> None:
    """Verify that a model can be decoded in this way.

    Raises:
        ValueError: Says why not.
    """
    if config["lm_weight"] and not has_lm:
        raise ValueError(
            f"{tag}: the model comes without language model: give one (--lm_exp), or "
            "decode with --lm_weights 0.0"
        )
    if config["search"] == ESPNET and config["beam_size"] > vocabulary:
        raise ValueError(
            f"{tag}: ESPnet's own search needs a beam within the {vocabulary} labels "
            "of the vocabulary; name its beams as in --rows espnet:32,64"
        )


def write(path: Path, config: Mapping[str, Any]) -> None:
    """Write a decode config where none is, or the same.

    Raises:
        ValueError: There are results of another one.
    """
    if path.is_file() and yaml.safe_load(path.read_text(encoding="utf-8")) != config:
        raise ValueError(
            f"{path} is of another decode config or model than the one asked for now: "
            f"remove {path.parent} to decode anew, or give the run another --name"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(dict(config), sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    main()
