"""Beam search without length bias for ESPnet's attention encoder-decoder models."""

import importlib
from importlib.metadata import version

# Public name -> its module, imported when the name is first used (PEP 562), so that
# command lines answer `--help` and report a mistake without loading torch.
_HOMES = {
    "ExplicitLengthBeamSearch": "search",
    "SimpleBeamSearch": "search",
    "Speech2Text": "speech2text",
    "use_search": "swap",
    "available_searches": "registry",
}

__all__ = [*_HOMES, "__version__"]
__version__ = version("espnet_lenbias")


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
