"""What the flow analysis knows about a value: does it carry an autograd graph, and from where?

A value's `graph` is a degree of evidence, never a guess from a name alone:

    NONE     certainly no graph: a number, a detached tensor, made under no_grad
    UNKNOWN  nothing is known; rules are silent about it
    LIKELY   a graph if the surrounding code trains: an input of forward, a loss of unknown inputs
    SURE     backward is called on it, or it is computed from parameters
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from leakcheck.static.flow.classes import ClassInfo
    from leakcheck.static.flow.definitions import Definition

NONE, UNKNOWN, LIKELY, SURE = range(4)
MOST_NESTING = 4  # containers in containers deeper than this are one value

ValueKind = Literal[
    "tensor", "number", "list", "dict", "tuple", "object", "module", "loss", "class", "function",
    "bounded", "unknown",
]  # fmt: skip
Ids = frozenset[int]
NameSet = frozenset[str]
_NO_IDS: Ids = frozenset()
_NO_NAMES: NameSet = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """One abstract value; the sets say what it was computed from."""

    graph: int = UNKNOWN
    kind: ValueKind = "unknown"
    origins: Ids = _NO_IDS  # ids of the calls that made it: evidence found later reaches it there
    parameters: NameSet = _NO_NAMES  # carries a graph if these parameters of the function do
    inputs: NameSet = _NO_NAMES  # computed from these parameters, whatever they carry
    entries: NameSet = _NO_NAMES  # computed from what these attributes held when the method began
    born: Ids = _NO_IDS  # loops whose current turn made it
    stale: Ids = _NO_IDS  # loops of which an earlier turn's graph is in it
    sinks: Ids = _NO_IDS  # growing places whose contents are in it
    items: tuple[tuple[object, Value], ...] = ()  # known slots of a dict or tuple
    element: Value | None = None  # what the other slots hold
    ref: ClassInfo | None = field(default=None, compare=False)  # the class of an object
    function: Definition | None = field(default=None, compare=False)  # of the kind "function"
    leaf: bool = False  # requires grad by request, not by computation
    floats: bool = False  # certainly a plain Python number
    lent: bool = False  # sure only by what another caller gives the function's parameters

    @property
    def carries(self) -> bool:
        """Whether there is enough evidence of a graph to speak of it."""
        return self.graph >= LIKELY

    @property
    def contents(self) -> Value:
        """What is inside a container, all slots joined; the value itself when it is none."""
        parts = [value for _, value in self.items]
        if self.element is not None:
            parts.append(self.element)
        if not parts:
            return self if self.kind not in ("list", "dict", "tuple") else EMPTY
        inner = join_all(part.contents for part in parts)
        return replace(inner, sinks=inner.sinks | self.sinks)

    @property
    def any_slot(self) -> Value:
        """What a slot chosen by an unknown key may hold."""
        parts = [value for _, value in self.items]
        whole = join_all([*parts, self.element] if self.element is not None else parts)
        return replace(whole, sinks=whole.sinks | self.sinks)

    def slot(self, key: object) -> Value | None:
        """Return what a known slot holds; None when the slot is not known."""
        for name, value in self.items:
            if name == key and type(name) is type(key):
                return value
        return self.element

    def with_slot(self, key: object, value: Value) -> Value:
        """Return the container after `self[key] = value`; an unknown key (...) may be any slot."""
        if key is ... or len(self.items) > 60:
            return replace(self, element=join(self.element, value) if self.element else value)
        kept = tuple((name, old) for name, old in self.items if name != key)
        return replace(self, items=(*kept, (key, value)))

    def cut_whole(self) -> Value:
        """Return what is computed without gradients, of which no slot has a graph either."""
        items = tuple((key, value.cut_whole()) for key, value in self.items)
        return Value(NONE, self.kind, items=items, ref=self.ref, floats=self.floats)

    def cut(self) -> Value:
        """Return the value without its graph, as after detach()."""
        return Value(NONE, "tensor")


EMPTY = Value(NONE)
PLAIN = Value(NONE, "number", floats=True)
ANYTHING = Value()
DETACHED = Value(NONE, "tensor")


def alias_of_self(place: str, base: Value) -> str:
    """Return the attribute that a plain name stands for, or a slot of which: `kept = self.kept`."""
    if not place.isidentifier() or base.kind not in ("unknown", "list", "dict") or base.carries:
        return ""
    of_self = [each for each in base.entries if each.startswith("self.")]
    return of_self[0] if len(of_self) == len(base.entries) == 1 else ""


def join(one: Value, other: Value) -> Value:
    """Return what a name may hold when control flows together: the more graph wins."""
    if one == other:
        return one
    first, second = (one, other) if one.graph >= other.graph else (other, one)
    ref = first.ref if first.ref is not None else second.ref
    return Value(
        graph=first.graph,
        kind=first.kind if first.kind not in ("unknown", "number") else second.kind,
        origins=one.origins | other.origins,
        parameters=one.parameters | other.parameters,
        inputs=one.inputs | other.inputs,
        entries=one.entries | other.entries,
        born=one.born | other.born,
        stale=one.stale | other.stale,
        sinks=one.sinks | other.sinks,
        items=_join_items(one, other),
        element=_join_elements(one, other),
        ref=ref,
        function=first.function or second.function,
        leaf=first.leaf and (second.leaf or second.graph < first.graph),
        lent=first.lent and (second.lent or second.graph < first.graph),
        floats=one.floats and other.floats,
    )


def join_all(values: Iterable[Value]) -> Value:
    """Join any number of values; EMPTY for none."""
    joined: Value | None = None
    for value in values:
        joined = value if joined is None else join(joined, value)
    return EMPTY if joined is None else joined


def derive(values: Iterable[Value], born: Ids) -> Value:
    """Return the result of a differentiable operation on these values."""
    operands = [value.contents for value in values]
    if not operands:
        return Value(born=born)
    graph = max(value.graph for value in operands)
    if all(value.floats for value in operands):
        return PLAIN
    return Value(
        graph=graph,
        kind="tensor",
        origins=_NO_IDS.union(*(value.origins for value in operands)),
        parameters=_NO_NAMES.union(*(value.parameters for value in operands)),
        inputs=_NO_NAMES.union(*(value.inputs for value in operands)),
        entries=_NO_NAMES.union(*(value.entries for value in operands)),
        born=born,
        stale=_NO_IDS.union(*(value.stale for value in operands)),
        sinks=_NO_IDS.union(*(value.sinks for value in operands)),
        lent=all(value.lent for value in operands if value.graph == graph),
    )


def age(value: Value, loop: int, depth: int = 0) -> Value:
    """Return the value as the next turn of a loop finds it."""
    if value.graph == NONE and not value.items and value.element is None:
        return value
    changed = value
    if loop in value.born:
        changed = replace(value, stale=value.stale | {loop}, born=value.born - {loop})
    if depth < MOST_NESTING and (value.items or value.element is not None):
        items = tuple((key, age(item, loop, depth + 1)) for key, item in value.items)
        element = age(value.element, loop, depth + 1) if value.element is not None else None
        changed = replace(changed, items=items, element=element)
    return changed


def _join_items(one: Value, other: Value) -> tuple[tuple[object, Value], ...]:
    if not one.items or not other.items:
        return one.items or other.items
    merged: dict[object, Value] = dict(one.items)
    for key, value in other.items:
        merged[key] = join(merged[key], value) if key in merged else value
    return tuple(merged.items())


def _join_elements(one: Value, other: Value) -> Value | None:
    if one.element is None or other.element is None:
        return one.element or other.element
    return join(one.element, other.element)
