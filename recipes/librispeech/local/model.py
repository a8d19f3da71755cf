"""Find the files of a pretrained model, check them, and write their options down."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from espnet_lenbias.errors import OptionError
from espnet_lenbias.options.espnet_tools import Tool
from espnet_lenbias.options.output_folder import make_output_dir
from espnet_lenbias.options.packed_model import check_owner, is_archive, model_files
from espnet_lenbias.options.run_journal import JOURNAL
from espnet_lenbias.options.tool_choice import check_tool, choose_tool
from espnet_lenbias.options.train_config import (
    check_train_configs,
    read_train_config,
    section,
)


def get_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("model", help="folder of a training, packed .zip, or tag of the model zoo")
    add("out", type=Path, help="the yaml file to write")
    add("--asr_model_file", default="valid.acc.ave.pth", help="name in that folder")
    add("--tool", help="whose model it is (default: what a packed one says, else asr)")
    add("--lm_exp", type=Path, help="folder of a language model's training")
    add("--lm_file", default="valid.loss.ave.pth", help="name in that folder")
    return parser


def main() -> None:
    """Run the command; see the module's docstring."""
    args = get_parser().parse_args()
    try:
        named = ["--tool", args.tool] if args.tool else []
        tool = choose_tool(["--model", args.model, *named])
        files = files_of(tool, args.model, args.asr_model_file)
        if args.lm_exp is not None:
            files |= trained(args.lm_exp, "lm_train_config", "lm_file", args.lm_file)
        files = {option: os.path.abspath(path) for option, path in files.items()}
        check_train_configs(files)
        if tool.source == tool.text:
            raise OptionError(
                f"{args.model} is a model of {tool.key}, which translates texts: name one "
                "that takes audio"
            )
        key = tool.model_options[0]
        train_config = files[key]
        config = read_train_config(key, train_config)
    except (OSError, ValueError) as e:
        sys.exit(f"model.py: {e}")
    missing = list(missing_files(config))
    if missing:
        sys.exit(
            f"model.py: {train_config} needs files that are not here: "
            f"{', '.join(missing)}. Its paths count from the folder it was trained in: "
            f"pack it there (python -m espnet2.bin.pack {tool.key} ...) and name the .zip"
        )
    vocabulary = len(config["token_list"])
    try:
        make_output_dir(args.out.parent)
        options = {**files, "vocabulary": vocabulary}
        check_same_model(args.out, options)
        args.out.write_text(yaml.safe_dump(options), "utf-8")
    except (OSError, ValueError) as e:
        sys.exit(f"model.py: {e}")
    lm = "with" if "lm_file" in files else "without"
    print(
        f"{args.model}: {config.get('encoder')} encoder, {config.get('decoder')} decoder, "
        f"{vocabulary} labels, {lm} language model"
    )


def check_same_model(out: Path, options: Mapping[str, Any]) -> None:
    """Verify that results beside a yaml file, if there are any, are of this model.

    Raises:
        OptionError: They are of another one.
    """
    if not (out.is_file() and any(out.parent.glob(f"*/*/{JOURNAL}"))):
        return
    was = yaml.safe_load(out.read_text("utf-8"))
    if was != options:
        raise OptionError(
            f"{out.parent} holds results of another model ({out} tells which): give the "
            "new ones another --name, or remove the folder"
        )


def files_of(tool: Tool, model: str, name: str) -> dict[str, str]:
    """Return the decode options that hold a model's files.

    Args:
        tool: Whose model it is.
        model: Folder of a training, packed ``.zip``, or tag of the model zoo.
        name: Of the parameters in that folder.

    Raises:
        OSError: What is missing, or why the model zoo could not give it.
        ValueError: The archive is not a packed model, or the model another tool's.
    """
    if Path(model).is_dir():
        return trained(Path(model), *tool.model_options, name)
    files = model_files(model) if is_archive(model) else from_zoo(model)
    check_tool(tool, model, files)
    check_owner(model, files, tool)
    return files


def from_zoo(tag: str) -> dict[str, str]:
    """Return the decode options that hold the files of a model of the model zoo.

    Raises:
        OSError: Why the model zoo could not give it.
    """
    try:
        return model_files(tag)
    except Exception as e:  # whatever the downloader raises
        raise OSError(
            f"{tag} is neither a folder nor a .zip here, and the model zoo did not "
            f"give it ({type(e).__name__}: {e})"
        ) from e


def trained(folder: Path, config: str, parameters: str, name: str) -> dict[str, str]:
    """Return the options `config` and `parameters` of what ESPnet trained in a folder.

    Raises:
        FileNotFoundError: Says what the folder lacks, and which parameters it has.
    """
    files = {config: folder / "config.yaml", parameters: folder / name}
    for option, path in files.items():
        if not path.is_file():
            there = ", ".join(sorted(p.name for p in folder.glob("*.pth"))) or "none"
            raise FileNotFoundError(
                f"{option}: there is no file {path} (parameters there: {there})"
            )
    return {option: str(path) for option, path in files.items()}


def missing_files(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that a training's config names and that are not there."""
    stats = section(config, "normalize_conf").get("stats_file")
    for path in (config.get("bpemodel"), stats):
        # a tokenizer can have a name in place of a file, e.g. whisper_en
        if isinstance(path, str) and Path(path).suffix and not Path(path).is_file():
            yield path


if __name__ == "__main__":
    main()
