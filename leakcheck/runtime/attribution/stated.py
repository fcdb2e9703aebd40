"""How much a container holds at most where the program says so, as a number.

The source says what a length is compared with, `if len(self.data) < self.capacity`; that is looked
up in the objects that hold the container and in the locals and globals of its file. No code of the
program's runs.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MemberDescriptorType
from typing import Any

from leakcheck.model import Suspect
from leakcheck.runtime.attribution.bounds import Bound, bounds_beside, bounds_of
from leakcheck.runtime.attribution.names import is_inner
from leakcheck.runtime.introspection import frames, objects
from leakcheck.runtime.introspection.kinds import is_exactly, name_of
from leakcheck.runtime.introspection.local_names import locals_of

MOST_VALUES = 8  # of one name, in several functions
PASSED = 1.25  # times a limit: what is cut back now and then may hold somewhat more
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Stated:
    """The least that the program lets a container grow to, None if it does not say.

    `over`: the largest of its limits, if the container holds more than each of them; else 0.
    `passed`: that too, where it is sure that they were meant to hold it by now.
    """

    limit: int | None = None
    passed: int = 0
    over: int = 0


def stated_limit(container: Any, suspect: Suspect, owners: Sequence[Any]) -> Stated:
    """Return what the program says that a container holds at most.

    `suspect` tells what the source calls it; `owners` are the objects from a root to it.
    """
    read = objects.length_reader(type(container))
    if read is None:
        return Stated()
    length = read(container)
    # of several values of one name the nearest is meant
    known = [(bound, _numbers(bound.limit, bound.path, owners)[:1]) for bound in bounds_of(suspect)]
    limits = [
        math.ceil(limit)
        for bound, numbers in known
        for limit in numbers
        if limit >= length and (bound.counter is None or _counts(bound, owners, length))
    ]
    # seen from the lines that make it or its holder no comparison is in the same block
    sure = {ast.unparse(bound.limit) for bound, _ in known if bound.each_time}
    certain = all(ast.unparse(bound.limit) in sure and numbers for bound, numbers in known)
    if not known:
        return Stated(None, _reached_beside(suspect, owners, length))
    if limits or _is_inside(container, suspect):
        return Stated(min(limits, default=None))
    largest = max((number for _, numbers in known for number in numbers), default=0)
    over = math.ceil(largest) if 0 < PASSED * largest < length else 0
    return Stated(None, over if certain else 0, over)


def _reached_beside(suspect: Suspect, owners: Sequence[Any], length: int) -> int:
    """Return the limit of another container, if that is full and this one holds far more; else 0.

    Its elements may be looked for under keys that are none of its own.
    """
    for bound in bounds_beside(suspect):
        assert bound.counter is not None
        for limit in _numbers(bound.limit, bound.path, owners)[:1]:
            others = islice(_values(bound.counter, bound.path, owners), MOST_VALUES)
            read = ((objects.length_reader(type(other)), other) for other in others)
            full = any(reader is not None and reader(other) >= limit - 1 for reader, other in read)
            if full and 0 < PASSED * limit < length:
                return math.ceil(limit)
    return 0


def _is_inside(container: Any, suspect: Suspect) -> bool:
    """Say whether a container is in the one that is named, whose limit is not its own."""
    links = suspect.trace.links if suspect.trace else ()
    last = links[-1] if links else None
    kind = name_of(type(container))
    ends_there = last is not None and last.edge.startswith("[") and last.holder == kind
    return ends_there or is_inner(suspect)


def _counts(bound: Bound, owners: Sequence[Any], length: int) -> bool:
    assert bound.counter is not None
    return length in _numbers(bound.counter, bound.path, owners)


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
