"""Products with a matrix of half-precision numbers, on a CPU.

OpenAI's checkpoints are in half precision. As float32, which is what they are loaded as,
their numbers are still the same, and for such a matrix torch has a product for x86
processors that reads half as much memory: what it returns differs by rounding alone. It
pays where few rows meet many labels, which is what the output layer of Whisper does.
"""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

_ENGINES = ("x86", "fbgemm")  # of torch, that have such a product


class _LaidOut(NamedTuple):
    """The weight of a module as the product takes it."""

    of: tuple[Any, ...]  # what changes when the weight does
    weight: Any  # None: the usual product has to do


# Adapters are made for each search; a model's weight is laid out once.
_laid_out: WeakKeyDictionary[torch.nn.Module, _LaidOut] = WeakKeyDictionary()


def label_product(
    x: torch.Tensor, module: torch.nn.Module, weight: torch.Tensor
) -> torch.Tensor:
    """Multiply rows with a matrix that has a row for each label.

    Args:
        x: (n, D).
        module: Whose `weight` the matrix is.
        weight: (V, D) the matrix.

    Returns:
        (n, V).
    """
    if not _may_be_laid_out(x, module, weight):
        return x @ weight.T
    # what is written into it counts its version up
    of = (weight.data_ptr(), weight.shape, weight._version)
    found = _laid_out.get(module)
    if found is None or found.of != of:
        found = _laid_out[module] = _LaidOut(of, _lay_out(weight))
    if found.weight is None:
        return x @ weight.T
    product: torch.Tensor = torch.ops.quantized.linear_dynamic_fp16(x, found.weight)
    return product


def _may_be_laid_out(
    x: torch.Tensor, module: torch.nn.Module, weight: torch.Tensor
) -> bool:
    """Tell whether there is such a product, whatever numbers the matrix has."""
    return (
        type(module) is torch.nn.Embedding  # of others the matrix is made at each use
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and torch.backends.quantized.engine in _ENGINES
        and hasattr(torch.ops.quantized, "linear_dynamic_fp16")
        and not weight.is_inference()  # which counts no versions
        and not torch.is_grad_enabled()  # it has no gradient
    )


def _lay_out(weight: torch.Tensor) -> Any:
    """Return a matrix as the product takes it; None: it needs more than half precision."""
    if not torch.equal(weight.half().float(), weight):
        return None
    return torch.ops.quantized.linear_prepack_fp16(weight.detach(), None)
