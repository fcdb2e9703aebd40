"""A device that holds no bytes: fake tensors on torch's Python PrivateUse1 backend.

It runs forward, backward and every optimizer of a CUDA program on a machine without a GPU, with a
CPU-only torch. Fake tensors on "cuda" would abort such a process at the first gradient.

Renaming the backend is global and cannot be undone, so this belongs into a process of its own.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from leakcheck.errors import LeakcheckError
from leakcheck.memory import autocast, gru, sdpa
from leakcheck.memory.profiles import DeviceProfile

DEVICE_TYPE = "fakegpu"


class FakeMode(FakeTensorMode):  # type: ignore[no-untyped-call]
    """Fake tensors whose factory functions never initialise the device they name."""

    @property
    def avoid_device_init(self) -> bool:
        """True: `torch.tensor(1.0, device=...)` would otherwise run a real kernel and fail."""
        return True


class _Backend:
    """What torch asks of a device module."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def set_device(self, device: object) -> None:
        return None

    def synchronize(self, device: object = None) -> None:
        return None

    def device(self, device: object) -> Any:
        return nullcontext()

    def manual_seed(self, seed: int) -> None:
        return None

    def manual_seed_all(self, seed: int) -> None:
        return None

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def get_rng_state(self, device: object = 0) -> torch.Tensor:
        return torch.empty(16, dtype=torch.uint8, device="cpu")

    def set_rng_state(self, state: torch.Tensor, device: object = 0) -> None:
        return None


def set_up(profile: DeviceProfile) -> None:
    """Make the fake device behave like `profile`, once a process.

    Raises LeakcheckError where this torch cannot have a Python backend.
    """
    try:
        from torch.utils import backend_registration

        register = backend_registration._setup_privateuseone_for_python_backend
        register(rename=DEVICE_TYPE, backend_module=_Backend())
    except (ImportError, AttributeError, RuntimeError) as error:
        raise LeakcheckError(
            f"torch {torch.__version__} has no Python device backend ({error}); "
            "pass --on-cpu to run the real step instead"
        ) from None
    # its autograd threads can terminate the process, and event order must not vary
    torch.autograd.set_multithreading_enabled(False)
    torch.nn.Module._apply = _apply  # type: ignore[method-assign]
    _take_the_foreach_path()
    gru.install()
    autocast.install(DEVICE_TYPE)
    sdpa.install(DEVICE_TYPE, profile)


def _apply(module: torch.nn.Module, fn: Any, recurse: bool = True) -> torch.nn.Module:
    """Move or cast a module; its parameters stay the objects that an optimizer may hold already.

    torch assigns `.data` or swaps tensors, and refuses both for fake ones across devices.
    """
    if recurse:
        for child in module.children():
            child._apply(fn)  # type: ignore[no-untyped-call]
    for parameter in module._parameters.values():
        if parameter is not None:
            _move(parameter, fn)
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


def _move(parameter: torch.nn.Parameter, fn: Any) -> None:
    with torch.no_grad():
        applied = fn(parameter)
    if applied.device == parameter.device and applied.dtype == parameter.dtype:
        return  # a tied one comes here twice
    moved = torch.nn.Parameter(applied, requires_grad=parameter.requires_grad)
    if parameter.grad is not None:
        moved.grad = fn(parameter.grad)
    own = {name: value for name, value in vars(parameter).items() if name not in vars(moved)}
    # torch.utils.swap_tensors does the same and refuses tensors with weak references, which every
    # fake tensor has; those name the object, which stays
    parameter.__class__, moved.__class__ = moved.__class__, parameter.__class__
    parameter.__dict__, moved.__dict__ = moved.__dict__, parameter.__dict__
    torch._C._swap_tensor_impl(parameter, moved)
    vars(parameter).update(own)


def _take_the_foreach_path() -> None:
    """Let optimizers choose foreach for fake parameters, as they do on CUDA.

    Else they loop, and their transient memory is about 0.83 of the parameters too small.
    """
    from torch.optim import optimizer
    from torch.utils import _foreach_utils

    supported = getattr(optimizer, "_foreach_supported_types", None)
    if isinstance(supported, list) and FakeTensor not in supported:
        supported.append(FakeTensor)
    devices = _foreach_utils._get_foreach_kernels_supported_devices
    if DEVICE_TYPE not in devices():
        names = [*devices(), DEVICE_TYPE]
        _foreach_utils._get_foreach_kernels_supported_devices = lambda: names
        optimizer._get_foreach_kernels_supported_devices = lambda: names  # type: ignore[attr-defined]
