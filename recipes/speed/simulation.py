"""A pretended accelerator: what a GPU would be asked for, counted on a CPU.

Tensors of the device ``sim`` lie in the CPU's memory, and every operation on them runs
there. What the code around them would make of a GPU can be told all the same: a host
tensor that meets device tensors is an error, and each launch of work, each transfer and
each wait for the device is counted, with the line of the package that asked for it.

It tells nothing of time, of streams, or of what an operation costs. An operation that
torch runs as one kernel on a GPU counts as the parts that it is made of elsewhere (fused
attention as five or more), except for the cell of an LSTM or a GRU.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

try:
    from torch.utils.backend_registration import (
        _setup_privateuseone_for_python_backend,
    )
except ImportError:
    raise ImportError(
        f"torch {torch.__version__} has no devices that are written in Python: the "
        "pretended device needs a release after 2.9"
    ) from None

_NAME = "sim"


class _Hidden:
    """What torch asks of a device: here it is for those alone who name it.

    Nothing else in the process, such as torch's data loader, takes it for the machine's
    accelerator.
    """

    def is_available(self) -> bool:
        return False

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """It has no random numbers of its own."""


_setup_privateuseone_for_python_backend(_NAME, backend_module=_Hidden())
DEVICE = torch.device(_NAME, 0)

PACKAGE = "espnet_lenbias"

# another look at memory that is there, or memory with nothing in it: no work
_NO_WORK = {
    *("alias", "as_strided", "chunk", "detach", "expand", "permute", "select", "slice"),
    *("split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unflatten"),
    *("unsafe_split", "unsqueeze", "view", "_unsafe_view", "unfold"),
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"),
    "transpose_",
}

# the host has to know a result before it can go on: a number, or a shape
_WAITS = {
    *("_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "masked_select"),
    *("_unique2", "unique_dim", "unique_consecutive", "repeat_interleave"),
}


class MixedDevices(RuntimeError):
    """A host tensor has met device tensors."""


class SimulatedTensor(torch.Tensor):
    """A tensor of the pretended device; `held` is the one on the CPU that it stands for."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "SimulatedTensor":
        self = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        self.held = held
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(
            f"{func}: tensors of {DEVICE} live within simulated_device()"
        )

    def tolist(self) -> Any:
        """Return the numbers; the host waits for them."""
        return self.cpu().tolist()

    def __repr__(self, **kwargs: Any) -> str:
        return f"SimulatedTensor({self.held})"


class Counts:
    """What has been asked of the device so far.

    Attributes:
        launches: (place, operation) -> how often it put work on the device.
        waits: (place, what) -> how often the host waited for the device.
        transfers: place -> how often numbers went from the host to the device.
        largest: Elements of the largest tensor that an operation has made.
    """

    def __init__(self) -> None:
        self.launches: Counter[tuple[str, str]] = Counter()
        self.waits: Counter[tuple[str, str]] = Counter()
        self.transfers: Counter[str] = Counter()
        self.largest = 0

    def of(self, what: str) -> int:
        """Return how many `launches`, `waits` or `transfers` there were."""
        return sum(getattr(self, what).values())

    def clear(self) -> None:
        """Start from zero."""
        for counter in (self.launches, self.waits, self.transfers):
            counter.clear()
        self.largest = 0


@contextmanager
def simulated_device(largest: int | None = None) -> Iterator[Counts]:
    """Have the device at hand, and count what is asked of it.

    Args:
        largest: Elements of the largest tensor that its memory holds; a larger one is
            what torch raises where a GPU's memory is short. None: it holds all.
    """
    counts = Counts()
    with _Factories(counts), _Operations(counts, largest):
        yield counts


def on_device(x: Any) -> Any:
    """Return a tensor on the device, or a scorer whose parameters were moved there."""
    if isinstance(x, torch.Tensor):
        return SimulatedTensor(x.detach())
    for module in x.modules() if isinstance(x, torch.nn.Module) else ():
        for own in (module._parameters, module._buffers):
            for name, value in own.items():
                # past the module, which takes nothing but a Parameter for one
                own[name] = None if value is None else SimulatedTensor(value.detach())
        if isinstance(module, torch.nn.RNNBase):
            module._flat_weights = [
                getattr(module, n) for n in module._flat_weights_names
            ]
    return x


