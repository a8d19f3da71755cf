"""The pretended accelerator sees what a GPU would be asked for."""

import pytest
import torch

from tests.simulated_device import DEVICE, MixedDevices, on_device, simulated_device


@pytest.fixture
def counts():
    with simulated_device() as counts:
        yield counts


@pytest.fixture
def x(counts):
    return on_device(torch.tensor([[1.0, -2.0], [3.0, 4.0]]))


def test_results_are_those_of_the_cpu(counts, x):
    y = (x @ x.T).softmax(dim=1)[:, 1]
    assert y.device == DEVICE
    held = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert torch.equal(y.cpu(), (held @ held.T).softmax(dim=1)[:, 1])


@pytest.mark.parametrize(
    "operation, launches",
    [
        (lambda x: x + 1, 1),
        (lambda x: x.T @ x, 1),
        (lambda x: x.log_softmax(dim=1), 1),
        (lambda x: x.add_(1).mul_(2), 2),
        (lambda x: x.double(), 1),
        (lambda x: x.view(4)[1:].unsqueeze(0), 0),
        (lambda x: x.new_empty(3), 0),
        (lambda x: torch.zeros(3, device=x.device), 1),
        (lambda x: x[:, 0].copy_(x[:, 1]), 1),
    ],
)
def test_launches(counts, x, operation, launches):
    operation(x)
    assert (counts.of("launches"), counts.of("waits")) == (launches, 0)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: x[0, 0].item(),
        lambda x: bool((x > 0).all()),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x[torch.tensor([0, 1])],
        lambda x: torch.zeros(2, 2).copy_(x),
        lambda x: x.unique(),
        lambda x: torch.equal(x, x),
    ],
)
def test_waits(counts, x, operation):
    operation(x)
    assert counts.of("waits") == 1


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: torch.tensor([1, 2], device=x.device),
        lambda x: torch.ones(2).to(x.device),
        lambda x: x[[0, 1]],
    ],
)
def test_transfers(counts, x, operation):
    assert operation(x).device == DEVICE
    assert (counts.of("transfers"), counts.of("waits")) == (1, 0)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x + torch.ones(2),
        lambda x: torch.cat([x, torch.ones(1, 2)]),
        lambda x: torch.where(torch.ones(2).bool(), x, x),
        lambda x: x.index_select(0, torch.tensor([1])),
    ],
)
def test_a_host_tensor_is_refused(counts, x, operation):
    with pytest.raises(MixedDevices):
        operation(x)
    assert torch.equal((x + torch.tensor(1.0)).cpu(), x.cpu() + 1)  # a number is not


def test_work_on_the_host_is_not_counted(counts):
    torch.ones(3).cumsum(0).tolist()
    assert [counts.of(w) for w in ("launches", "waits", "transfers")] == [0, 0, 0]


def test_memory_that_is_short():
    with simulated_device(largest=4):
        x = on_device(torch.ones(2, 2))
        assert x.sum().item() == 4
        with pytest.raises(torch.OutOfMemoryError, match=r"no room for \(2, 2, 2\)"):
            torch.stack([x, x])


def test_a_module_is_moved(counts):
    layer = torch.nn.LSTM(2, 3)
    held = layer(torch.ones(1, 2))[0].detach()
    moved = on_device(layer)(on_device(torch.ones(1, 2)))[0]
    torch.testing.assert_close(moved.cpu(), held)
