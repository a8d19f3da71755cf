"""Models of OpenAI's Whisper: building them with the releases that pip installs.

ESPnet's Whisper modules were written for releases of `openai-whisper` up to 20230308.
What they ask for and later releases have not is put there, see :func:`whisper_ready`.
"""

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from espnet_lenbias.errors import OptionError, one_line
from espnet_lenbias.espnet_compat import LANGUAGES_CODE_MAPPING
from espnet_lenbias.inference.whisper_shapes import empty_whisper
from espnet_lenbias.inference.whisper_tokens import HuggingFaceView
from espnet_lenbias.options.train_config import section, train_config

_TOOLS = ("asr", "st", "s2t", "slu")
_N_LANGUAGES = 99  # of Whisper's models before large-v3
_PARTS = ("frontend", "encoder", "decoder")


def whisper_parts(config: Mapping[str, Any]) -> list[str]:
    """Return which parts of a model are Whisper's, of frontend, encoder and decoder."""
    return [part for part in _PARTS if config.get(part) == "whisper"]


def uses_whisper(config: Mapping[str, Any]) -> bool:
    """Tell whether a training's config names anything of Whisper's."""
    texts = ("token_type", "src_token_type", "bpemodel", "src_bpemodel")
    return bool(whisper_parts(config)) or any(
        "whisper" in str(config.get(key)) for key in texts
    )


@contextmanager
def whisper_ready(
    config: Mapping[str, Any], model_file: str | Path | None = None
) -> Iterator[None]:
    """Let ESPnet build a Whisper model, or its tokenizers, within the context.

    Args:
        config: Of the model's training. Of one without Whisper nothing is done.
        model_file: Its parameters, from which the sizes of Whisper's layers are read:
            OpenAI's checkpoint, whose parameters these replace, is not needed. None:
            OpenAI's are what the model is to have.

    Raises:
        OptionError: The package is not there; OpenAI's checkpoint is needed, and is not
            there and cannot be fetched.
    """
    if not uses_whisper(config):
        yield
        return
    if importlib.util.find_spec("whisper") is None:
        raise OptionError(
            "the model is made of OpenAI's Whisper, which ESPnet does not install: "
            "pip install 'espnet_lenbias[whisper]', or pip install openai-whisper"
        )
    import whisper
    from whisper.tokenizer import LANGUAGES

    _add_what_is_gone()
    for code, language in LANGUAGES.items():  # ESPnet lists some twenty of them
        LANGUAGES_CODE_MAPPING.setdefault(code, language)
    names = [section(config, f"{p}_conf").get("whisper_model") for p in _PARTS]
    known = [*whisper.available_models(), *filter(None, names)]
    load = partial(_load, whisper.load_model, whisper_parts(config), config, model_file)
    n_languages = _n_languages(config)
    # older releases, ESPnet's fork among them, do not ask how many
    count = {} if n_languages == _N_LANGUAGES else {"num_languages": n_languages}
    get_tokenizer = partial(whisper.tokenizer.get_tokenizer, **count)
    with (
        # ESPnet takes no file on disk, which `load_model` does
        _replaced(whisper, "available_models", lambda: known),
        _replaced(whisper, "load_model", load),
        # ESPnet does not say how many languages there are: 99, or 100 since large-v3
        _replaced(whisper.tokenizer, "get_tokenizer", get_tokenizer),
    ):
        yield


@contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """Have a module of Whisper's another function within the context."""
    old = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, old)


def _add_what_is_gone() -> None:
    """Add what newer releases of Whisper have not, under the names that ESPnet uses."""
    from whisper import audio
    from whisper.tokenizer import Tokenizer

    if not hasattr(audio, "N_MELS"):
        # A constant up to 20231106, when large-v3 came with 128; see `whisper_results`.
        audio.N_MELS = 80
    fields = getattr(Tokenizer, "__dataclass_fields__", {})
    if "encoding" in fields and not hasattr(Tokenizer, "tokenizer"):
        view = cached_property(_view)
        view.__set_name__(Tokenizer, "tokenizer")
        Tokenizer.tokenizer = view


def _view(tokenizer: Any) -> HuggingFaceView:
    return HuggingFaceView(tokenizer.encoding)


def _n_languages(config: Mapping[str, Any]) -> int:
    """Return how many languages a model's labels tell apart."""
    tokens = config.get("token_list")
    try:  # from its start label on: a label for each, then those of the tasks
        first = tokens.index("<|startoftranscript|>")  # type: ignore[union-attr]
        count: int = tokens.index("<|translate|>") - first - 1  # type: ignore[union-attr]
    except (AttributeError, ValueError):  # labels of its own
        return _N_LANGUAGES
    return count


def _load(
    load_model: Callable[..., Any],
    parts: Sequence[str],
    config: Mapping[str, Any],
    model_file: str | Path | None,
    name: str,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return the model that ESPnet asks Whisper for, empty where it is filled later."""
    empty = empty_whisper(parts, config, model_file) if model_file else None
    if empty is not None:
        return empty
    try:
        return load_model(name, *args, **kwargs)
    except (OSError, RuntimeError) as e:
        raise OptionError(
            f"whisper_model: {name} is needed, as the model's own file does not hold all "
            f"parameters, and cannot be loaded ({one_line(e)}): download "
            f"{name}.pt elsewhere, and put it into ~/.cache/whisper or name the file in "
            "the model's config"
        ) from e


def whisper_ready_for(options: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Return :func:`whisper_ready` for the model that an inference class is to load.

    Args:
        options: The inference class's.
    """
    for tool in _TOOLS:
        config = train_config(options, tool)
        if uses_whisper(config):
            return whisper_ready(config, options.get(f"{tool}_model_file"))
    return nullcontext()
