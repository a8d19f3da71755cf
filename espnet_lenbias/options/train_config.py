"""The training config of a model: read, and verified to be one of the tool's models.

ESPnet takes it as it stands. What is none ends deep in ESPnet, and one of another tool
can end in nonsense. No torch in here.
"""

import functools
import os
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from espnet_lenbias.errors import OptionError, one_line
from espnet_lenbias.options.espnet_tools import Tool, tool_of
from espnet_lenbias.options.fast_yaml import NO_YAML, load_yaml

# What says to which task a training config belongs: (task, a key that it has), in order.
_KEYS = (
    ("lm", "lm"),
    ("enh_s2t", "subtask_series"),
    ("st", "extra_asr_decoder"),
    ("mt", "src_token_list"),
    ("s2t", "promptencoder"),
)
# What a model of spoken language understanding can have beyond one that recognises.
_SLU = ("transcript_token_list", "deliberationencoder", "postdecoder")

# What names models of word pieces, at the top of a config, and in its parts statistics
# that features are normalised by.
_WORD_PIECES, STATS = ("bpemodel", "src_bpemodel"), "stats_file"

# What reading an archive raises that is none, or a damaged one.
_NO_ARCHIVE = (
    *(OSError, ValueError, NotImplementedError, EOFError),
    *(zipfile.BadZipFile, tarfile.TarError),
)

_REMEDY = "give the config.yaml that lies beside the model"
_PACKED_REMEDY = "give it as model_tag, or in Python to from_pretrained()"


def read_train_config(key: str, path: Any) -> Mapping[str, Any]:
    """Read the config that a training has written.

    Args:
        key: The option that names it.
        path: The file.

    Raises:
        OptionError: It cannot be read, or holds no options.
    """
    check_file(key, path)
    if is_packed_model(path):
        raise OptionError(f"{key}: {path} is a packed model: {_PACKED_REMEDY}")
    try:
        stat = Path(path).stat()
        config = _parsed(str(Path(path).absolute()), stat.st_mtime_ns, stat.st_size)
    except OSError as e:
        raise OptionError(f"{key}: {path} cannot be read: {e.strerror}") from e
    except NO_YAML as e:
        raise OptionError(
            f"{key}: {path} is no yaml file: {one_line(e)}: {_REMEDY}"
        ) from e
    if not isinstance(config, dict):
        what = "is empty" if config is None else "holds no `option: value` lines"
        raise OptionError(f"{key}: {path} {what}: {_REMEDY}")
    return config


@functools.lru_cache(maxsize=4)  # long, and asked for again and again
def _parsed(path: str, changed: int, size: int) -> Any:
    """Return what a yaml file of this date and size holds; nobody may change it."""
    return load_yaml(Path(path).read_text(encoding="utf-8"))


def check_file(key: str, path: Any) -> None:
    """Verify that there is a file.

    Raises:
        OptionError: There is none, or a folder; this is no name of one.
    """
    if not isinstance(path, str | Path) or not str(path):
        raise OptionError(f"{key}: {path!r} is no name of a file")
    if os.path.isdir(path):  # a Path raises for a name that is too long
        raise OptionError(f"{key}: {path} is a folder: give the file in it")
    if not os.path.isfile(path):
        raise OptionError(f"{key}: {why_no_file(path)}")


def why_no_file(path: str | Path, what: str = "file") -> str:
    """Say why a path is no file that can be read twice.

    Args:
        path: Where it should be.
        what: What it should be.
    """
    if os.path.isdir(path):
        return f"{path} is a folder"
    if os.path.exists(path):
        return (
            f"{path} is a pipe or a device, and files are read more than once: save "
            "what it gives as a file, and name that"
        )
    try:
        os.stat(path)
    except PermissionError as e:  # of a folder on the way: it may well be there
        return f"{path} cannot be read: {e.strerror}"
    except (OSError, ValueError):
        pass
    return f"there is no {what} {path}"


