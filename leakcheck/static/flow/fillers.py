"""Functions that put what they are given into a list or total around them: meters without a class.

`history = []`, `def log(value): history.append(value)`, and in the training loop `log(loss)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import shape, syntax
from leakcheck.static.flow.assignments import note_collected
from leakcheck.static.flow.attributes import attribute_of
from leakcheck.static.flow.records import Fill
from leakcheck.static.flow.substitution import substitute
from leakcheck.static.flow.values import NONE, Value, ValueKind, derive, join

if TYPE_CHECKING:
    from leakcheck.static.flow.definitions import Definition
    from leakcheck.static.flow.records import GrowingPlace
    from leakcheck.static.flow.walk import Flow
    from leakcheck.static.module import Module

_CONTAINERS: dict[str, ValueKind] = {
    "list": "list", "deque": "list", "dict": "dict", "OrderedDict": "dict", "defaultdict": "dict"
}  # fmt: skip
_TAKES_OUT = frozenset({"clear", "pop", "popleft", "popitem"})


def note_fills(
    definition: Definition, inner: Flow, flow: Flow, call: cst.Call, bound: dict[str, Value]
) -> None:
    """Take note of arguments with a graph that a function puts into a name around it."""
    for growth in inner.growths.values():
        if not growth.per_call or growth.target.startswith("self."):
            continue
        for name in growth.added.parameters & bound.keys():
            given = bound[name].contents
            if given.carries:
                if _is_around(flow, inner):
                    _fill(flow, growth, given)
                if flow.recording and flow.born:
                    flow.fills.append(Fill(call, given, definition, growth, flow.born))


def fill_arguments(
    definition: Definition, inner: Flow, flow: Flow, call: cst.Call, bound: dict[str, Value]
) -> None:
    """Let a container of the caller's take in what a function puts into its parameter."""
    for growth in inner.growths.values():
        handed = definition.argument(call, growth.filled) if growth.filled else None
        if handed is None or not flow.path(handed) or empties(inner.scope, growth.filled):
            continue
        added = substitute(growth.added, bound, flow, id(call), frozenset()).contents
        base = flow.evaluate(handed)
        if added.carries and base.kind in ("list", "dict"):
            note_collected(flow, call, handed, base, added, None, keyed=growth.keyed)
            inside = replace(added, sinks=added.sinks | {id(call)})
            element = join(base.element, inside) if base.element is not None else inside
            flow.assign(handed, replace(base, element=element), None)


def sum_arguments(
    definition: Definition, inner: Flow, flow: Flow, call: cst.Call, bound: dict[str, Value]
) -> None:
    """Let a tensor of the caller's take the graph of what a function adds to its parameter."""
    for summed in inner.summed:
        handed = definition.argument(call, summed.parameter)
        if handed is None or not flow.path(handed):
            continue
        added = substitute(summed.added, bound, flow, id(call), frozenset()).contents
        if not added.carries:
            continue
        base = flow.evaluate(handed)
        if _takes_result(flow, call, handed):  # x = lerp(x, new): that is told where it is set
            bound[summed.parameter] = flow.made(derive([base, added], flow.born))
        else:
            bound[summed.parameter] = flow.sum_in_place(call, handed, base, added)


def _takes_result(flow: Flow, call: cst.Call, place: cst.BaseExpression) -> bool:
    """Whether a place is given what the call returns."""
    statement = flow.module.parent(call)
    targets = statement.targets if isinstance(statement, cst.Assign) else ()
    return any(flow.path(each.target) == flow.path(place) for each in targets)


def _is_around(flow: Flow, inner: Flow) -> bool:
    """Whether a name of the one scope is what the other one fills."""
    if flow.module is not inner.module:
        return False
    return flow.scope in (flow.module.tree, *flow.module.ancestors(inner.scope))


def _fill(flow: Flow, growth: GrowingPlace, given: Value) -> None:
    """Let a list of the caller's own hold what was put into it."""
    name = attribute_of(growth)
    held = flow.env.get(name)
    if held is None:
        return
    inside = replace(given, sinks=given.sinks | {id(growth.node)})
    if growth.how == "collect":
        element = join(held.element, inside) if held.element is not None else inside
        kind = held.kind if held.kind in ("list", "dict") else "list"
        flow.env[name] = replace(held, graph=NONE, kind=kind, element=element)
    else:
        flow.env[name] = derive([held, inside], flow.born)


def kept_fills(flow: Flow) -> Iterator[Fill]:
    """Yield what a training loop puts into places that nothing empties or differentiates."""
    for fill in flow.fills:
        name, inner = attribute_of(fill.growth), fill.definition.flow
        if inner is None or not inner.keeps_graph(name):
            continue
        if not any(fill.loops & passed.loops for passed in flow.backwards):
            continue
        places = [home(inner.module, inner.scope, name)]
        places += [flow.module.tree] if flow.module is not inner.module else []
        added = fill.growth.node
        if any(empties(place, name, added) for place in places):
            continue
        if not _differentiated(inner, name):
            yield fill


def home(module: Module, scope: cst.CSTNode, name: str) -> cst.FunctionDef | cst.Module:
    """Return the function around a scope that makes the name, or else the module."""
    function = module.function_of(scope)
    while function is not None and not any(shape.binds(n, name) for n in shape.own_nodes(function)):
        function = module.function_of(function)
    return function or module.tree


def empties(within: cst.CSTNode, name: str, added: cst.CSTNode | None = None) -> bool:
    """Whether a scope takes something out of a name's container, or gives it another one.

    `added` is the statement that makes it grow, which is none of these.
    """
    given = 0
    for node in syntax.walk(within):
        if node is added:
            continue
        match node:
            case cst.Call(func=cst.Attribute(value=holder, attr=method)):
                if method.value in _TAKES_OUT and shape.last_name(holder) == name:
                    return True
            case cst.Del(target=cst.Subscript(value=holder)) | cst.Del(target=holder):
                if shape.last_name(holder) == name:
                    return True
            case cst.Assign(targets=targets):
                given += any(_gives(target.target, name) for target in targets)
    return given > 1


def _gives(target: cst.BaseExpression, name: str) -> bool:
    """Whether a target is the name itself, or a slice of it."""
    match target:
        case cst.Subscript(
            value=cst.Name(value=holder), slice=[cst.SubscriptElement(slice=cst.Slice())]
        ):
            return holder == name
        case cst.Tuple(elements=elements):
            return any(_gives(element.value, name) for element in elements)
    return isinstance(target, cst.Name) and target.value == name


def _differentiated(inner: Flow, name: str) -> bool:
    """Whether some function of the module asks for gradients of what the name holds."""
    flows = (inner.analysis.flow(scope) for scope in inner.analysis.scopes())
    return any(
        name in passed.value.entries
        for flow in flows
        if flow is not None
        for passed in (*flow.backwards, *flow.differentiations)
    )


def empty_container(node: cst.BaseExpression) -> ValueKind | None:
    """Return the kind of container that an expression makes, with nothing in it and no limit."""
    match node:
        case cst.List(elements=[]):
            return "list"
        case cst.Dict(elements=[]):
            return "dict"
        case cst.Call(args=[]) | cst.Call(func=cst.Name(value="defaultdict")):
            name = syntax.dotted(node.func).rpartition(".")[2]
            return _CONTAINERS.get(name)
    return None
