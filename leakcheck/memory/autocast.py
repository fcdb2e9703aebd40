"""Autocast for the fake device: torch ships no autocast kernels for PrivateUse1, so these are ours.

`install` registers a cast for every operator of `autocast_ops.toml`. Weight casts are cached until
the outermost autocast block ends, as on CUDA, and not under inference mode (seen on a real GPU).
Arguments are cast from the last to the first, as compiled calls do (H200, trace-native.json.gz).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from leakcheck.memory.releases import at_least

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OPERATORS = Path(__file__).with_name("autocast_ops.toml")
HALF = (torch.float16, torch.bfloat16)
KEY = "AutocastPrivateUse1"

_weights: dict[int, torch.Tensor] = {}
_libraries: list[Any] = []


def install(device_type: str) -> None:
    """Register the casts, once a process: a registration cannot be taken back safely."""
    if _libraries:
        return
    fallthrough = torch.library.Library("_", "IMPL", KEY)  # type: ignore[no-untyped-call]
    fallthrough.fallback(torch.library.fallthrough_kernel)  # type: ignore[no-untyped-call]
    library = torch.library.Library("aten", "IMPL", KEY)  # type: ignore[no-untyped-call]
    _libraries.extend([fallthrough, library])
    with OPERATORS.open("rb") as file:
        lists = tomllib.load(file)
    since = lists.pop("since")
    for kind, names in lists.items():
        for name in names:
            if at_least(*since.get(name, (0, 0))):
                _register(library, name, kind, device_type)
    _clear_cache_at_exit()


def _register(library: Any, name: str, kind: str, device_type: str) -> None:
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:  # not in this release
        return
    for overload in packet.overloads():
        if "out" in overload:
            continue
        operator = getattr(packet, overload)
        full = operator._schema.name.split("::")[1]
        full += "" if overload == "default" else f".{overload}"
        try:
            library.impl(full, _kernel(operator, kind, device_type))
        except RuntimeError:  # registered by torch itself
            continue


def _kernel(operator: Any, kind: str, device_type: str) -> Callable[..., Any]:
    key: Any = torch._C._parse_dispatch_key(KEY)
    excluded = torch._C.DispatchKeySet(key)
    names = [argument.name for argument in operator._schema.arguments]

    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(excluded):
            if kind == "float32_by_default":
                args, kwargs = _with_dtype(args, kwargs, names, device_type)
            else:
                wanted = _wanted(kind, tree_leaves((args, kwargs)), device_type)
                args, kwargs = _cast_all(args, kwargs, wanted, device_type)
            return operator(*args, **kwargs)

    return run


def _wanted(kind: str, leaves: list[Any], device_type: str) -> torch.dtype:
    dtypes = {leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor)}
    if kind == "alike" and len(dtypes) > 1:
        raise RuntimeError(f"expected tensors of one dtype, got {', '.join(map(str, dtypes))}")
    lower = torch.get_autocast_dtype(device_type)
    widest = torch.float32 if torch.float32 in dtypes else lower
    return {"lower_precision": lower, "float32": torch.float32}.get(kind, widest)


def _cast_all(
    args: tuple[Any, ...], kwargs: dict[str, Any], wanted: torch.dtype, device_type: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def cast_each(value: Any) -> Any:
        return tree_map_only(torch.Tensor, lambda each: cast(each, wanted, device_type), value)

    named = {name: cast_each(kwargs[name]) for name in reversed(kwargs)}
    return tuple(reversed([cast_each(value) for value in reversed(args)])), named


def _with_dtype(
    args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str], device_type: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    tensor = args[0]
    if tensor.device.type != device_type or tensor.dtype not in HALF or "dtype" not in names:
        return args, kwargs
    at = names.index("dtype")
    given = args[at] if len(args) > at else kwargs.get("dtype")
    return (args, kwargs) if given is not None else (args[:at], kwargs | {"dtype": torch.float32})


def cast(tensor: torch.Tensor, dtype: torch.dtype, device_type: str) -> torch.Tensor:
    """Return a tensor of the device as autocast hands it on; a weight's is cached."""
    if tensor.device.type != device_type or not tensor.is_floating_point():
        return tensor
    if tensor.dtype in (dtype, torch.float64):
        return tensor
    weight = tensor.is_leaf and tensor.requires_grad and tensor.dtype is torch.float32
    if (
        not weight
        or dtype is torch.float32
        or tensor._is_view()
        or torch.is_inference_mode_enabled()
    ):
        return tensor.to(dtype)
    if not torch.is_autocast_cache_enabled():
        return tensor.to(dtype)
    if id(tensor) not in _weights:
        _weights[id(tensor)] = tensor.to(dtype)
    return _weights[id(tensor)]


def _clear_cache_at_exit() -> None:
    leave = torch.amp.autocast_mode.autocast.__exit__

    def leave_and_clear(self: Any, *details: Any) -> Any:
        answer = leave(self, *details)
        if not torch.is_autocast_enabled(self.device):
            _weights.clear()
        return answer

    torch.amp.autocast_mode.autocast.__exit__ = leave_and_clear  # type: ignore[method-assign]