def is_packed_model(path: str | Path) -> bool:
    """Tell whether a file is an archive as ESPnet's ``pack`` writes it."""
    try:
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                first = archive.next()
            return first is not None and first.name == "meta.yaml"
        with zipfile.ZipFile(path) as packed:
            return any(Path(name).name == "meta.yaml" for name in packed.namelist())
    except _NO_ARCHIVE:
        return False


def section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of a training config, such as `model_conf`; {} where it is none."""
    part = config.get(name)
    return part if isinstance(part, Mapping) else {}


def files_in(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the files that a training config names, by what names them.

    Of word pieces, statistics of features, a token list. They need not be there, and a
    tokenizer can have a name in place of a file, e.g. whisper_en.
    """
    named = {name: config.get(name) for name in (*_WORD_PIECES, "token_list")}
    for part in config:
        named[f"{part}: {STATS}"] = section(config, part).get(STATS)
    return {name: file for name, file in named.items() if isinstance(file, str)}


def train_config_file(options: Mapping[str, Any], tool: str) -> Any:
    """Return the training config of a model, as named or as ESPnet finds it.

    Args:
        options: Of an inference class.
        tool: The letters that the names of the model's options begin with.

    Returns:
        The file; None where no model is named.
    """
    path, model = options.get(f"{tool}_train_config"), options.get(f"{tool}_model_file")
    if path is None and isinstance(model, str | Path):
        return Path(model).parent / "config.yaml"
    return path


def train_config(options: Mapping[str, Any], tool: str) -> Mapping[str, Any]:
    """Return what a model was trained by.

    Args:
        options: Of an inference class; the config that they name, or as ESPnet has it
            the one beside the model that they name, is read.
        tool: The letters that the names of the two options begin with.

    Returns:
        The options of the training; none if there is no such file.

    Raises:
        OptionError: See :func:`read_train_config`.
    """
    if tool in ("lm", "src_lm"):
        path = options.get(f"{tool}_train_config")
    else:
        path = train_config_file(options, tool)
    if path is None or not os.path.isfile(path):
        return {}  # ESPnet says so
    return read_train_config(f"{tool}_train_config", path)


def letters_of(options: Mapping[str, Any]) -> str:
    """Return the letters that the names of the model's options begin with."""
    ends = "_train_config"
    names = [key.removesuffix(ends) for key in options if key.endswith(ends)]
    return next((name for name in names if tool_of(name)), "")


def check_train_configs(options: Mapping[str, Any]) -> None:
    """Verify the training configs that the options of a tool name.

    Args:
        options: Of an inference class, or of its tool; the model's files may not be
            known yet.

    Raises:
        OptionError: A file is none that a training of such a model leaves behind, or an
            option asks for what the model is not.
    """
    for key in [key for key in options if key.endswith("lm_train_config")]:
        if options[key] is not None:
            config = read_train_config(key, options[key])
            _check_tokens(key, options[key], config)
            if task_of(config) != "lm":
                raise OptionError(
                    f"{key}: {options[key]} is the training config of a model that is "
                    f"no LM: {_REMEDY}"
                )
    letters = letters_of(options)
    model = options.get(f"{letters}_model_file")
    if isinstance(model, str | Path) and is_packed_model(model):
        raise OptionError(
            f"{letters}_model_file: {model} is a packed model: {_PACKED_REMEDY}"
        )
    path, tool = train_config_file(options, letters), tool_of(letters)
    if path is None or tool is None:
        return
    key = f"{letters}_train_config"
    if options.get(key) is None and not os.path.isfile(path):
        check_file(f"{letters}_model_file", model)
        raise OptionError(
            f"{letters}_model_file: there is no config.yaml beside {model}: name its "
            f"training config with {key}"
        )
    config = read_train_config(key, path)
    _check_tokens(key, path, config)
    given = {name: options.get(name) for name in _WORD_PIECES if options.get(name)}
    for name, file in {**files_in(config), **given}.items():
        # sentencepiece ends the process over a folder, and a pipe is waited for
        if isinstance(file, str) and os.path.exists(file):
            check_file(name, file)
    task = task_of(config)
    if "enh_s2t_task" in options:
        _check_enhancement(path, task, bool(options["enh_s2t_task"]))
    _check_task(key, path, tool, task)
    for option, problem in _contradictions(options, config):
        raise OptionError(f"{option}: the model of {path} {problem}")


