"""References that the collector does not see: to gradients, hooks, bases of views and of arrays.

A parameter keeps its gradient in C++, and a view the tensor that it shows. An array made by
`tensor.numpy()` keeps the tensor; arrays are not tracked, nor are tuples and dictionaries of them.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from leakcheck.runtime.introspection import frames, hooks, objects
from leakcheck.runtime.introspection.gradients import gradients_of
from leakcheck.runtime.introspection.kinds import array_type
from leakcheck.runtime.introspection.tables import objects_in
from leakcheck.runtime.introspection.tensors import property_of
from leakcheck.tracked import referents_of_all

DEEPEST_UNTRACKED = 4  # tuples and dictionaries around an array, none of them tracked
LONGEST_BASES = 4  # views of views of an array


class Hidden:
    """Who holds what in such ways, at one moment; drop it soon, it is all strong."""

    def __init__(self, tensors: list[Any], around_buffers: dict[int, list[Any]]) -> None:
        self._buffers = dict(around_buffers)  # the heap is closed before
        self._grads = grads(tensors)
        self._views = _views(tensors)
        self._hooks = hooks.tables_of(tensors)  # up to torch 2.4 the collector may not see them
        self._around: dict[int, list[Any]] | None = None
        self.in_arrays: list[Any] = []  # of objects, what is in them
        # of what holds things here itself
        tables = (self._grads, self._views, self._hooks, self._buffers)
        self.ids = set(map(id, (*tables, *self._hooks.values(), *self._buffers.values())))

    def holders(self, thing: Any) -> list[Any]:
        """Return who holds an object in such ways; by arrays, once they were searched for."""
        around = self._around.get(id(thing), []) if self._around else []
        around = [*around, *self._buffers.get(id(thing), ()), *self._hooks.get(id(thing), ())]
        if not objects.is_tensor(type(thing)):
            return around
        beside = self._views.get(storage_start(thing), ())
        views = [view for view in beside if base_of(view) is thing]
        return [*self._grads.get(id(thing), ()), *views, *around]

    def is_in_array(self, thing: Any) -> bool:
        """Search for arrays of tensors (0.2 s, once); say whether one may hold this."""
        if not objects.is_tensor(type(thing)) or "numpy" not in sys.modules:
            return False
        if frames.own_codes_elsewhere():  # which may resize an array that nobody else refers to
            return False
        if self._around is None:
            self._around, self.in_arrays = _around_arrays()
            self.ids |= {id(self._around), id(self.in_arrays)}
        return bool(self.in_arrays) or id(thing) in self._around


def base_of(thing: Any) -> Any:
    """Return what a view of a tensor or an array keeps alive, None for other objects."""
    if type(thing) is array_type():
        return array_type().base.__get__(thing)
    return property_of(thing, "_base") if _is_plain(type(thing)) else None


def storage_start(tensor: Any) -> int:
    """Return where a tensor's storage begins, without an object of Python's for it; 0 if nowhere.

    What has no memory of its own (meta, sparse, nested, wrapped tensors) begins nowhere.
    """
    if not _is_plain(type(tensor)):
        return 0
    torch = sys.modules["torch"]
    base = torch._C.TensorBase
    with torch._C.DisableTorchFunction():
        try:
            begin = int(base.data_ptr(tensor))
            return begin and begin - base.storage_offset(tensor) * base.element_size(tensor)
        except (RuntimeError, TypeError):
            return 0


def seen_through_views(tensors: list[Any]) -> set[int]:
    """Return the ids of those that others of them are views of.

    By their storage: to ask a view for its base makes an object that lives as long as the view.
    """
    if not tensors:
        return set()
    is_view = sys.modules["torch"]._C.TensorBase._is_view
    views = {id(one) for one in tensors if _is_plain(type(one)) and is_view(one)}
    shown = {storage_start(one) for one in tensors if id(one) in views} - {0}
    others = (one for one in tensors if id(one) not in views)
    return {id(one) for one in others if storage_start(one) in shown}


def grads(tensors: list[Any]) -> dict[int, list[Any]]:
    """Map a gradient to the parameters that hold it."""
    if not tensors:
        return {}
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        leaves = list(filter(torch._C.TensorBase.is_leaf.__get__, tensors))
    found: dict[int, list[Any]] = {}
    for tensor, grad in zip(leaves, gradients_of(leaves), strict=True):
        if grad is not None:
            found.setdefault(id(grad), []).append(tensor)
    return found


def _is_plain(kind: type) -> bool:
    torch = sys.modules.get("torch")
    parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
    return kind is objects.tensor_type() or (parameter is not None and kind is parameter)


def _views(tensors: list[Any]) -> dict[int, list[Any]]:
    """Sort the views by where their storage begins.

    Their bases are not asked for here: of one that no Python object refers to that makes one.
    """
    found: defaultdict[int, list[Any]] = defaultdict(list)
    if tensors:
        torch = sys.modules["torch"]
        plain = [tensor for tensor in tensors if _is_plain(type(tensor))]
        with torch._C.DisableTorchFunction():
            for tensor in plain:
                start = storage_start(tensor) if torch._C.TensorBase._is_view(tensor) else 0
                if start:
                    found[start].append(tensor)
    return dict(found)


def _around_arrays() -> tuple[dict[int, list[Any]], list[Any]]:
    """Map tensors to the arrays made of them, and these to what holds them and is not tracked.

    Of arrays of objects what is in them, which is also returned by itself.
    """
    parts = referents_of_all()
    parts.extend(frames.local_values(()))
    array = array_type()
    found: defaultdict[int, list[Any]] = defaultdict(list)
    arrays: dict[int, Any] = {}
    around: dict[int, Any] = {}
    for _ in range(DEEPEST_UNTRACKED):
        arrays |= {id(part): part for part in parts if type(part) is array}
        new = {id(part): part for part in _untracked(parts) if id(part) not in around}
        around |= new
        parts = gc.get_referents(*new.values())
    for one in arrays.values():
        for holder, held in _bases(one):
            found[id(held)].append(holder)
    in_arrays: list[Any] = []
    for one in arrays.values():
        for part in objects_in(one):
            in_arrays.append(part)
            if gc.is_tracked(part) or type(part) is tuple:
                found[id(part)].append(one)
    if found:
        inside = arrays.keys() | around.keys()
        for holder in around.values():
            for part in gc.get_referents(holder):
                if id(part) in inside:
                    found[id(part)].append(holder)
    return dict(found), in_arrays


def _untracked(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        if (type(part) is tuple or type(part) is dict) and not gc.is_tracked(part):
            yield part


def _bases(array: Any) -> list[tuple[Any, Any]]:
    """Return the pairs of array and base from an array down to a tensor; none without a tensor."""
    pairs = []
    for _ in range(LONGEST_BASES):
        base = base_of(array) if type(array) is array_type() else None
        if base is None:
            return []
        pairs.append((array, base))
        if objects.is_tensor(type(base)):
            return pairs
        array = base
    return []
