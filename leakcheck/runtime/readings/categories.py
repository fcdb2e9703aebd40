"""Whose bytes: live tensors as parameters, gradients, optimizer state, buffers or temporaries.

Read from the objects that a census finds anyway. Only the dictionaries of modules and optimizers
are read, never their methods or properties, and no storage is wrapped: a wrapper would stay as long
as its storage (one block each). A view counts up to its own end; what lies beyond is unexplained.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from leakcheck.memory.ledger import CATEGORY_MARK
from leakcheck.memory.rounding import ALIGN_BYTES
from leakcheck.model import Category
from leakcheck.runtime.introspection.gradients import gradients_of
from leakcheck.runtime.introspection.kinds import attributes_of
from leakcheck.runtime.introspection.objects import is_tensor
from leakcheck.runtime.readings.meters import HOST

MOST_TENSORS = 20_000  # 3 us each; a program that keeps more is told by its tensors alone
STATE_DEPTH = 3  # a parameter's entry, its values, and lists of tensors in it

Owners = dict[int, Category]  # id of a tensor -> the first category that claims it


def resource_of(place: str, category: Category) -> str:
    """Return the name a category's bytes are recorded under."""
    return f"{place}{CATEGORY_MARK}{category}"


def is_category(resource: str) -> bool:
    """Say whether a resource is the bytes of one category."""
    return CATEGORY_MARK in resource


def is_module(kind: type) -> bool:
    """Say whether a type is that of modules."""
    return _is_a(kind, "nn", "Module")


def is_optimizer(kind: type) -> bool:
    """Say whether a type is that of optimizers."""
    return _is_a(kind, "optim", "Optimizer")


def has_pool(kind: type) -> bool:
    """Say whether a type is of what has a pool of device memory of its own."""
    return _is_a(kind, "cuda", "CUDAGraph") or _is_a(kind, "cuda", "MemPool")


def read_categories(
    tensors: list[Any], modules: list[Any], optimizers: list[Any], totals: dict[str, int]
) -> dict[str, int]:
    """Return the bytes of each category by resource; `totals` has what is allocated by place.

    What no tensor known to Python accounts for is unexplained: what the graph keeps, Python's own
    objects, libraries. The categories of a place sum to its total unless tensors lie outside the
    heap (shared memory, mapped files). {} with no tensors, or too many.
    """
    if not tensors or len(tensors) > MOST_TENSORS:
        return {}
    found = gradients_of(_parameters(tensors))
    gradients = [gradient for gradient in found if gradient is not None]
    owners: Owners = {}
    _claim(owners, "parameters", _parameters(tensors))
    _claim(owners, "gradients", gradients)
    _claim(owners, "optimizer state", _in_state(optimizers))
    _claim(owners, "buffers", _buffers(modules))
    readings: dict[str, int] = {}
    for place, sizes in _sizes([*tensors, *gradients], owners).items():
        if place in totals:
            sizes["unexplained"] = max(0, totals[place] - sum(sizes.values()))
            readings |= {resource_of(place, name): size for name, size in sizes.items()}
    return readings


def _sizes(tensors: list[Any], owners: Owners) -> dict[str, dict[Category, int]]:
    storages: dict[tuple[str, int], tuple[Category, int]] = {}
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        for tensor in tensors:
            found = _storage(torch, tensor)
            if found is None:
                continue
            place, address, size_bytes = found
            category, largest = storages.get((place, address), ("temporaries", 0))
            if category == "temporaries":
                category = owners.get(id(tensor), category)
            storages[place, address] = category, max(largest, size_bytes)
    sizes: dict[str, dict[Category, int]] = {}
    for (place, _), (category, size_bytes) in storages.items():
        row = sizes.setdefault(place, {})
        row[category] = row.get(category, 0) + size_bytes
        if place != HOST:  # a device's allocator counts whole blocks
            rounding = -size_bytes % ALIGN_BYTES
            row["rounding and slop"] = row.get("rounding and slop", 0) + rounding
    return sizes


def _storage(torch: Any, tensor: Any) -> tuple[str, int, int] | None:
    """Return where a tensor's storage begins and how far the tensor reaches into it."""
    base = torch._C.TensorBase
    if not _is_plain(torch, type(tensor)):
        return None
    try:
        device = base.device.__get__(tensor)
        if device.type not in ("cpu", "cuda") or base.layout.__get__(tensor) != torch.strided:
            return None
        item_bytes = base.element_size(tensor)
        offset = base.storage_offset(tensor)
        extents = zip(base.size(tensor), base.stride(tensor), strict=True)
        reach = offset + 1 + sum((size - 1) * stride for size, stride in extents)
        address = base.data_ptr(tensor) - offset * item_bytes
    except (RuntimeError, TypeError):  # nested, functional, symbolic
        return None
    place = HOST if device.type == "cpu" else f"{device.type}:{device.index}"
    return (place, address, reach * item_bytes) if base.numel(tensor) else None


def _is_plain(torch: Any, kind: type) -> bool:
    # a wrapper has no storage of its own, and asking a fake tensor for its address warns
    return bool(kind.__torch_dispatch__ == torch._C._disabled_torch_dispatch_impl)  # type: ignore[attr-defined]


def _claim(owners: Owners, category: Category, tensors: Iterable[Any]) -> None:
    for tensor in tensors:
        owners.setdefault(id(tensor), category)
        # a wrapper such as a DTensor keeps its plain tensors as attributes
        for inner in attributes_of(tensor).values():
            owners.setdefault(id(inner), category)


def _parameters(tensors: list[Any]) -> list[Any]:
    return [tensor for tensor in tensors if _is_a(type(tensor), "nn", "Parameter")]


def _is_a(kind: type, package: str, name: str) -> bool:
    # another thread may be in the middle of importing torch
    base = getattr(getattr(sys.modules.get("torch"), package, None), name, None)
    return base is not None and issubclass(kind, base)


def _in_state(optimizers: list[Any]) -> Iterator[Any]:
    for optimizer in optimizers:
        found = [attributes_of(optimizer).get("state")]
        for _ in range(STATE_DEPTH):
            found = [part for each in found for part in _parts(each)]
            yield from (part for part in found if is_tensor(type(part)))


def _parts(container: Any) -> Iterable[Any]:
    if issubclass(type(container), dict):
        return dict.values(container)
    return gc.get_referents(container) if type(container) in (list, tuple) else ()


def _buffers(modules: list[Any]) -> Iterator[Any]:
    for module in modules:
        for buffer in (attributes_of(module).get("_buffers") or {}).values():
            if buffer is not None:
                yield buffer
