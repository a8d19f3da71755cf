"""Products with weights that are laid out once, against torch's usual ones."""

import gc

import pytest
import torch

from espnet_lenbias.scorers import products
from espnet_lenbias.scorers.products import label_product, lay_out, linear, lstm_cell
from tests.scorers.made import is_laid_out, needs_half

V, D = 37, 12

needs_products = pytest.mark.skipif(
    not products._has_products(), reason="torch has no such products here"
)


@pytest.fixture
def layer() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(D, V)


@pytest.fixture
def halves() -> torch.nn.Embedding:
    """An embedding of half-precision numbers: usual, tiny, huge."""
    torch.manual_seed(0)
    module = torch.nn.Embedding(V, D)
    with torch.no_grad():
        module.weight.copy_(module.weight.half())
        module.weight[3, :4] = torch.tensor([2.0**-24, -(2.0**-15), 65504.0, -0.0])
    return module


def assert_product(layer: torch.nn.Module, x: torch.Tensor, tolerance=1e-5) -> None:
    """Assert that a layer gives what a product in double precision gives."""
    exact = x.double() @ layer.weight.double().T
    if layer.bias is not None:
        exact = exact + layer.bias.double()
    y = linear(layer, x)
    assert y.dtype == x.dtype
    torch.testing.assert_close(y.double(), exact, atol=tolerance, rtol=0)


@needs_products
@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n", [0, 1, 5, 64])
def test_linear_layers(n, bias):
    torch.manual_seed(1)
    layer = torch.nn.Linear(D, V, bias=bias)
    lay_out(layer)
    assert is_laid_out(layer)
    assert_product(layer, torch.randn(n, D))


@needs_products
@torch.no_grad()
@pytest.mark.parametrize(
    "x",
    [
        torch.randn(2, 3, D),
        torch.randn(9, D)[::2],
        torch.randn(D, 5).T,
        torch.randn(4, 2 * D)[:, :D],
    ],
    ids=["of three axes", "every other row", "turned", "left half"],
)
@pytest.mark.parametrize("as_halves", [False, True])
def test_inputs_of_any_layout(x, as_halves, layer):
    if as_halves:
        layer.weight.copy_(layer.weight.half())
    lay_out(layer)
    assert_product(layer, x, tolerance=1e-4)


@needs_products
@torch.no_grad()
@pytest.mark.parametrize("as_halves", [False, True])
@pytest.mark.parametrize("n", [1, 5, 64])
def test_lstm_cells(n, as_halves):
    torch.manual_seed(1)
    cell = torch.nn.LSTMCell(D, 9)
    if as_halves:
        cell.weight_ih.copy_(cell.weight_ih.half())
        cell.weight_hh.copy_(cell.weight_hh.half())
    lay_out(torch.nn.ModuleList([cell]))
    assert is_laid_out(cell, as_halves)
    x, z, c = torch.randn(n, D), torch.randn(n, 9), torch.randn(n, 9)
    expected, before = cell(x, (z, c)), c.clone()
    for ours, theirs in zip(lstm_cell(cell, x, z, c), expected):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    assert torch.equal(c, before)  # that of other hypotheses, too


@torch.no_grad()
def test_cells_of_other_types():
    class Other(torch.nn.LSTMCell):
        def forward(self, x, state):
            return super().forward(2 * x, state)

    torch.manual_seed(1)
    cell, x, state = Other(D, 9), torch.randn(3, D), (torch.ones(3, 9),) * 2
    lay_out(cell)
    for ours, theirs in zip(lstm_cell(cell, x, *state), cell(x, state)):
        assert torch.equal(ours, theirs)


@needs_products
@torch.no_grad()
def test_bfloat16(layer):
    """Laid out where oneDNN multiplies in bfloat16: an x86 processor needs AVX-512."""
    layer.bfloat16()
    lay_out(layer)
    assert is_laid_out(layer) == torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert_product(layer, torch.randn(5, D).bfloat16(), tolerance=2e-2)


@needs_products
@torch.inference_mode()
def test_a_model_made_for_inference():
    layer = torch.nn.Linear(D, V)
    lay_out(layer)
    assert is_laid_out(layer)
    assert_product(layer, torch.randn(5, D))


def set_item(weight):
    weight[0, 0] = 7.0


@needs_products
@torch.no_grad()
@pytest.mark.parametrize(
    "change",
    [
        set_item,
        lambda weight: weight.data.mul_(2.0),  # which counts no version up
        lambda weight: weight.data.copy_(torch.eye(V, D)),
    ],
    ids=["one number", "data", "data of another model"],
)
def test_a_weight_that_changes(change, layer):
    x = torch.randn(5, D)
    lay_out(layer)
    linear(layer, x)
    change(layer.weight)
    lay_out(layer)
    assert_product(layer, x)


@needs_products
@torch.no_grad()
def test_a_weight_that_is_another(layer):
    lay_out(layer)
    layer.weight = torch.nn.Parameter(torch.eye(V, D))
    lay_out(layer)
    assert_product(layer, torch.randn(5, D))
    layer.double()
    lay_out(layer)
    assert not is_laid_out(layer)
    assert_product(layer, torch.randn(5, D).double())


