"""Matrix products on a CPU, with weights laid out once as the processor likes them.

A step multiplies few rows, one for each hypothesis, with the same weights as the step
before. torch's usual product reads them as they lie in the model, and lays them out anew
at every call or makes do. Here they are laid out once, in one of two ways:

* for oneDNN, torch's own library for x86 processors, in float32 or bfloat16. In float32 not
  on Intel's: there the usual products, those of MKL, are as fast or faster;
* as half-precision numbers, where all of them are such: OpenAI's checkpoints are in half
  precision, and a product with these reads half as much memory.

What is returned differs from the usual product by rounding alone.
"""

import functools
import platform
from pathlib import Path
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch

_HALF_ENGINES = ("x86", "fbgemm")  # of torch, that multiply with half-precision numbers
# What multiplies and does nothing else: the names of its matrices. (Whisper's own adapts
# dtypes, too.) Others, such as LoRA's, make a matrix at each use.
_MATRICES = {
    "torch.nn.modules.linear.Linear": ("weight",),
    "torch.nn.modules.rnn.LSTMCell": ("weight_ih", "weight_hh"),
    "whisper.model.Linear": ("weight",),
}
_LARGE = 2**18  # numbers of a matrix; the usual products with smaller ones are as fast
_SAMPLE = 64  # numbers of a matrix that tell whether it has changed


