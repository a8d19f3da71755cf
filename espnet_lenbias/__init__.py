"""Beam search without length bias for ESPnet's attention encoder-decoder models."""

import importlib
from importlib.metadata import version

# Public name -> its module, imported when the name is first used (PEP 562), so that
# command lines answer `--help` and report a mistake without loading torch.
_HOMES = {
    "AudioError": "errors",
    "ExplicitLengthBeamSearch": "search.beam_search",
    "Hypothesis": "search.hypotheses",
    "OptionError": "errors",
    "ScorerError": "errors",
    "SimpleBeamSearch": "search.beam_search",
    "Speech2Text": "inference.asr",
    "Trace": "search.trace",
    "available_searches": "options.registry",
    "use_search": "inference.use_search",
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
