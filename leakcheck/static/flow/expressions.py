"""What an expression's value carries: one short function a node kind.

Flow holds the state (names, gradient mode, loops); everything here only asks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from leakcheck.source.words import says
from leakcheck.static import syntax
from leakcheck.static.flow.calls import evaluate_call
from leakcheck.static.flow.late_detach import note_cut
from leakcheck.static.flow.records import GrowingPlace, How
from leakcheck.static.flow.values import (
    ANYTHING,
    EMPTY,
    LIKELY,
    NONE,
    PLAIN,
    UNKNOWN,
    Value,
    derive,
    join,
    join_all,
)
from leakcheck.static.torch_api import framework, words

if TYPE_CHECKING:
    from leakcheck.static.flow.walk import Flow


def evaluate(flow: Flow, node: cst.CSTNode) -> Value:
    """Return what the expression's value carries, and let its calls take effect."""
    evaluator = _EVALUATORS.get(type(node))
    return evaluator(flow, node) if evaluator else ANYTHING


def subscript_key(flow: Flow, node: cst.Subscript) -> object:
    """Return the constant a subscript asks for, else `...`."""
    if len(node.slice) != 1:
        return ...
    match node.slice[0].slice:
        case cst.Index(value=cst.UnaryOperation(operator=cst.Minus(), expression=inner)):
            number = syntax.constant(inner)
            return -number if isinstance(number, int) else ...
        case cst.Index(value=value):
            return syntax.constant(value)
    return ...


def slot_of(flow: Flow, base: Value, key: object, spelled: str) -> Value:
    """Return what `base[key]` holds; `spelled` names a slot whose key is no constant."""
    if base.kind in ("list", "dict", "tuple") and (base.items or base.element):
        found = base.slot(key) if key is not ... else None
        if isinstance(key, int) and key < 0 and base.kind == "tuple":
            found = base.slot(len(base.items) + key)
        return flow.seen(found or base.any_slot)
    if base.carries and base.kind == "tensor":
        return part_of_output(flow, derive([base], flow.born), key, repr(key))
    if base.carries and base.kind in ("module", "list", "dict", "tuple"):
        return base.contents
    if base.graph == NONE:
        return base if base.kind == "tensor" else EMPTY
    name = repr(key) if key is not ... else spelled
    origins = frozenset(flow.analysis.slot(origin, name) for origin in base.origins)
    return flow.seen(replace(base, origins=origins, kind="unknown", items=(), element=None))


def part_of_output(flow: Flow, whole: Value, name: object, spelled: str) -> Value:
    """Return what one of several outputs holds; nothing is known of what was but counted."""
    if not _is_counted(name):
        return replace(whole, items=(), element=None)
    origins = frozenset(flow.analysis.slot(origin, spelled) for origin in whole.origins)
    return flow.seen(Value(UNKNOWN, origins=origins, born=flow.born))


def _is_counted(name: object) -> bool:
    """Whether a name says that its value was counted: "num_samples", "n", "train_acc"."""
    return isinstance(name, str) and says(name.rpartition(".")[2], "counted")


def _name(flow: Flow, node: cst.Name) -> Value:
    if node.value in ("True", "False", "None"):
        return PLAIN
    return flow.read(node.value)


def _attribute(flow: Flow, node: cst.Attribute) -> Value:
    path = syntax.dotted(node)
    if path and (held := flow.held(path)) is not None:
        return held
    if path in framework("metrics", "outputs_given"):
        named = frozenset({path})
        return Value(parameters=named, inputs=named, origins=frozenset({id(node)}))
    name = node.attr.value
    base = flow.evaluate(node.value)
    of_self = path.startswith("self.") and path.count(".") == 1
    if of_self and flow.owner is not None and flow.owner.attribute(name) is not ANYTHING:
        return flow.entry(path)
    own = base.ref.attribute(name) if base.kind == "object" and base.ref is not None else ANYTHING
    if name in words("attributes", "cut") and own is ANYTHING:  # not an object's list `data`
        if name == "data":
            note_cut(flow, base)
        return Value(NONE, "tensor", entries=frozenset())
    if of_self:
        return flow.entry(path)
    if base.kind in ("object", "tuple") and (field := base.slot(name)) is not None:
        return field
    if base.kind == "object" and base.ref is not None:
        return _of_object(own, node)
    if base.kind in ("module", "loss", "class", "function"):
        return ANYTHING
    if base.graph == NONE:
        return ANYTHING if base.kind in ("unknown", "object") else EMPTY
    if base.leaf and name not in ("T", "H", "mT", "mH", "real", "imag"):
        return ANYTHING  # hung on a parameter by others: `p.grad_sample`
    if base.carries:
        return part_of_output(flow, replace(base, kind="tensor"), name, f".{name}")
    return slot_of(flow, base, ..., f".{name}")