class _LaidOut(NamedTuple):
    """A matrix of a module as a product takes it."""

    of: tuple[Any, ...]  # what changes when the matrix does
    sample: torch.Tensor  # of it: what is written past torch counts no version up
    matrix: Any
    is_half: bool

    def product(self, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Multiply (..., D) with the matrix, (V, D), and add the bias, (V,)."""
        y: torch.Tensor
        if self.is_half:
            y = torch.ops.quantized.linear_dynamic_fp16(x, self.matrix)
            return y if bias is None else y.add_(bias)
        y = torch.ops.mkldnn._linear_pointwise(x, self.matrix, bias, "none", [], "")
        return y


# Adapters are made for each search; a model's matrices are laid out once, by their names.
_laid_out: WeakKeyDictionary[torch.nn.Module, dict[str, _LaidOut]] = WeakKeyDictionary()


def lay_out(scorer: torch.nn.Module, embedding: torch.nn.Module | None = None) -> None:
    """Lay out the matrices of a decoder or an LM, those that have changed anew.

    Adapters do this when a search starts. It takes as much memory as the matrices do, or
    half of it.

    Args:
        scorer: Its linear layers and LSTM cells are laid out.
        embedding: One that labels are scored with; others have no products.
    """
    for module in scorer.modules():
        is_plain = type(module) is torch.nn.Embedding  # others make it at each use
        scores = module is embedding and is_plain
        names = ("weight",) if scores else _matrices(module)
        before = _laid_out.pop(module, {})
        if not names or module._forward_hooks or module._forward_pre_hooks:
            continue
        matrices = {name: getattr(module, name) for name in names}
        if all(_may_be_laid_out(matrix) for matrix in matrices.values()):
            _laid_out[module] = {
                name: _as_laid_out(matrix.detach(), before.get(name))
                for name, matrix in matrices.items()
            }


def linear(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return what a linear layer, of any type, makes of its input: (..., D) to (..., V)."""
    found = _found(module, x)
    if found is None:
        y: torch.Tensor = module(x)
        return y
    bias: Any = module.bias
    return found["weight"].product(x, bias)


def lstm_cell(
    module: torch.nn.Module, x: torch.Tensor, z: torch.Tensor, c: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what an LSTM cell, of any type, makes of its input.

    Args:
        module: The cell.
        x: (n, D) input.
        z: (n, H) its output at the position before.
        c: (n, H) its cell there.

    Returns:
        (n, H) output, and (n, H) cell.
    """
    found, cell = _found(module, x), cast(torch.nn.LSTMCell, module)
    if found is None:
        both: tuple[torch.Tensor, torch.Tensor] = cell(x, (z, c))
        return both
    gates = found["weight_ih"].product(x, cell.bias_ih)
    gates += found["weight_hh"].product(z, cell.bias_hh)
    taken, kept, new, shown = gates.chunk(4, dim=1)
    c = torch.addcmul(kept.sigmoid_() * c, taken.sigmoid_(), new.tanh_())
    return shown.sigmoid_() * c.tanh(), c


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
    return x @ weight.T if found is None else found["weight"].product(x, None)


def _found(module: torch.nn.Module, x: torch.Tensor) -> dict[str, _LaidOut] | None:
    """Return the matrices of a module as they are laid out for such an input, if so."""
    found = _laid_out.get(module)
    if found is None or torch.is_grad_enabled():  # these products have no gradient
        return None
    [of_first, *_] = found.values()
    fits = x.dtype == of_first.sample.dtype and x.device.type == "cpu"
    return found if fits else None


def _matrices(module: torch.nn.Module) -> tuple[str, ...]:
    """Return the names of a module's matrices, if it only multiplies with them."""
    kind = type(module)
    return _MATRICES.get(f"{kind.__module__}.{kind.__qualname__}", ())


def _may_be_laid_out(matrix: torch.Tensor) -> bool:
    """Tell whether there is such a product with a matrix."""
    return (
        matrix.device.type == "cpu"
        and matrix.numel() >= _LARGE
        and _has_products()
        and _gains(matrix)
    )


def _as_laid_out(matrix: torch.Tensor, before: _LaidOut | None) -> _LaidOut:
    """Lay out a matrix, unless it is what it was before."""
    version = -1 if matrix.is_inference() else matrix._version  # these count none
    of = (matrix.data_ptr(), matrix.shape, matrix.dtype, version)
    sample = _sample_of(matrix)
    if before is not None and before.of == of and torch.equal(before.sample, sample):
        return before
    return _LaidOut(of, sample.clone(), *_packed(matrix))


def _has_products() -> bool:
    """Tell whether torch has these products, which it gives no public name."""
    ops = torch.ops.mkldnn
    return (
        platform.machine() in ("x86_64", "AMD64")
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(ops, "_linear_pointwise")
        and hasattr(ops, "_reorder_linear_weight")
    )


def _gains(matrix: torch.Tensor) -> bool:
    """Tell whether these products are faster on this processor than the usual ones."""
    if matrix.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    if matrix.dtype != torch.float32:
        return False
    return not is_intel() or _fits_half(_sample_of(matrix))


@functools.cache
def is_intel() -> bool:
    """Tell whether the processor is one of Intel's."""
    try:
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "Intel" in platform.processor()


def _packed(matrix: torch.Tensor) -> tuple[Any, bool]:
    """Return a matrix as one of the two products takes it, and whether it is as halves."""
    if _is_half(matrix):
        return torch.ops.quantized.linear_prepack_fp16(matrix, None), True
    return torch.ops.mkldnn._reorder_linear_weight(matrix), False


def _is_half(matrix: torch.Tensor) -> bool:
    """Tell whether a float32 matrix can be multiplied with as half-precision numbers."""
    return (
        torch.backends.quantized.engine in _HALF_ENGINES
        and hasattr(torch.ops.quantized, "linear_dynamic_fp16")
        and matrix.dtype == torch.float32
        and _fits_half(_sample_of(matrix))  # which most others do not
        and _fits_half(matrix)
    )


def _sample_of(matrix: torch.Tensor) -> torch.Tensor:
    """Return some numbers of a matrix, by which it is told from others."""
    return matrix.flatten()[:: max(1, matrix.numel() // _SAMPLE)]


def _fits_half(numbers: torch.Tensor) -> bool:
    """Tell whether numbers are the same in half precision."""
    return torch.equal(numbers.half().float(), numbers)
