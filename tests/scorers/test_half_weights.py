"""The product with half-precision numbers."""

import gc

import pytest
import torch

from espnet_lenbias.scorers import half_weights
from espnet_lenbias.scorers.half_weights import label_product

V, D = 37, 12

needs_engine = pytest.mark.skipif(
    torch.backends.quantized.engine not in half_weights._ENGINES,
    reason="torch has no such product for this processor",
)


@pytest.fixture
def module() -> torch.nn.Embedding:
    """An embedding of half-precision numbers: usual, tiny, huge."""
    torch.manual_seed(0)
    module = torch.nn.Embedding(V, D)
    with torch.no_grad():
        module.weight.copy_(module.weight.half())
        module.weight[3, :4] = torch.tensor([2.0**-24, -(2.0**-15), 65504.0, -0.0])
    return module


def is_laid_out(module: torch.nn.Module) -> bool:
    found = half_weights._laid_out.get(module)
    return found is not None and found.weight is not None


@needs_engine
@torch.no_grad()
def test_all_numbers_are_kept(module):
    # a row with a single 1 fetches a column of the matrix, without rounding
    product = label_product(torch.eye(D), module, module.weight)
    assert is_laid_out(module)
    assert product.dtype == torch.float32
    assert torch.equal(product, module.weight.T)


@needs_engine
@torch.no_grad()
@pytest.mark.parametrize("n", [1, 5, 64])
def test_products(n, module):
    module.weight.clamp_(-4, 4)
    x = torch.randn(n, D)
    exact = x.double() @ module.weight.double().T
    product = label_product(x, module, module.weight)
    assert is_laid_out(module)
    torch.testing.assert_close(product.double(), exact, atol=1e-4, rtol=0)


@torch.no_grad()
def test_a_matrix_that_changes(module):
    x = torch.eye(D)
    label_product(x, module, module.weight)
    module.weight.mul_(2).clamp_(-8, 8)
    assert torch.equal(label_product(x, module, module.weight), module.weight.T)
    module.weight[0, 0] = 1 + 2**-20  # no half-precision number
    assert torch.equal(label_product(x, module, module.weight), module.weight.T)
    assert not is_laid_out(module)
    module.weight = torch.nn.Parameter(torch.ones(V, D))
    assert torch.equal(label_product(x, module, module.weight), torch.ones(D, V))


def test_what_it_is_not_for(module):
    """Gradients, other dtypes, and a matrix that is made at each use."""
    product = label_product(torch.ones(1, D), module, module.weight)
    product.sum().backward()
    assert torch.equal(module.weight.grad, torch.ones(V, D))
    with torch.no_grad():
        label_product(torch.ones(1, D), torch.nn.Identity(), module.weight)
        module.double()
        x = torch.ones(1, D, dtype=torch.float64)
        assert label_product(x, module, module.weight).dtype == torch.float64
    assert not is_laid_out(module)


@needs_engine
@torch.no_grad()
def test_a_model_that_is_gone_leaves_nothing(module):
    before = len(half_weights._laid_out)
    other = torch.nn.Embedding(2, D)
    label_product(torch.ones(1, D), other, other.weight)
    assert len(half_weights._laid_out) == before + 1
    del other
    gc.collect()
    assert len(half_weights._laid_out) == before
