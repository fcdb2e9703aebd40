"""What of `torch.cuda` has no memory to predict: streams, events, ranges, what was recorded.

Only ever installed in the predictor's own process.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._python_dispatch import _disable_current_modes

from leakcheck.memory.simulate import VALUES_NOTE, SimulatedDevice


class Silent:
    """A stream, an event or a guard that orders nothing; every method answers at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device_index, self.cuda_stream, self.priority = 0, 0, 0

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def query(self) -> bool:
        """True: nothing is pending."""
        return True

    def elapsed_time(self, end: object) -> float:
        """One millisecond, since programs divide by it."""
        return 1.0

    def _nothing(self, *_: Any, **__: Any) -> None:
        return None

    wait = record = synchronize = wait_stream = wait_event = _nothing

    def record_event(self, event: Any = None) -> Any:
        """The event, or a new one."""
        return event or Silent()


class Stream(Silent):
    """A side stream; its blocks are counted as the default stream's, which is noted."""

    device: SimulatedDevice

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.device.note_once("streams have memory of their own; all of it is counted as one")


def install(device: SimulatedDevice) -> None:
    """Patch `torch.cuda`, and how tensors of this process are copied and become arrays."""
    Stream.device = device
    one = Silent()

    def nothing(*_: Any, **__: Any) -> None:
        return None

    answers: dict[str, Any] = {
        **dict.fromkeys(("current_stream", "default_stream"), lambda *_, **__: one),
        **{"Stream": Stream, "ExternalStream": Stream, "Event": Silent},
        **{"stream": Silent, "StreamContext": Silent, "device": Silent, "device_of": Silent},
        "is_current_stream_capturing": lambda: (
            False
        ),  # optimizers ask; a CUDA build asks the driver
        **dict.fromkeys(("set_stream", "set_per_process_memory_fraction"), nothing),
        **dict.fromkeys(("set_rng_state", "set_rng_state_all"), nothing),
        "get_rng_state": lambda *_, **__: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)],
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
        if hasattr(torch.cuda.random, name):
            setattr(torch.cuda.random, name, answer)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, nothing)
    torch.cuda.nvtx.range = Silent  # type: ignore[assignment]
    # a CPU build has no such function
    torch._C._cuda_clearCublasWorkspaces = device.drop_workspaces
    for name in ("_dump_snapshot", "_set_memory_metadata", "set_per_process_memory_fraction"):
        setattr(torch.cuda.memory, name, nothing)
    _tell_statistics(device)
    _tell_history(device)
    torch.Tensor.numpy = _made_up_array(device, torch.Tensor.numpy)  # type: ignore[method-assign]
    torch.Tensor.__deepcopy__ = _copied(device, torch.Tensor.__deepcopy__)  # type: ignore[method-assign]


def _tell_statistics(device: SimulatedDevice) -> None:
    def statistics(*_: Any, **__: Any) -> dict[str, int]:
        simulated, told = device.settled(), {}
        for name, now, peak in (
            ("allocated", simulated.allocated_bytes, simulated.peak_allocated_bytes),
            ("active", simulated.allocated_bytes, simulated.peak_allocated_bytes),
            ("reserved", simulated.reserved_bytes, simulated.peak_reserved_bytes),
        ):
            told[f"{name}_bytes.all.current"] = now
            told[f"{name}_bytes.all.peak"] = peak
        return told | {"num_alloc_retries": 0, "num_ooms": 0}

    def summary(*_: Any, **__: Any) -> str:
        return "\n".join(f"{name}: {size}" for name, size in statistics().items())

    answers: dict[str, Callable[..., Any]] = {
        "memory_stats": statistics,
        "memory_summary": summary,
        "memory_snapshot": lambda *_, **__: [],
        "reset_max_memory_allocated": lambda *_: device.reset_peaks(),
        "reset_accumulated_memory_stats": lambda *_: None,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
        setattr(torch.cuda.memory, name, answer)


def _tell_history(device: SimulatedDevice) -> None:
    """Let a program that records its allocations see those of the simulated device."""
    recorded_from: list[int] = []

    def record(enabled: str | None = "all", *_: Any, **__: Any) -> None:
        recorded_from[:] = [] if enabled is None else [len(device.events)]

    def snapshot(*_: Any, **__: Any) -> dict[str, Any]:
        events = device.events[recorded_from[0] :] if recorded_from else []
        actions = {"alloc": "alloc", "free": "free_completed"}
        entries = [
            {"action": actions.get(e.kind, e.kind), "addr": e.block, "size": e.size, "stream": 0}
            for e in events
        ]
        return {"segments": [], "device_traces": [entries]}

    torch.cuda.memory._record_memory_history = record
    torch.cuda.memory._snapshot = snapshot


def _made_up_array(device: SimulatedDevice, original: Callable[..., Any]) -> Callable[..., Any]:
    def numpy(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, FakeTensor):
            return original(tensor, *args, **kwargs)
        device.assume(VALUES_NOTE)
        with unset_fake_temporarily():
            return original(torch.ones(tensor.shape, dtype=tensor.dtype, device="cpu"))

    return numpy


def _copied(device: SimulatedDevice, original: Callable[..., Any]) -> Callable[..., Any]:
    """Copy tensors while they are fake: torch's way mixes fake and real storages and can crash."""

    def deepcopy(tensor: torch.Tensor, memo: dict[int, Any]) -> Any:
        fake = isinstance(tensor, FakeTensor)
        if id(tensor) in memo or (fake and not tensor.is_leaf):
            return original(tensor, memo)
        if not fake:  # made at import, say
            with _disable_current_modes():
                copied = original(tensor, memo)
            device.note(copied)
            return copied
        memo[id(tensor)] = copied = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        own = {name: value for name, value in vars(tensor).items() if name not in vars(copied)}
        vars(copied).update(copy.deepcopy(own, memo))
        if tensor.grad is not None:
            copied.grad = deepcopy(tensor.grad, memo)
        return copied

    return deepcopy
