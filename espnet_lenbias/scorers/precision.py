"""Decoders and language models that compute in bfloat16, where the time goes.

Their matrix products are what a step of the search takes, and in bfloat16 a processor
does up to four times as many of them. Keys, values and states are of that dtype too; the
log-probs are float32 again, see :func:`espnet_lenbias.scorers.base.log_probs`.
"""

import copy
import platform

import torch

from espnet_lenbias.espnet_compat import OpenAIWhisperDecoder, ScorerInterface
from espnet_lenbias.scorers.lm import is_rnn_lm, is_transformer_lm
from espnet_lenbias.scorers.products import is_intel
from espnet_lenbias.scorers.rnn import supports as is_batched_rnn
from espnet_lenbias.scorers.transformer import supports as is_cached_transformer
from espnet_lenbias.scorers.whisper import supports as is_cached_whisper

_SUPPORTED = (
    is_cached_transformer,
    is_batched_rnn,
    is_cached_whisper,
    is_rnn_lm,
    is_transformer_lm,
)


def can_be_lowered(scorer: ScorerInterface) -> bool:
    """Tell whether a scorer is a decoder or an LM whose adapter takes any dtype.

    One that has been quantized is not: its products are of integers already.
    """
    return any(supports(scorer) for supports in _SUPPORTED) and not any(
        type(module).__module__.startswith("torch.ao.nn.quantized")
        for module in scorer.modules()
    )


def lowered(scorer: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Return a copy of a decoder or an LM that computes in another dtype."""
    copied = copy.deepcopy(scorer).to(dtype)
    if isinstance(scorer, OpenAIWhisperDecoder):
        for module in copied.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.float()  # as Whisper has it: they are handed float32
    return copied


def has_bfloat16_products(device: torch.device) -> bool:
    """Tell whether a device multiplies bfloat16 matrices faster than float32 ones.

    Of devices that torch cannot be asked about, yes. Intel's processors without AMX have
    such products, and do float32 as fast.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or platform.machine() not in ("x86_64", "AMD64"):
        return True
    # torch has no public name for these
    if torch.cpu._is_amx_tile_supported():
        return True
    return bool(torch.cpu._is_avx512_bf16_supported()) and not is_intel()