def feature_size(config: Mapping[str, Any]) -> int | None:
    """Return of what size the features are that a model takes; None: it takes audio.

    Models that take audio without a frontend, such as Whisper's, have the size 1.
    """
    size = config.get("input_size")
    features = config.get("frontend", "default") is None and isinstance(size, int)
    return size if features and size > 1 else None  # type: ignore[operator]


def check_hears(where: str, config: Mapping[str, Any]) -> None:
    """Verify that a model takes audio.

    Args:
        where: What names the model.
        config: Of its training.

    Raises:
        OptionError: It takes features.
    """
    size = feature_size(config)
    if size is not None:
        raise OptionError(
            f"{where}: the model takes features of size {size} and no audio, as its "
            "training had frontend: null: decode features with its drop-in, with the "
            "type kaldi_ark or npy"
        )


def _check_tokens(key: str, path: Any, config: Mapping[str, Any]) -> None:
    """Verify that there is a token list, of texts."""
    tokens = config.get("token_list")
    if not tokens or not isinstance(tokens, list | str):
        raise OptionError(
            f"{key}: {path} is not the training config of a model: it has no "
            f"token_list: {_REMEDY}"
        )
    for i, token in enumerate(tokens):
        if not isinstance(token, str):
            raise OptionError(
                f"{key}: {path}: label {i} of its token_list is {token!r}, which is no "
                "text: put it into quotes"
            )


def task_of(config: Mapping[str, Any]) -> str:
    """Return which task a model was trained for, by the options that it alone has.

    Returns:
        As the names of its options begin, "asr" for what else can do as a recogniser;
        "" where nothing tells.
    """
    for task, key in _KEYS:
        if key in config:
            return task
    if config.get("preprocessor") == "s2t":
        return "s2t"
    if any(config.get(key) for key in _SLU):
        return "slu"
    return "asr" if "ctc_conf" in config else ""


def _check_enhancement(path: Any, task: str, enhance: bool) -> None:
    """Verify that speech is enhanced if, and only if, the model does."""
    if enhance != (task == "enh_s2t"):
        what = "does not enhance" if enhance else "enhances"
        remedy = "leave it out" if enhance else "set it to true"
        raise OptionError(f"enh_s2t_task: the model of {path} {what} speech: {remedy}")


def _check_task(key: str, path: Any, tool: Tool, task: str) -> None:
    """Verify that a model is one of the tool's; of an unknown task it may be."""
    if task == "lm":
        raise OptionError(
            f"{key}: {path} is the training config of a model that is an LM: {_REMEDY}"
        )
    other = tool_of(task)
    taken = {"slu", "asr"} if tool.key == "slu" else {tool.key}
    if other is not None and other.key not in taken:
        raise OptionError(
            f"{key}: {path} is the training config of a model of {other.name}, not of "
            f"{tool.name}: decode it with {other.name}"
        )


def _contradictions(
    options: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield options that ask for what the model is not, and what it is."""
    if options.get("multi_asr") and config.get("model") != "pit_espnet":
        yield "multi_asr", "hears one speaker: leave it out"
    decoder = config.get("decoder", config.get("asr_decoder"))
    if options.get("transducer_conf") and decoder != "transducer":
        yield "transducer_conf", "is no transducer: leave it out"
    named = options.get("bpemodel") or config.get("bpemodel")
    if options.get("token_type") == "bpe" and not named:
        yield "token_type", "has no bpemodel: name one with bpemodel"
    given, trained = options.get("token_type"), config.get("token_type")
    own = options.get("bpemodel") is not None  # which goes with another token type
    if given is not None and isinstance(trained, str) and given != trained and not own:
        yield "token_type", f"was trained with {trained}, and not {given}: leave it out"
