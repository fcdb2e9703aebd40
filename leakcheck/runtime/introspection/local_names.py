"""What the local names of a function hold, read so that the function cannot tell.

Up to CPython 3.12 `frame.f_locals` writes into the dictionary that `locals()` gave the function, or
leaves one behind that keeps every value alive, and what is missing from it is unbound when a trace
function returns. So it is not asked: 3.12 reads one variable at a time (`PyFrame_GetVar`), and in
3.10 and 3.11, which have no such call, the slots of the frame are read where they lie. From 3.13 on
`f_locals` is a view that changes nothing (PEP 667).
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CellType, CodeType, FrameType
from typing import Any

# of each version: the size of a frame, where in it the pointer to what has the slots is (0: they
# are in the frame itself), and where in that the code and the first slot are
_LAYOUTS = {(3, 10): (360, 0, 32, 352), (3, 11): (120, 24, 32, 72)}
_LAYOUT = _LAYOUTS.get(sys.version_info[:2])
_KNOWN_LAYOUT = _LAYOUT is not None and FrameType.__basicsize__ == _LAYOUT[0]


def locals_of(frame: FrameType, owner: Any = None) -> dict[str, Any]:
    """Return a function's locals by name; of a module or class none, they have no slots.

    `owner`: the generator or coroutine whose frame it is. A frame that another thread runs has none
    here up to CPython 3.11.
    """
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return {}
    if sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if sys.version_info >= (3, 12):
        return dict(_asked_one_by_one(frame))
    return dict(_bound(frame, owner)) if _KNOWN_LAYOUT else {}


def _names(code: CodeType) -> list[str]:
    """Return the names of the slots in their order; an argument that is a cell has one slot."""
    arguments = set(code.co_varnames)
    if sys.version_info < (3, 11):
        return [*code.co_varnames, *code.co_cellvars, *code.co_freevars]
    cells = (name for name in code.co_cellvars if name not in arguments)
    return [*code.co_varnames, *cells, *code.co_freevars]


def _asked_one_by_one(frame: FrameType) -> Iterator[tuple[str, Any]]:
    ask = ctypes.pythonapi["PyFrame_GetVar"]
    ask.argtypes, ask.restype = (ctypes.py_object, ctypes.py_object), ctypes.py_object
    for name in _names(frame.f_code):
        with suppress(NameError):  # it has no value now
            yield name, ask(frame, name)


def _bound(frame: FrameType, owner: Any) -> Iterator[tuple[str, Any]]:
    names = _names(frame.f_code)
    start = _first_slot(frame)
    if start is None:
        return
    if owner is None and _runs_here(frame):
        values: list[Any] = _read_slots(start, len(names))
    else:  # another thread may go on with it: only what is held by now is looked for by address
        held = {id(part): part for part in gc.get_referents(frame, owner)}
        addresses = (ctypes.c_void_p * len(names)).from_address(start)
        values = [held.get(address, _UNBOUND) for address in list(addresses)]
    boxed = {*frame.f_code.co_cellvars, *frame.f_code.co_freevars}
    for name, value in zip(names, values, strict=True):
        found = _unboxed(value) if type(value) is CellType and name in boxed else value
        if found is not _UNBOUND:
            yield name, found


def _read_slots(start: int, count: int) -> list[Any]:
    """Read the slots of a frame that this thread runs: nobody else can change them meanwhile."""
    addresses = (ctypes.c_void_p * count).from_address(start)
    things = (ctypes.py_object * count).from_address(start)
    return [things[i] if addresses[i] else _UNBOUND for i in range(count)]


def _first_slot(frame: FrameType) -> int | None:
    assert _LAYOUT is not None
    _, pointer, code, slots = _LAYOUT
    start = id(frame)
    if pointer:
        start = ctypes.c_void_p.from_address(start + pointer).value or 0
    if not start or ctypes.c_void_p.from_address(start + code).value != id(frame.f_code):
        return None
    return start + slots


def _runs_here(frame: FrameType) -> bool:
    here: FrameType | None = sys._getframe()
    while here is not None and here is not frame:
        here = here.f_back
    return here is frame


def _unboxed(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return _UNBOUND


_UNBOUND = object()
