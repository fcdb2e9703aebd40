"""Programs say "cuda"; this makes them mean the fake device, and `torch.cuda` answer for it.

Only ever installed in the predictor's own process. A `torch.device("cuda")` object stays what it
is, so `device.type == "cuda"` keeps its answer; it is translated where a tensor or module uses it.
Where the program asks, a tensor on the stand-in says "cuda", too; torch itself sees the stand-in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _device

from leakcheck.memory import checkpoints
from leakcheck.memory.fake_device import DEVICE_TYPE
from leakcheck.memory.profiles import DeviceProfile
from leakcheck.memory.simulate import SimulatedDevice

TENSOR_METHODS = (
    *("to", "new_tensor", "new_empty", "new_zeros", "new_ones", "new_full", "pin_memory"),
)


_TORCH_AND_OWN = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
_CUDA = torch.device("cuda", 0)
_meant: list[torch.device] = []  # the device that stands for CUDA, once installed


def translated(value: Any) -> Any:
    """Return the stand-in for "cuda", "cuda:0" and such devices; anything else unchanged."""
    if isinstance(value, torch.device):
        return _meant[0] if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return _meant[0]
    return value


def install(device: SimulatedDevice) -> None:
    """Patch factories, methods and `torch.cuda` of this process."""
    _meant[:] = [
        torch.device("cpu") if device.device_type == "cpu" else torch.device(device.device_type, 0)
    ]
    _translate_factories()
    _translate_methods()
    _translate_contexts()
    _tell_cuda()
    _plain_loaders()
    checkpoints.install(device, _meant[0])
    for name, answer in _answers(device).items():
        setattr(torch.cuda, name, answer)


def _translating(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(translated(value) for value in args)
        if "device" in kwargs:
            device = kwargs["device"]  # an integer names a CUDA device
            kwargs["device"] = "cuda" if type(device) is int else device
        return function(*args, **{name: translated(value) for name, value in kwargs.items()})

    return call


def _translating_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for functions that take a device type, as text."""

    def named(value: Any) -> Any:
        return _meant[0].type if isinstance(value, str) and value == "cuda" else value

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs = {name: named(value) for name, value in kwargs.items()}
        return function(*(named(value) for value in args), **kwargs)

    return call


def _translate_factories() -> None:
    constructors = _device._device_constructors()
    for name in dir(torch):
        factory = getattr(torch, name)
        if callable(factory) and any(factory is constructor for constructor in constructors):
            setattr(torch, name, _translating(factory))


def _translate_methods() -> None:
    for name in TENSOR_METHODS:
        setattr(torch.Tensor, name, _translating(getattr(torch.Tensor, name)))
    meant = _meant[0]
    tensor_to, module_to = torch.Tensor.to, torch.nn.Module.to
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor_to(tensor, meant)  # type: ignore[method-assign]
    torch.Tensor.pin_memory = lambda tensor, *_: tensor  # type: ignore[method-assign]
    torch.Tensor.record_stream = lambda tensor, *_: None  # type: ignore[method-assign]
    torch.Tensor.is_cuda = property(  # type: ignore[assignment]
        lambda tensor: tensor.device == meant
    )
    torch.nn.Module.to = _translating(module_to)  # type: ignore[method-assign]
    torch.nn.Module.cuda = lambda module, *_: module_to(module, meant)  # type: ignore[method-assign]


def _translate_contexts() -> None:
    for owner in (torch.amp.autocast_mode.autocast, torch.amp.grad_scaler.GradScaler):
        owner.__init__ = _translating_type(owner.__init__)  # type: ignore[method-assign]
    # the scaler asks whether a gradient is infinite; without numbers the step is taken
    torch.amp.grad_scaler.GradScaler._maybe_opt_step = _step  # type: ignore[method-assign,assignment]
    _device.DeviceContext.__init__ = _translating(_device.DeviceContext.__init__)  # type: ignore[method-assign]
    torch.get_autocast_dtype = _translating_type(torch.get_autocast_dtype)
    enabled = torch.is_autocast_enabled
    # without an argument it asks for CUDA
    torch.is_autocast_enabled = _translating_type(lambda kind=_meant[0].type: enabled(kind))
    torch.set_default_device = _translating(torch.set_default_device)
    torch.Generator = _Generator  # type: ignore[misc,assignment]