@needs_products
@torch.no_grad()
def test_only_weights_that_changed_are_laid_out_anew(layer):
    other = torch.nn.Linear(V, D)
    both = torch.nn.Sequential(layer, other)
    lay_out(both)
    kept = [products._laid_out[module]["weight"] for module in both]
    other.weight.add_(1.0)
    lay_out(both)
    again = [products._laid_out[module]["weight"] for module in both]
    assert again[0] is kept[0]
    assert again[1] is not kept[1]


@needs_half
@torch.no_grad()
def test_all_numbers_in_half_precision_are_kept(halves):
    lay_out(halves, halves)
    assert is_laid_out(halves, as_halves=True)
    # a row with a single 1 fetches a column of the matrix, without rounding
    product = label_product(torch.eye(D), halves, halves.weight)
    assert product.dtype == torch.float32
    assert torch.equal(product, halves.weight.T)


@needs_half
@torch.no_grad()
@pytest.mark.parametrize("n", [0, 1, 5, 64])
def test_products_with_half_precision(n, halves, layer):
    halves.weight.clamp_(-4, 4)
    layer.weight.copy_(halves.weight)
    both = torch.nn.ModuleList([layer, halves])
    lay_out(both, halves)
    assert all(is_laid_out(module, as_halves=True) for module in both)
    x = torch.randn(n, D)
    assert_product(layer, x, tolerance=1e-4)
    product = label_product(x, halves, halves.weight)
    exact = x.double() @ halves.weight.double().T
    torch.testing.assert_close(product.double(), exact, atol=1e-4, rtol=0)


@needs_half
@torch.no_grad()
def test_one_number_that_needs_more_than_half_precision(halves):
    halves.weight.clamp_(-4, 4)
    halves.weight[1, 1] = 1 + 2**-20
    lay_out(halves, halves)
    assert not is_laid_out(halves, as_halves=True)
    product = label_product(torch.eye(D), halves, halves.weight)
    torch.testing.assert_close(product, halves.weight.T, atol=1e-6, rtol=0)


class Adapted(torch.nn.Linear):
    """As LoRA has it: the matrix is another one than the weight."""

    def forward(self, x):
        return 2 * super().forward(x)


@torch.no_grad()
def test_layers_that_do_more_than_multiply(layer):
    """They are called: layers of other types, with hooks, or quantized."""
    adapted, x = Adapted(D, V), torch.randn(3, D)
    hooked = torch.nn.Linear(D, V)
    lay_out(hooked)  # before it has the hook
    hooked.register_forward_hook(lambda module, args, output: -output)
    quantized = torch.ao.quantization.quantize_dynamic(
        torch.nn.Sequential(torch.nn.Linear(D, V)), {torch.nn.Linear}
    )[0]
    model = torch.nn.ModuleList([adapted, hooked, quantized])
    lay_out(model)
    for module in model:
        assert not is_laid_out(module)
        assert torch.equal(linear(module, x), module(x))


def test_gradients(layer):
    lay_out(layer)
    linear(layer, torch.ones(1, D)).sum().backward()
    assert torch.equal(layer.weight.grad, torch.ones(V, D))


@torch.no_grad()
def test_inputs_of_another_dtype(layer):
    lay_out(layer)
    with pytest.raises(RuntimeError, match="dtype"):  # as torch has it
        linear(layer, torch.ones(1, D, dtype=torch.float64))


@torch.no_grad()
def test_an_embedding_whose_matrix_is_made_at_each_use_is_left(halves):
    class Expanded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList([halves, torch.nn.Embedding(2, D)])

        @property
        def weight(self):
            return torch.cat([part.weight for part in self.parts])

    expanded = Expanded()
    lay_out(torch.nn.Sequential(expanded), expanded)
    assert not is_laid_out(expanded)
    assert expanded not in products._laid_out
    weight = expanded.weight
    assert torch.equal(label_product(torch.eye(D), expanded, weight), weight.T)


@needs_products
@torch.no_grad()
def test_embeddings_that_score_nothing_are_left(halves):
    lay_out(torch.nn.Sequential(halves))
    assert halves not in products._laid_out


@needs_products
@torch.no_grad()
def test_a_model_that_is_gone_leaves_nothing(layer):
    gc.collect()  # those of other tests
    before = len(products._laid_out)
    lay_out(layer)
    other = torch.nn.Linear(2, D)
    lay_out(other)
    assert len(products._laid_out) == before + 2
    del other
    gc.collect()
    assert len(products._laid_out) == before + 1


@torch.no_grad()
def test_small_matrices_are_left(layer, monkeypatch):
    monkeypatch.setattr(products, "_LARGE", V * D + 1)
    lay_out(layer)
    assert not is_laid_out(layer)
    x = torch.randn(3, D)
    assert torch.equal(linear(layer, x), layer(x))


@needs_products
@needs_half
def test_on_intels_processors_the_usual_products_are_taken_in_float32(
    layer, halves, monkeypatch
):
    """But for weights in half precision, of which half as much is to be read."""
    monkeypatch.setattr(products, "is_intel", lambda: True)
    lay_out(torch.nn.ModuleList([layer, halves]), halves)
    assert not is_laid_out(layer)
    assert is_laid_out(halves, as_halves=True)
