"""What an expression of the source stands for now, by the objects and frames that live.

`self.capacity` is looked up in the objects that hold a container, `CAPACITY` in the functions that
run and the globals of its file. No code of the program's runs.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import MemberDescriptorType
from typing import Any

from leakcheck.runtime.introspection import frames, objects
from leakcheck.runtime.introspection.kinds import is_exactly
from leakcheck.runtime.introspection.local_names import locals_of

NO_LIMIT = sys.maxsize
MOST_VALUES = 8  # of one name, in several functions
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}


def number_of(told: str, path: str, owners: Sequence[Any]) -> int | None:
    """Return the whole number that an expression of a file stands for, None if that is not known.

    `owners`: the objects from a root to a container; of several values of one name the nearest is
    meant.
    """
    try:
        node = ast.parse(told, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return next((math.ceil(each) for each in _numbers(node, path, owners)), None)


def limit_of(told: str, path: str, owners: Sequence[Any]) -> int | None:
    """Return the number of elements that an expression limits to, `NO_LIMIT` for None or infinity.

    A length is never compared with None: where that stands for a limit, there is none.
    """
    try:
        values = list(_values(ast.parse(told, mode="eval").body, path, owners))
    except (SyntaxError, ValueError, RecursionError):
        return None
    unlimited = values[:1] in ([None], [math.inf])
    return NO_LIMIT if unlimited else number_of(told, path, owners)


def things_of(told: str, path: str) -> Iterator[Any]:
    """Yield the objects that a name or an attribute may stand for, the nearest first."""
    return islice(_values(ast.parse(told, mode="eval").body, path, ()), MOST_VALUES)


def _numbers(node: ast.expr, path: str, owners: Sequence[Any]) -> list[float]:
    found = islice(_values(node, path, owners), MOST_VALUES)
    return [value for value in found if is_exactly(value, int, float) and math.isfinite(value)]


def _values(node: ast.expr, path: str, owners: Sequence[Any]) -> Iterator[Any]:
    """Yield what an expression may stand for, the nearest first; nothing if that takes a call."""
    match node:
        case ast.Constant(value=value):
            yield value
        case ast.Name(id="self"):
            yield from reversed(owners)
        case ast.Name(id=name):
            yield from _named(name, path)
        case ast.Attribute(value=owner, attr=name):
            for thing in islice(_values(owner, path, owners), MOST_VALUES):
                yield from _attribute(thing, name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(key))):
            for thing in islice(_values(owner, path, owners), MOST_VALUES):
                if type(thing) is dict and key in thing:
                    yield thing[key]
        case ast.Call(func=ast.Name(id="int" | "round"), args=[inner]):
            yield from (math.floor(value) for value in _numbers(inner, path, owners))
        case ast.Call(func=ast.Name(id="len"), args=[inner]):
            for thing in islice(_values(inner, path, owners), MOST_VALUES):
                read = objects.length_reader(type(thing))
                yield from () if read is None else (read(thing),)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            for one in _numbers(left, path, owners)[:1]:
                for other in _numbers(right, path, owners)[:1]:
                    if other or not isinstance(sign, (ast.Div, ast.FloorDiv)):
                        yield _OPERATORS[type(sign)](one, other)


def _attribute(thing: Any, name: str) -> Iterator[Any]:
    try:
        value = inspect.getattr_static(thing, name)
        yield value.__get__(thing) if type(value) is MemberDescriptorType else value
    except (AttributeError, TypeError):  # not there, or a slot without a value
        return


def _named(name: str, path: str) -> Iterator[Any]:
    """Yield the values of a name in the running functions of a file, then in its module."""
    at = os.path.realpath(path)
    running = [
        frame for frame in frames.running() if os.path.realpath(frame.f_code.co_filename) == at
    ]
    for frame in running:
        named = locals_of(frame)
        if name in named:
            yield named[name]
    for namespace in (*(frame.f_globals for frame in running), *frames.namespaces(at)):
        if name in namespace:
            yield namespace[name]
            return