def _is_host(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and not isinstance(x, SimulatedTensor)


def _held(x: Any) -> Any:
    return x.held if isinstance(x, SimulatedTensor) else x


def _is_ours(device: Any) -> bool:
    return device is not None and torch.device(device).type == _NAME


def _place() -> str:
    """Return the innermost line of the package that runs: ``search/loop.py:85``."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if PACKAGE in path.parts:
            inside = path.parts[len(path.parts) - path.parts[::-1].index(PACKAGE) :]
            return f"{'/'.join(inside)}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


class _Factories(TorchFunctionMode):
    """What makes device tensors out of Python's numbers, before it can be dispatched."""

    def __init__(self, counts: Counts):
        super().__init__()
        self._counts = counts

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and _is_ours(kwargs.get("device")):
            del kwargs["device"]
            self._counts.transfers[_place()] += 1
            return SimulatedTensor(func(*args, **kwargs))
        name = getattr(func, "__name__", "")
        if args and isinstance(args[0], SimulatedTensor):
            if name in ("__getitem__", "__setitem__"):
                args = (args[0], self._index(args[1]), *args[2:])
            elif name in ("new", "new_tensor") and not torch.is_tensor(args[1]):
                self._counts.transfers[_place()] += 1
                return SimulatedTensor(args[0].held.new_tensor(args[1], **kwargs))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    def _index(self, index: Any) -> Any:
        """Bring an index of the host to the device, for which the host waits."""
        if isinstance(index, tuple):
            return tuple(map(self._index, index))
        if isinstance(index, list):
            self._counts.transfers[_place()] += 1
            return SimulatedTensor(torch.tensor(index))
        if _is_host(index) and index.dim():
            self._counts.waits[_place(), "index on the host"] += 1
            return SimulatedTensor(index)
        return index


class _Operations(TorchDispatchMode):
    """Runs each operation on the CPU and counts it."""

    def __init__(self, counts: Counts, largest: int | None):
        super().__init__()
        self._counts = counts
        self._largest = largest

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        if name == "_to_copy":
            return self._copy_to(args[0], **kwargs)
        if name == "copy_":
            return self._copy_into(*args[:2])
        tensors = [t for t in tree_flatten((args, kwargs))[0] if torch.is_tensor(t)]
        devices = [t for t in tensors if isinstance(t, SimulatedTensor)]
        if not devices and not _is_ours(kwargs.get("device")):
            return func(*args, **kwargs)
        self._refuse_hosts(name, tensors)
        self._count(name, func, args, devices)
        if name in _CELLS:
            return tree_map(SimulatedTensor, _CELLS[name](*tree_map(_held, args)))
        kwargs = {key: value for key, value in kwargs.items() if key != "pin_memory"}
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        out = func(*tree_map(_held, args), **tree_map(_held, kwargs))
        if name == "transpose_":
            # another shape of the tensor itself, which has to be told too
            with torch._C._DisableTorchDispatch():
                func(*args)
        return self._wrapped(out, devices)

    def _refuse_hosts(self, name: str, tensors: list[torch.Tensor]) -> None:
        """Raise where a host tensor takes part; a single number may."""
        for t in tensors:
            if _is_host(t) and t.dim():
                raise MixedDevices(
                    f"{_place()}: {name} of a host tensor of shape {tuple(t.shape)} and "
                    "device tensors"
                )

    def _count(self, name: str, func: Any, args: Any, devices: list[Any]) -> None:
        """Count the launch, and the wait if there is one."""
        if name not in _NO_WORK:
            self._counts.launches[_place(), name] += 1
        by_mask = name.startswith("index") and any(
            t.dtype == torch.bool and t is not args[0] for t in devices
        )
        # with the length of its result given it does not wait
        known = name == "repeat_interleave" and func._overloadname != "Tensor"
        if by_mask or (name in _WAITS and not known):
            self._counts.waits[_place(), "mask" if by_mask else name] += 1

    def _wrapped(self, out: Any, devices: list[SimulatedTensor]) -> Any:
        """Return results as tensors of the device; what was changed in place as itself."""
        own = {id(t.held): t for t in devices}

        def wrap(t: Any) -> Any:
            if not isinstance(t, torch.Tensor):
                return t
            return own[id(t)] if id(t) in own else SimulatedTensor(self._allocated(t))

        return tree_map(wrap, out)

    def _allocated(self, t: torch.Tensor) -> torch.Tensor:
        """Return a tensor for which there is room."""
        self._counts.largest = max(self._counts.largest, t.numel())
        if self._largest is not None and t.numel() > self._largest:
            raise torch.OutOfMemoryError(f"{_place()}: no room for {tuple(t.shape)}")
        return t

    def _copy_to(self, source: torch.Tensor, device: Any = None, **kwargs: Any) -> Any:
        """Copy to a device or to a dtype."""
        for of_the_way in ("non_blocking", "pin_memory"):
            kwargs.pop(of_the_way, None)
        out = torch.ops.aten._to_copy(_held(source), **kwargs, device="cpu")
        from_device = isinstance(source, SimulatedTensor)
        if from_device and device is not None and not _is_ours(device):
            self._counts.waits[_place(), "copy to the host"] += 1
            return out
        if not from_device and not _is_ours(device):
            return out
        if from_device:
            self._counts.launches[_place(), "_to_copy"] += 1
        else:
            self._counts.transfers[_place()] += 1
        return SimulatedTensor(self._allocated(out))

    def _copy_into(self, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """Copy into a tensor, from any device to any."""
        to, of = (isinstance(t, SimulatedTensor) for t in (target, source))
        if of and not to:
            self._counts.waits[_place(), "copy to the host"] += 1
        elif to and not of and source.dim():
            self._counts.transfers[_place()] += 1
        elif to:
            self._counts.launches[_place(), "copy_"] += 1
        _held(target).copy_(_held(source))
        return target


def _lstm_cell(by_input, by_hidden, cell, *biases):
    """Compute what a GPU has one kernel for: hidden state, cell, and the gates."""
    gates = by_input + by_hidden + sum(b for b in biases if b is not None)
    enters, forgets, new, leaves = gates.chunk(4, 1)
    cell = forgets.sigmoid() * cell + enters.sigmoid() * new.tanh()
    return leaves.sigmoid() * cell.tanh(), cell, gates


def _gru_cell(by_input, by_hidden, hidden, input_bias=None, hidden_bias=None):
    """Compute what a GPU has one kernel for: hidden state, and the gates."""
    by_input = by_input if input_bias is None else by_input + input_bias
    by_hidden = by_hidden if hidden_bias is None else by_hidden + hidden_bias
    (r, z, n), (hr, hz, hn) = by_input.chunk(3, 1), by_hidden.chunk(3, 1)
    r, z = (r + hr).sigmoid(), (z + hz).sigmoid()
    n = (n + r * hn).tanh()
    return (hidden - n) * z + n, by_input


_CELLS: Mapping[str, Any] = {
    "_thnn_fused_lstm_cell": _lstm_cell,
    "_thnn_fused_gru_cell": _gru_cell,
}