def _of_object(value: Value, node: cst.Attribute) -> Value:
    """Return an attribute as found on an object: others may have filled its container since."""
    if value.kind not in ("list", "dict") or value.items or value.element is not None:
        return value
    return replace(value, element=Value(origins=frozenset({id(node)})))


def _subscript(flow: Flow, node: cst.Subscript) -> Value:
    path = flow.path(node)
    if path and (held := flow.held(path)) is not None:
        return held
    base = flow.evaluate(node.value)
    for element in node.slice:
        if isinstance(element.slice, cst.Index):
            flow.evaluate(element.slice.value)
        elif base.kind in ("list", "tuple"):
            return base
    owner = base.ref if base.kind == "object" else None
    if syntax.dotted(node.value) == "self":
        owner = flow.owner
    if owner is not None and owner.slots is not None:
        return Value(NONE, "object", ref=owner.slots)
    key = subscript_key(flow, node)
    part = slot_of(flow, base, key, flow.code(node) if key is ... else "")
    if part.graph == UNKNOWN and flow.analysis.sibling_of_evident(part, flow.code(node.value)):
        return flow.made(replace(part, graph=LIKELY))
    return part


def _binary(flow: Flow, node: cst.BinaryOperation) -> Value:
    left, right = flow.evaluate(node.left), flow.evaluate(node.right)
    return operate(flow, node.operator, left, right, node)


def operate(
    flow: Flow, operator: object, left: Value, right: Value, node: cst.CSTNode | None = None
) -> Value:
    """Return the value of an arithmetic operation, `+` on containers included."""
    if isinstance(operator, (cst.Add, cst.AddAssign)) and "list" in (left.kind, right.kind):
        return Value(
            left.graph, "list", born=left.born, element=join(left.contents, right.contents)
        )
    if isinstance(operator, cst.Multiply) and "list" in (left.kind, right.kind):
        return left if left.kind == "list" else right  # [None] * 10
    if isinstance(operator, (cst.Modulo, cst.ModuloAssign)) and left.kind == "number":
        return PLAIN  # a format string
    if isinstance(operator, (cst.Add, cst.AddAssign)):
        return flow.made(derive([left, right], flow.born))
    divides = isinstance(operator, (cst.Divide, cst.DivideAssign, cst.FloorDivide, cst.Modulo))
    made = derive(_credited(left.contents, right.contents, divides=divides), flow.born)
    if made.graph == UNKNOWN and node is not None:
        made = replace(made, origins=made.origins | {id(node)})
    return flow.seen(flow.made(made))


def _credited(left: Value, right: Value, *, divides: bool) -> list[Value]:
    """Drop the origins of operands that backward on the result says nothing about.

    `weight * loss` shows nothing of `weight`, `loss / steps` nothing of what divides, and
    `value - reward` nothing of what was given from outside; of two results of calls neither is
    shown to have the graph.
    """
    operands = [left, right]
    unsure = [v for v in operands if v.graph == UNKNOWN and v.origins]
    if max(left.graph, right.graph) < LIKELY:
        if len(unsure) < 2:
            return operands
        given = [v for v in unsure if v.parameters]
        unsure = given if len(given) == 1 else unsure
        unsure = [right] if divides else unsure
    return [replace(v, origins=frozenset()) if v in unsure else v for v in operands]


def _unary(flow: Flow, node: cst.UnaryOperation) -> Value:
    value = flow.evaluate(node.expression)
    return PLAIN if isinstance(node.operator, cst.Not) else flow.made(derive([value], flow.born))


def _comparison(flow: Flow, node: cst.Comparison) -> Value:
    flow.evaluate(node.left)
    for part in node.comparisons:
        flow.evaluate(part.comparator)
    return Value(NONE, "tensor")


def _boolean(flow: Flow, node: cst.BooleanOperation) -> Value:
    left, right = flow.evaluate(node.left), flow.evaluate(node.right)
    if isinstance(node.operator, cst.And):
        return right
    either, empty = join(left, right), not right.items and right.element is None
    if left.kind == "unknown" and right.kind in ("list", "dict") and empty:
        return replace(either, element=left)  # `values or {}` has what `values` has
    return either


