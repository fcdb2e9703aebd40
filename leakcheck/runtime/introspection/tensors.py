"""Tensors as they are, asked past the program's own `__torch_function__`."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from leakcheck.runtime.introspection.objects import is_tensor, tensor_type

Answer = TypeVar("Answer")
# up to 2.9 torch warns of an object that a thread lets go of in C++ while a look refers to it; from
# 2.10 on the object stays (pytorch/pytorch#167564)
_REFERRED_TO = r"Deallocating \w+ that still has live PyObject references"
_STAYS_FROM = (2, 10)


def warn_of_no_reference() -> None:
    """Keep torch from warning of what looks at the heap refer to, where it would."""
    version = str(getattr(sys.modules.get("torch"), "__version__", "")).split(".")
    known = [int(each) for each in version[:2] if each.isdigit()]
    if known and tuple(known) < _STAYS_FROM:
        warnings.filterwarnings("ignore", message=_REFERRED_TO)


def numel_of(tensor: Any) -> int:
    """Return a tensor's number of elements, of a sparse one those kept; 0 if it cannot say."""
    return _asked(tensor, "_nnz" if _is_sparse(tensor) else "numel", int, 0)


def form_of(tensor: Any) -> tuple[str, int]:
    """Return what a tensor keeps when it is extended: its data type and number of dimensions."""
    return dtype_of(tensor), _asked(tensor, "dim", int, 0)


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Return a tensor's shape; () for one that cannot say."""
    return _asked(tensor, "size", lambda size: tuple(map(int, size)), ())


def dtype_of(tensor: Any) -> str:
    """Return the name of a tensor's data type, as `torch.float32`."""
    return str(property_of(tensor, "dtype"))


def device_of(tensor: Any) -> str:
    """Return the device of a tensor, as `cuda:0`."""
    return str(property_of(tensor, "device"))


def element_bytes_of(tensor: Any) -> int:
    """Return the size of one element of a tensor, of a sparse one with its place: 64-bit each."""
    indices = _asked(tensor, "sparse_dim", int, 0) if _is_sparse(tensor) else 0
    return _asked(tensor, "element_size", int, 0) + 8 * indices


def storage_bytes_of(tensor: Any) -> int:
    """Return the size of a tensor's storage; RuntimeError for one without."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        return int(torch._C.TensorBase.untyped_storage(tensor).nbytes())


def property_of(tensor: Any, name: str) -> Any:
    """Return a property of every tensor's."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        return getattr(torch._C.TensorBase, name).__get__(tensor)


def _is_sparse(tensor: Any) -> bool:
    return bool(property_of(tensor, "is_sparse"))


def _asked(tensor: Any, method: str, read: Callable[[Any], Answer], default: Answer) -> Answer:
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        try:
            return read(getattr(torch._C.TensorBase, method)(tensor))
        except (RuntimeError, TypeError):  # nested, or of a size that is only a symbol
            return default


def is_scalar(thing: Any) -> bool:
    """Say whether an object is a tensor with one element."""
    return is_tensor(type(thing)) and numel_of(thing) == 1


def is_shared(tensor: Any) -> bool:
    """Say whether a tensor is in memory that it shares with another process."""
    try:
        return bool(_asked(tensor, "untyped_storage", lambda storage: storage.is_shared(), False))
    except Exception:  # without storage
        return False


def has_tensor(things: Iterable[Any]) -> bool:
    """Say whether a tensor is among the objects or right inside them."""
    tensor = tensor_type()
    reached = [part for thing in things for part in (thing, *gc.get_referents(thing))]
    return tensor is not None and any(issubclass(type(part), tensor) for part in reached)
