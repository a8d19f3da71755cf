"""CTC or a decoder that is asked for in decoding: a model may be trained without."""

from collections.abc import Mapping
from typing import Any

from espnet_lenbias.errors import OptionError
from espnet_lenbias.espnet_compat import CTCPrefixScorer
from espnet_lenbias.inference.model_checks import has_source_search, network_of
from espnet_lenbias.options.train_config import section, train_config


def check_ctc(model: Any) -> None:
    """Verify that a model has the CTC and the decoder that its search is to use.

    Args:
        model: An inference object.

    Raises:
        OptionError: Says which weight to set.
    """
    _check_search(model.beam_search, "ctc_weight")
    _check_decoder(model)
    if has_source_search(model):
        source = model.asr_beam_search
        _check_search(source, "asr_ctc_weight")
        if "decoder" not in source.scorers:
            raise OptionError(
                "asr_ctc_weight is 1.0, and what is translated are the hidden states of "
                "the decoder of the source text: set asr_ctc_weight below 1.0"
            )


def _check_search(search: Any, key: str) -> None:
    scorer = getattr(search, "scorers", {}).get("ctc")
    if isinstance(scorer, CTCPrefixScorer) and scorer.ctc is None:
        raise _no_ctc(key, search.weights["ctc"])


def _check_decoder(model: Any) -> None:
    """Verify that a model has a decoder: one that is trained with CTC alone has none."""
    network = network_of(model)
    weights = getattr(model.beam_search, "weights", {})
    # without CTC there is nothing to say: what is neither has another search
    has_ctc = getattr(network, "ctc", None) is not None
    if has_ctc and getattr(network, "decoder", None) is None and weights.get("decoder"):
        raise OptionError(
            f"ctc_weight is {weights['ctc']}, and the model has no decoder, as it was "
            "trained with CTC alone: set ctc_weight: 1.0 (in Python ctc_weight=1.0)"
        )


def check_ctc_precision(search: Any, dtype: str) -> None:
    """Verify that ESPnet's own search can compute CTC prefix scores in a model's dtype.

    Its scorer has -1e10 for zero, which is beyond float16.

    Args:
        search: ESPnet's.
        dtype: The model's.

    Raises:
        OptionError: It cannot.
    """
    scorers = getattr(search, "scorers", {})
    if dtype == "float16" and isinstance(scorers.get("ctc"), CTCPrefixScorer):
        raise OptionError(
            "dtype: ESPnet's search cannot compute CTC scores in float16: leave dtype "
            "out, set ctc_weight to 0.0, or say search: explicit_length"
        )


def check_ctc_weight(ctc_weight: float, has_ctc: bool) -> None:
    """Verify the weight of a CTC that ESPnet would not find while it builds the search.

    Raises:
        OptionError: There is no CTC to weight.
    """
    if ctc_weight > 0 and not has_ctc:
        raise _no_ctc("ctc_weight", ctc_weight)


def check_st_ctc(options: Mapping[str, Any]) -> None:
    """Verify that a speech translator has CTC for the translation if it is used.

    Args:
        options: Of the inference class.

    Raises:
        OptionError: There is none to weight.
    """
    config = train_config(options, "st")
    # ESPnet's default weight in training is 0.
    weight = section(config, "model_conf").get("st_mtlalpha", 0.0)
    if config and isinstance(weight, int | float):  # of another one ESPnet tells
        check_ctc_weight(options["ctc_weight"], weight > 0)


def _no_ctc(key: str, weight: float) -> OptionError:
    return OptionError(
        f"{key} is {weight}, and the model has no CTC: set {key}: 0.0 (in Python "
        f"{key}=0.0)"
    )