def _ternary(flow: Flow, node: cst.IfExp) -> Value:
    flow.evaluate(node.test)
    with flow.assuming(node.test, True):
        body = flow.evaluate(node.body)
    with flow.assuming(node.test, False):
        orelse = flow.evaluate(node.orelse)
    return join(body, orelse)


def _tuple(flow: Flow, node: cst.Tuple | cst.List) -> Value:
    kind: Any = "tuple" if isinstance(node, cst.Tuple) else "list"
    parts = [(flow.evaluate(e.value), isinstance(e, cst.StarredElement)) for e in node.elements]
    value = Value(NONE, kind, born=flow.born)
    if kind == "list" or any(starred for _, starred in parts):
        inner = join_all(v.contents if starred else v for v, starred in parts)
        return replace(value, element=inner) if parts else value
    return replace(value, items=tuple((i, v) for i, (v, _) in enumerate(parts)))


def _dict(flow: Flow, node: cst.Dict) -> Value:
    value = Value(NONE, "dict", born=flow.born)
    for element in node.elements:
        inner = flow.evaluate(element.value)
        if isinstance(element, cst.DictElement):
            value = value.with_slot(syntax.constant(element.key), inner)
        else:
            value = value.with_slot(..., inner.contents)
    return value


def _set(flow: Flow, node: cst.Set) -> Value:
    inner = join_all(flow.evaluate(e.value) for e in node.elements)
    return Value(NONE, "list", born=flow.born, element=inner)


def _comprehension(flow: Flow, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Value:
    outer = flow.born
    flow.born = outer | {id(node)}
    with flow.comprehending(node.for_in):
        inner = flow.evaluate(node.elt)
    flow.born = outer
    kept = _kept_as(flow, node)
    if kept and inner.contents.carries:
        how: How = "sum" if kept == "the sum" else "collect"
        flow.grow(GrowingPlace(how, node, kept, inner, inner, frozenset({id(node)})))
    contents = inner.contents
    if contents.graph != NONE:
        inner = replace(inner, sinks=inner.sinks | {id(node)})
    return Value(NONE, "list", born=flow.born, element=inner)


def _kept_as(flow: Flow, node: cst.CSTNode) -> str:
    """Say what holds a comprehension's values together; empty for a generator on its own."""
    if isinstance(node, cst.ListComp):
        return "the list"
    around = flow.module.parent(flow.module.parent(node) or node)
    called = syntax.dotted(around.func) if isinstance(around, cst.Call) else ""
    return {"sum": "the sum", "list": "the list", "tuple": "the list"}.get(called, "")


def _dict_comprehension(flow: Flow, node: cst.DictComp) -> Value:
    with flow.comprehending(node.for_in):
        flow.evaluate(node.key)
        inner = flow.evaluate(node.value)
    return Value(NONE, "dict", born=flow.born, element=inner)


def _walrus(flow: Flow, node: cst.NamedExpr) -> Value:
    flow.rebind(node, node.target, node.value)
    return flow.evaluate(node.target)


def _inner(flow: Flow, node: Any) -> Value:
    return flow.evaluate(node.expression) if isinstance(node, cst.Await) else PLAIN


def _formatted(flow: Flow, node: cst.FormattedString) -> Value:
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            flow.evaluate(part.expression)
    return PLAIN


def _yield(flow: Flow, node: cst.Yield) -> Value:
    value = node.value.item if isinstance(node.value, cst.From) else node.value
    if value is not None:
        flow.give_back(flow.evaluate(value))
    return ANYTHING


def _number(flow: Flow, node: cst.CSTNode) -> Value:
    return PLAIN


_EVALUATORS: dict[type, Callable[[Flow, Any], Value]] = {
    cst.Name: _name,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.Call: evaluate_call,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.BooleanOperation: _boolean,
    cst.IfExp: _ternary,
    cst.Tuple: _tuple,
    cst.List: _tuple,
    cst.Dict: _dict,
    cst.Set: _set,
    cst.ListComp: _comprehension,
    cst.SetComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.DictComp: _dict_comprehension,
    cst.NamedExpr: _walrus,
    cst.Await: _inner,
    cst.FormattedString: _formatted,
    cst.Yield: _yield,
    cst.Integer: _number,
    cst.Float: _number,
    cst.SimpleString: _number,
    cst.ConcatenatedString: _number,
}
