"""Beam search without length bias for ESPnet's attention encoder-decoder models."""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

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
    "label_confidence": "posteriors.results",
    "minimum_bayes_risk": "posteriors.results",
    "use_search": "inference.use_search",
    "word_confidence": "posteriors.results",
}

__all__ = [*_HOMES, "__version__"]
__version__ = version("espnet_lenbias")


# Type checkers see the classes and functions themselves, and no other names.
if TYPE_CHECKING:
    from espnet_lenbias.errors import AudioError as AudioError
    from espnet_lenbias.errors import OptionError as OptionError
    from espnet_lenbias.errors import ScorerError as ScorerError
    from espnet_lenbias.inference.asr import Speech2Text as Speech2Text
    from espnet_lenbias.inference.use_search import use_search as use_search
    from espnet_lenbias.options.registry import available_searches as available_searches
    from espnet_lenbias.posteriors.results import label_confidence as label_confidence
    from espnet_lenbias.posteriors.results import (
        minimum_bayes_risk as minimum_bayes_risk,
    )
    from espnet_lenbias.posteriors.results import word_confidence as word_confidence
    from espnet_lenbias.search.beam_search import (
        ExplicitLengthBeamSearch as ExplicitLengthBeamSearch,
    )
    from espnet_lenbias.search.beam_search import SimpleBeamSearch as SimpleBeamSearch
    from espnet_lenbias.search.hypotheses import Hypothesis as Hypothesis
    from espnet_lenbias.search.trace import Trace as Trace
else:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_HOMES[name]}")
        globals()[name] = value = getattr(module, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
