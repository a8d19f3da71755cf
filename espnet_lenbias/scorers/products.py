"""Matrix products of a search on a CPU, with weights laid out as the processor likes them.

A step multiplies few rows, one for each hypothesis, with the same weights as the step
before. torch's usual product reads them as they lie in the model, and lays them out anew
at every call or makes do. Here they are laid out once, in one of two ways:

* for oneDNN, torch's own library for x86 processors, in float32 or bfloat16;
* as half-precision numbers, where all of them are such: OpenAI's checkpoints are in half
  precision, and a product with these reads half as much memory.

What is returned differs from the usual product by rounding alone.
"""

import platform
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch

_HALF_ENGINES = ("x86", "fbgemm")  # of torch, that multiply with half-precision numbers
# What multiplies and does nothing else: Whisper's own adapts dtypes, too.
_MODULES = (
    "torch.nn.modules.linear.Linear",
    "torch.nn.modules.sparse.Embedding",
    "whisper.model.Linear",
)
_SAMPLE = 64  # numbers of a weight that tell whether it has changed


class _LaidOut(NamedTuple):
    """The weight of a module as a product takes it."""

    of: tuple[Any, ...]  # what changes when the weight does
    sample: torch.Tensor  # of it: what is written past torch counts no version up
    weight: Any
    is_half: bool

    def product(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Multiply (..., D) with the weight, (V, D), and add the bias, (V,)."""
        y: torch.Tensor
        if self.is_half:
            y = torch.ops.quantized.linear_dynamic_fp16(x, self.weight)
            return y if bias is None else y.add_(bias)
        y = torch.ops.mkldnn._linear_pointwise(x, self.weight, bias, "none", [], "")
        return y


# Adapters are made for each search; a model's weights are laid out once.
_laid_out: WeakKeyDictionary[torch.nn.Module, _LaidOut] = WeakKeyDictionary()


def lay_out(scorer: torch.nn.Module, embedding: torch.nn.Module | None = None) -> None:
    """Lay out the weights of a decoder or an LM, those that have changed anew.

    Adapters do this when a search starts. It takes as much memory as the weights of the
    linear layers do, or half of it.

    Args:
        scorer: Its linear layers are laid out.
        embedding: One that labels are scored with; others have no products.
    """
    for module in scorer.modules():
        if not (isinstance(module, torch.nn.Linear) or module is embedding):
            continue
        if not _may_be_laid_out(module):
            _laid_out.pop(module, None)
            continue
        weight = cast(torch.Tensor, module.weight).detach()
        of = (weight.data_ptr(), weight.shape, weight.dtype, _version(weight))
        sample, found = _sample(weight), _laid_out.get(module)
        if found is None or found.of != of or not torch.equal(found.sample, sample):
            _laid_out[module] = _LaidOut(of, sample.clone(), *_packed(weight, sample))


def linear(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return what a linear layer, of any type, makes of its input: (..., D) to (..., V)."""
    found = _found(module, x)
    if found is None:
        y: torch.Tensor = module(x)
        return y
    bias: Any = module.bias
    return found.product(x, bias)


def label_product(
    x: torch.Tensor, module: torch.nn.Module, weight: torch.Tensor
) -> torch.Tensor:
    """Multiply rows with a matrix that has a row for each label.

    Args:
        x: (n, D).
        module: An embedding, whose `weight` the matrix is.
        weight: (V, D) the matrix.

    Returns:
        (n, V).
    """
    found = _found(module, x)
    return x @ weight.T if found is None else found.product(x, None)


def _found(module: torch.nn.Module, x: torch.Tensor) -> _LaidOut | None:
    """Return the weight of a module as it is laid out for such an input, if it is."""
    found = _laid_out.get(module)
    if found is None or torch.is_grad_enabled():  # these products have no gradient
        return None
    return found if x.dtype == found.sample.dtype and x.device.type == "cpu" else None


def _may_be_laid_out(module: torch.nn.Module) -> bool:
    """Tell whether a module does nothing but multiply with its weight, on a CPU."""
    weight: Any = module.weight
    return (
        # others, such as LoRA's, make a matrix at each use
        f"{type(module).__module__}.{type(module).__name__}" in _MODULES
        and not (module._forward_hooks or module._forward_pre_hooks)
        and isinstance(weight, torch.Tensor)
        and weight.device.type == "cpu"
        and _has_products()
        and _multiplies(weight.dtype)
    )


def _has_products() -> bool:
    """Tell whether torch has these products, which it gives no public name."""
    ops = torch.ops.mkldnn
    return (
        platform.machine() in ("x86_64", "AMD64")
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(ops, "_linear_pointwise")
        and hasattr(ops, "_reorder_linear_weight")
    )


def _multiplies(dtype: torch.dtype) -> bool:
    """Tell whether the processor multiplies numbers of a dtype."""
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32


def _version(weight: torch.Tensor) -> int:
    """Return how often a tensor was written into; one for inference alone: never."""
    return -1 if weight.is_inference() else weight._version


def _sample(weight: torch.Tensor) -> torch.Tensor:
    """Return some numbers of a weight, from all over it."""
    return weight.flatten()[:: max(1, weight.numel() // _SAMPLE)]


def _packed(weight: torch.Tensor, sample: torch.Tensor) -> tuple[Any, bool]:
    """Return a weight as one of the two products takes it, and whether it is as halves."""
    if (
        torch.backends.quantized.engine in _HALF_ENGINES
        and hasattr(torch.ops.quantized, "linear_dynamic_fp16")
        and weight.dtype == torch.float32
        and _fits_half(sample)  # which most others do not
        and _fits_half(weight)
    ):
        return torch.ops.quantized.linear_prepack_fp16(weight, None), True
    return torch.ops.mkldnn._reorder_linear_weight(weight), False


def _fits_half(numbers: torch.Tensor) -> bool:
    """Tell whether numbers are the same in half precision."""
    return torch.equal(numbers.half().float(), numbers)