def _tell_cuda() -> None:
    """Let tensors on the stand-in, and what asks for the accelerator, say "cuda" to the program."""
    known: Any = FakeTensor.device
    accelerator = getattr(torch, "accelerator", None)

    def device(tensor: FakeTensor) -> torch.device:
        actual: torch.device = known.fget(tensor)
        told = actual.type == DEVICE_TYPE and _asked_by_program(sys._getframe(1).f_code.co_filename)
        return _CUDA if told else actual

    def current_accelerator(*args: Any, **kwargs: Any) -> Any:
        if _asked_by_program(sys._getframe(1).f_code.co_filename):
            return torch.device("cuda")
        return current(*args, **kwargs)

    FakeTensor.device = property(device, known.fset)  # type: ignore[assignment]
    if accelerator is not None:  # since torch 2.6
        current = accelerator.current_accelerator
        accelerator.current_accelerator = current_accelerator


@lru_cache(maxsize=4096)
def _asked_by_program(filename: str) -> bool:
    return not filename.startswith(_TORCH_AND_OWN)


class _GeneratorType(type):
    """Makes generators on the host, whatever their device; nothing is drawn from them."""

    def __call__(cls, device: object = "cpu") -> torch._C.Generator:
        return torch._C.Generator("cpu")

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch._C.Generator)


class _Generator(metaclass=_GeneratorType):
    """Stands for torch.Generator."""


def _step(scaler: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
    return optimizer.step(*args, **kwargs)


def _plain_loaders() -> None:
    """Load data in this process: a forked worker would not know the fake tensors."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter as loading

    make, next_batch, begin = DataLoader.__init__, loading.__next__, DataLoader.__iter__

    def make_plain(self: Any, *args: Any, **kwargs: Any) -> None:
        plain: dict[str, object] = {"num_workers": 0, "pin_memory": False, "timeout": 0}
        plain |= {"prefetch_factor": None, "pin_memory_device": "", "persistent_workers": False}
        make(self, *args, **(kwargs | {name: plain[name] for name in plain if name in kwargs}))

    def with_real_indices(function: Callable[..., Any]) -> Callable[..., Any]:
        # samplers turn random tensors into integers, which fake ones cannot be; items of a fake
        # data set stay fake
        def call(self: Any) -> Any:
            with unset_fake_temporarily():
                return function(self)

        return call

    DataLoader.__init__ = make_plain  # type: ignore[method-assign]
    DataLoader.__iter__ = with_real_indices(begin)  # type: ignore[method-assign]
    loading.__next__ = with_real_indices(next_batch)  # type: ignore[method-assign]


def _answers(device: SimulatedDevice) -> dict[str, Callable[..., Any]]:
    now, profile = device.settled, device.profile

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: profile.name,
        "get_device_capability": lambda *_: profile.capability,
        "get_device_properties": lambda *_: _Properties(profile),
        "is_bf16_supported": lambda *_, **__: True,
        "memory_allocated": lambda *_: now().allocated_bytes,
        "memory_reserved": lambda *_: now().reserved_bytes,
        "max_memory_allocated": lambda *_: now().peak_allocated_bytes,
        "max_memory_reserved": lambda *_: now().peak_reserved_bytes,
        "reset_peak_memory_stats": lambda *_: device.reset_peaks(),
        "mem_get_info": lambda *_: (
            profile.memory_bytes - profile.context_bytes - now().reserved_bytes,
            profile.memory_bytes,
        ),
        "empty_cache": device.empty_cache,
    }
    silent = ("synchronize", "set_device", "manual_seed", "manual_seed_all", "init", "ipc_collect")
    return answers | dict.fromkeys(silent, nothing)


class _Properties:
    """The few device properties that programs print."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.name = profile.name
        self.major, self.minor = profile.capability
        self.total_memory = profile.memory_bytes
        self.multi_processor_count = 1
