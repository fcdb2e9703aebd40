"""Is a growing place emptied or cut back from time to time, in the very loop that makes it grow?

`if step % 50 == 0: total = 0`, `if len(history) > n: history.pop(0)`, `history = history[-n:]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.torch_api import words

if TYPE_CHECKING:
    from leakcheck.static.flow.records import GrowingPlace
    from leakcheck.static.flow.walk import Flow

_TAKES_OUT = frozenset({"pop", "popleft", "clear", "popitem"})


def relieved(flow: Flow, growth: GrowingPlace) -> bool:
    """Whether every loop the place outlives, or else its method, also takes something out of it."""
    bodies: list[cst.CSTNode] = [*flow.module.loops_with(growth.loops)]
    if growth.per_call and not bodies:
        bodies = [flow.scope.body] if isinstance(flow.scope, cst.FunctionDef) else []
    places = {_root(growth.target), *_alias(flow, growth)}
    return bool(bodies) and all(
        any(_relieves(flow, growth, body, place) for place in places) for body in bodies
    )


def _alias(flow: Flow, growth: GrowingPlace) -> Iterator[str]:
    """Yield the local name that the place is filled by: `kept = self.kept; kept.append(x)`."""
    match growth.node:
        case cst.Call(func=cst.Attribute(value=cst.Name() as holder)):
            yield flow.path(holder)


def _relieves(flow: Flow, growth: GrowingPlace, body: cst.CSTNode, place: str) -> bool:
    for node in syntax.walk(body):
        if node is growth.node:
            continue
        match node:
            case cst.Call() if _takes_from(flow, node, place):
                return True
            case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value=method))):
                if method in _TAKES_OUT and _root(flow.path(holder)) == place:
                    return True
                own = place.startswith("self.") and syntax.dotted(holder) == "self"
                if own and _resets_in(flow, method, place):
                    return True
            case cst.Del(target=target) if any(_root(flow.path(t)) == place for t in _each(target)):
                return True
            case cst.Assign() if _sets(flow, node, place) and _is_relief(flow, growth, node, place):
                return True
    return False


def _takes_from(flow: Flow, call: cst.Call, place: str) -> bool:
    """`heapq.heappop(place)`."""
    if not call.args or flow.path(call.args[0].value) != place:
        return False
    return flow.module.qualified(call.func) in words("functions", "takes_from_first")


def _is_relief(flow: Flow, growth: GrowingPlace, node: cst.Assign, place: str) -> bool:
    """Whether an assignment lets the old contents go, rather than giving the first ones."""
    if _cuts_back(flow, node, place):
        return True
    if any(flow.path(part) == place for part in syntax.walk(node.value)):
        return False
    test = flow.module.enclosing(node, cst.If)
    if test is None or any(above is test for above in flow.module.ancestors(growth.node)):
        return False
    return not _asks_for_the_first(flow, test.test, place)


def _cuts_back(flow: Flow, node: cst.Assign, place: str) -> bool:
    """`history = history[-100:]`, or `history[:] = history[-100:]`."""
    match node.value:
        case cst.Subscript(value=whole, slice=[cst.SubscriptElement(slice=cst.Slice())]):
            return flow.path(whole) == place
    return False


def _asks_for_the_first(flow: Flow, test: cst.BaseExpression, place: str) -> bool:
    """Whether a test asks if the place is there yet, or if this is the first turn."""
    parts = list(syntax.walk(test))
    if any(isinstance(part, cst.Modulo) for part in _operators(test)):
        return False
    if any(flow.path(part) == place for part in parts):
        return not any(isinstance(part, cst.Call) for part in parts)
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator, comparator=at)]):
            first = syntax.constant(at) in (0, 1, None)
            return isinstance(operator, (cst.Equal, cst.Is, cst.NotIn)) and first
        case cst.UnaryOperation(operator=cst.Not()):
            return True
    return any("first" in part.value for part in parts if isinstance(part, cst.Name))


def _operators(test: cst.BaseExpression) -> Iterator[cst.BaseBinaryOp]:
    for part in syntax.walk(test):
        if isinstance(part, cst.BinaryOperation):
            yield part.operator


def _resets_in(flow: Flow, method: str, place: str) -> bool:
    """Whether a method of the same object gives the attribute a new value."""
    function = flow.owner.methods.get(method) if flow.owner else None
    if function is None or function is flow.scope:
        return False
    for node in syntax.walk(function.body):
        match node:
            case cst.Assign() if _sets(flow, node, place):
                return not any(flow.path(part) == place for part in syntax.walk(node.value))
            case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="clear"))):
                if flow.path(holder) == place:
                    return True
    return False


def _sets(flow: Flow, node: cst.Assign, place: str) -> bool:
    targets = [each for target in node.targets for each in _each(target.target)]
    return any(_root(flow.path(target)) == place for target in targets)


def _each(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [inner for element in target.elements for inner in _each(element.value)]
    return [target]


def _root(path: str) -> str:
    """Return the place without its slots: "stats" of "stats['loss']"."""
    return path.partition("[")[0]
