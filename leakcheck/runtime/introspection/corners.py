"""Does a tensor or array that is larger now hold what the smaller one did, or is it another's?

`bank = torch.cat([bank, new])` keeps the values of before at one of its ends; the output of a batch
that is larger than the last has other values. Some elements at both ends are read where they lie:
no operation of torch's runs, which the program could see.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from leakcheck.runtime.introspection.kinds import array_type, attribute_of_class

ELEMENTS = 4  # along each dimension, at each end

_Corner = tuple[bytes, ...]  # the elements that follow it, by dimension
Corners = tuple[_Corner, _Corner]  # of the first element and of the last


def corners_of(thing: Any) -> Corners | None:
    """Return elements at both ends of a tensor in host memory or an array; None of all else."""
    try:
        laid_out = _array(thing) if _is_array(thing) else _tensor(thing)
    except Exception:  # of another layout, nested, symbolic, functional
        return None
    if laid_out is None:
        return None
    address, sizes, strides, item_bytes = laid_out
    end = address + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    first, last = (
        tuple(
            b"".join(
                ctypes.string_at(start + sign * i * stride, item_bytes)
                for i in range(min(ELEMENTS, size))
            )
            for size, stride in zip(sizes or (1,), strides or (0,), strict=True)
        )
        for start, sign in ((address, 1), (end, -1))
    )
    return first, last


def are_kept(looks: Sequence[Corners | None]) -> bool:
    """Say whether each look found one end as it was before; an unreadable one says nothing."""
    known = [corners for corners in looks if corners is not None]
    return all(any(map(_agree, past, now)) for past, now in pairwise(known))


def _agree(past: _Corner, now: _Corner) -> bool:
    """Say whether two corners have the same elements along each dimension, as far as both go."""
    pairs = list(zip(past, now, strict=False))
    return all(one.startswith(other) or other.startswith(one) for one, other in pairs)


def _is_array(thing: Any) -> bool:
    array = array_type()
    return array is not None and issubclass(type(thing), array)


def _array(array: Any) -> tuple[int, Sequence[int], Sequence[int], int] | None:
    kind = array_type()  # past what a derived class makes of these names
    if kind.dtype.__get__(array).hasobject or not kind.size.__get__(array):
        return None
    shape, strides = kind.shape.__get__(array), kind.strides.__get__(array)
    return kind.ctypes.__get__(array).data, shape, strides, kind.itemsize.__get__(array)


def _tensor(tensor: Any) -> tuple[int, Sequence[int], Sequence[int], int] | None:
    torch = sys.modules["torch"]
    base = torch._C.TensorBase
    dispatch = attribute_of_class(type(tensor), "__torch_dispatch__")
    plain = dispatch is torch._C._disabled_torch_dispatch_impl
    with torch._C.DisableTorchFunction():
        on_host = base.device.__get__(tensor).type == "cpu"
        if not plain or not on_host or base.layout.__get__(tensor) != torch.strided:
            return None
        item_bytes = base.element_size(tensor)
        sizes, steps = tuple(base.size(tensor)), tuple(base.stride(tensor))
        reach = base.storage_offset(tensor) + 1
        reach += sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
        address = base.data_ptr(tensor)
        # a storage that was emptied keeps the shapes of its tensors
        there = base.untyped_storage(tensor).nbytes() >= reach * item_bytes
    if not address or not there or not base.numel(tensor):
        return None
    return address, sizes, [step * item_bytes for step in steps], item_bytes
