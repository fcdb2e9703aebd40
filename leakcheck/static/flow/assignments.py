"""Putting values in places, and noticing when a place takes in its own earlier contents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.calls import opaque
from leakcheck.static.flow.expressions import operate, part_of_output, slot_of, subscript_key
from leakcheck.static.flow.prospects import MIXING_FUNCTIONS
from leakcheck.static.flow.records import Frame, GrowingPlace, How
from leakcheck.static.flow.retained import retains
from leakcheck.static.flow.values import (
    DETACHED,
    EMPTY,
    LIKELY,
    NONE,
    SURE,
    UNKNOWN,
    Value,
    alias_of_self,
    derive,
    join,
)
from leakcheck.static.shape import target_names

if TYPE_CHECKING:
    from leakcheck.static.flow.arguments import Arguments
    from leakcheck.static.flow.walk import Flow

MOST_HOPS = 4  # from a place back to what it is made of


def rebind(
    flow: Flow, node: cst.CSTNode, targets: list[cst.BaseExpression], right: cst.BaseExpression
) -> None:
    """Walk `target = right`, or several targets."""
    if pairs := _side_by_side(targets, right):
        values = [_taken_in(flow, node, each, flow.evaluate(part), part) for each, part in pairs]
        for (target, _), value in zip(pairs, values, strict=True):
            assign(flow, target, value, node)
        return
    value = flow.evaluate(right)
    for target in targets:
        if isinstance(target, cst.Tuple):
            value = _through_call(flow, target, value, right)
        value = _taken_in(flow, node, target, value, right)
        assign(flow, target, value, node)


def _side_by_side(
    targets: list[cst.BaseExpression], right: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Return what is assigned to what by `a, b = a + x, b + 1`; nothing for other assignments."""
    if len(targets) != 1 or not isinstance(right, cst.Tuple):
        return []
    (target,) = targets
    if not isinstance(target, cst.Tuple) or len(target.elements) != len(right.elements):
        return []
    if any(isinstance(e, cst.StarredElement) for e in (*target.elements, *right.elements)):
        return []
    return [(t.value, r.value) for t, r in zip(target.elements, right.elements, strict=True)]


def _taken_in(
    flow: Flow,
    node: cst.CSTNode,
    target: cst.BaseExpression,
    value: Value,
    right: cst.BaseExpression,
) -> Value:
    """Record that a place takes in its own earlier contents; return it marked as growing here."""
    place = _base(target) if isinstance(target, cst.Subscript) else target
    if isinstance(target, cst.Tuple):
        _note_carried(flow, node, target, value, right)
    elif value.kind == "list" and _extends(flow, right, place):
        added = _without(flow, place, right)
        note_collected(flow, node, target, flow.evaluate(target), added, None)
        value = replace(value, element=_sunk(value.contents, node))
    elif _averages(right) and _is_of(flow, value, right, place):
        added = _without(flow, place, right)
        old = flow.evaluate(target).contents
        total = note_sum(flow, node, target, old, value.contents, added, right)
        value = replace(value, items=(), element=total)
    elif (value.carries or value.parameters) and _is_of(flow, value, right, place):
        old = flow.evaluate(target)
        if isinstance(target, cst.Subscript) and not old.entries:
            old = join(old, flow.evaluate(place))
        how: How = "sum" if _is_sum(_source(flow, right)) else "carry"
        added = _without(flow, place, right) if how == "sum" else value
        value = note_sum(flow, node, target, old, value, added, right, how)
    return value


def _source(flow: Flow, right: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a local name was made of: `mean = 0.9 * self.mean + x; self.mean = mean`."""
    for _ in range(MOST_HOPS):
        match right:
            case cst.Name(value=name):
                made = flow.changed.get(name)
                if not isinstance(made, cst.Assign):
                    break
                right = made.value
            case cst.Call(func=cst.Attribute(value=inner), args=[]):
                right = inner
            case _:
                break
    return right


def augment(flow: Flow, node: cst.AugAssign) -> None:
    """Walk `target += value`."""
    added = flow.evaluate(node.value)
    old = flow.evaluate(node.target)
    value = operate(flow, node.operator, old, added)
    if isinstance(node.operator, cst.AddAssign) and "list" in (old.kind, added.kind):
        note_collected(flow, node, node.target, old, added.contents, node.value)
        value = replace(value, kind="list", element=_sunk(value.contents, node))
    else:
        value = note_sum(flow, node, node.target, old, value, added.contents, node.value)
    assign(flow, node.target, value, node)


def note_sum(
    flow: Flow,
    node: cst.CSTNode,
    target: cst.BaseExpression,
    old: Value,
    value: Value,
    added: Value,
    expression: cst.BaseExpression | None,
    how: How = "sum",
) -> Value:
    """Record a sum that keeps its own past; return it marked as growing here."""
    if value.floats or value.graph == NONE or _is_alias(flow, target):
        return value
    place = flow.path(_base(target) if isinstance(target, cst.Subscript) else target)
    rebinds = isinstance(node, cst.Assign)
    turning = frozenset(id(frame.node) for frame in _outlived(flow, place, rebinds=rebinds))
    loops = turning & old.stale & value.stale if old.carries else frozenset()
    per_call = place in value.entries
    grows = value.carries or value.parameters
    if grows and (loops or (per_call and (added.carries or added.parameters))):
        spelled = flow.code(target)
        flow.grow(GrowingPlace(how, node, spelled, value, added, loops, per_call, expression))
    return _sunk(value, node)


def _outlived(flow: Flow, place: str, *, rebinds: bool) -> Iterator[Frame]:
    """Yield the loops that a place's past goes round, from the innermost.

    Not beyond one that ends its turns with a leaf there, or begins them with another value: what
    `x = x + 1` makes of a loop's own `x` is gone in the next turn, and `x += 1` is not.
    """
    for frame in reversed(flow.frames):
        begun = isinstance(frame.node, cst.For) and place in target_names(frame.node.target)
        if place in frame.anew or (begun and rebinds):
            return
        yield frame


def note_collected(
    flow: Flow,
    node: cst.CSTNode,
    container: cst.BaseExpression,
    base: Value,
    added: Value,
    expression: cst.BaseExpression | None,
    *,
    keyed: bool = False,
) -> None:
    """Record that a container takes in a value, with the loops it outlives."""
    place = flow.path(_base(container))
    held = base.contents
    loops = frozenset(id(f.node) for f in flow.frames) & held.stale if held.carries else frozenset()
    alias = alias_of_self(place, base)
    per_call = place in base.entries or bool(alias)
    filled = place if place in flow.given and place in base.parameters else ""
    if (added.carries or added.parameters) and (loops or per_call or filled):
        spelled = alias or flow.code(container)
        kept = (loops, per_call, expression, keyed, filled, keyed and base.kind == "list")
        flow.grow(GrowingPlace("collect", node, spelled, added, added, *kept))


def _whole(flow: Flow, added: Value, expression: cst.BaseExpression | None) -> Value:
    """Count what a call gave back as a graph when backward was called on a slot of it.

    Not once one of its slots was given another value: `output["loss"] = output["loss"].detach()`.
    """
    if added.graph != UNKNOWN or not isinstance(expression, cst.Name):
        return added
    name = expression.value
    if any(path.startswith((f"{name}.", f"{name}[")) for path in flow.env):
        return added
    whole = flow.analysis.shown_by_slots & added.origins
    return flow.made(replace(added, graph=SURE)) if whole else added


def note_step_output(flow: Flow, node: cst.Return, value: Value) -> None:
    """Record what a training step returns beside its loss, when an epoch's outputs are kept.

    Lightning detaches the loss; since 1.6 the rest is the program's own to detach. fairseq keeps
    the last value, a dict, as it is.
    """
    owner = flow.owner
    if owner is None or not owner.keeps_step_outputs(flow.scope):
        return
    if owner.is_criterion:
        value = value.items[-1][1] if value.kind == "tuple" else EMPTY
    detached = () if owner.is_criterion else ("loss", "hiddens")
    for key, slot in value.items if value.kind == "dict" else ():
        if key in detached or not slot.contents.carries:
            continue
        place, inner = _returned_under(flow, node, key), slot.contents
        chosen = place is None or isinstance(place, cst.IfExp)  # `loss.item() if reduce else loss`
        if owner.is_criterion and (chosen or inner.graph < SURE):
            continue
        target = f"outputs[{key!r}]"
        flow.grow(
            GrowingPlace("collect", place or node, target, inner, inner, frozenset(), True, place)
        )


def _returned_under(flow: Flow, node: cst.Return, key: object) -> cst.BaseExpression | None:
    """Return what stands under a key in the dict that is returned, alone or last."""
    returned = node.value
    if isinstance(returned, cst.Tuple) and returned.elements:
        returned = returned.elements[-1].value
    made = _source(flow, returned) if returned is not None else None
    parts = made.elements if isinstance(made, cst.Dict) else ()
    entries = (part for part in parts if isinstance(part, cst.DictElement))
    return next((each.value for each in entries if syntax.constant(each.key) == key), None)


def extend_container(
    flow: Flow,
    call: cst.Call,
    receiver: cst.BaseExpression,
    base: Value,
    method: str,
    arguments: Arguments,
) -> Value:
    """Apply append, extend, insert, update ... to what is, or may be, a container."""
    match receiver:
        case cst.Call(func=cst.Attribute(value=table, attr=cst.Name(value="setdefault"))):
            receiver, base = table, flow.evaluate(table)
    listlike = method in ("append", "appendleft", "extend")
    if base.kind == "unknown" and not (listlike and flow.path(receiver)):
        return opaque(flow, call, arguments, method, base)
    if not arguments.all or base.kind == "bounded":
        return EMPTY
    expression = call.args[-1].value
    added = _whole(flow, arguments.all[-1].contents, expression)
    keyed = method == "update"  # a set keeps each tensor that it is given: none equals another
    note_collected(flow, call, receiver, base, added, expression, keyed=keyed)
    kind = base.kind if base.kind in ("list", "dict") else "list"
    element = join(base.element, added) if base.element is not None else added
    grown = replace(base, graph=NONE, kind=kind, element=_sunk(element, call))
    flow.assign(receiver, grown, None)
    return EMPTY


def assign(flow: Flow, target: cst.CSTNode, value: Value, node: cst.CSTNode | None) -> None:
    """Put a value in a place: a name, an attribute, a slot, or several by unpacking."""
    if _is_alias(flow, target):
        return
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            _unpack(flow, list(elements), value, node)
        case cst.Subscript():
            _assign_slot(flow, target, value, node)
        case cst.Name() | cst.Attribute():
            if path := flow.path(target):
                _hold(flow, path, value, node)


def _is_alias(flow: Flow, target: cst.CSTNode) -> bool:
    """Whether a place is the bare data of a tensor: a graph written there hangs on that alias.

    `p.data[0] += x`, which the next `p.data` knows nothing of; not an object's `self.data`.
    """
    while isinstance(target, cst.Subscript):
        target = target.value
    match target:
        case cst.Attribute(value=whole, attr=cst.Name("data")) if syntax.dotted(whole) != "self":
            base = flow.evaluate(whole)
            return base.kind in ("tensor", "unknown") and base.slot("data") is None
    return False


def _hold(flow: Flow, path: str, value: Value, node: cst.CSTNode | None) -> None:
    below = [held for held in flow.env if held.startswith((f"{path}.", f"{path}["))]
    for held in below:
        del flow.env[held]
    flow.env[path] = value
    flow.changed[path] = node
    if "." in path or "[" in path:
        for sink in value.contents.sinks:
            flow.uses.setdefault(sink, set()).add("stored")


def _unpack(
    flow: Flow, elements: list[cst.BaseElement], value: Value, node: cst.CSTNode | None
) -> None:
    starred = any(isinstance(element, cst.StarredElement) for element in elements)
    for index, element in enumerate(elements):
        key: object = ... if starred else index
        part = slot_of(flow, value, key, f"*{index}")
        name = flow.path(element.value)
        if value.carries and value.kind == "tensor":
            part = part_of_output(flow, value, name, f"*{index}")
        if part.graph == UNKNOWN and flow.analysis.sibling_of_evident(part, name):
            part = replace(part, graph=LIKELY)
        assign(flow, element.value, flow.made(part), node)


def _assign_slot(flow: Flow, target: cst.Subscript, value: Value, node: cst.CSTNode | None) -> None:
    base = flow.evaluate(target.value)
    key = subscript_key(flow, target)
    if base.kind == "object" and base.ref is not None and node is not None:
        base.ref.feed_slot(flow, node, value)
        return
    if base.kind in ("list", "dict", "tuple"):
        if key is ... and node is not None:
            note_collected(flow, node, target.value, base, value.contents, None, keyed=True)
        flow.assign(target.value, base.with_slot(key, _sunk(value, node)), None)
        return
    if base.kind == "tensor" and value.contents.carries and node is not None:
        whole = flow.made(derive([base, value], flow.born))  # one slice more, one graph for all
        whole = note_sum(flow, node, target, base, whole, value.contents, None, "collect")
        flow.assign(target.value, whole, None)
    elif path := flow.path(target):
        _hold(flow, path, value, node)
        root = flow.path(_base(target))
        if value.sinks and root in flow.env:
            whole = flow.env[root]
            flow.env[root] = replace(whole, sinks=whole.sinks | value.sinks)


def in_place_receiver(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the tensor a chain of in-place methods works on: `x` of `x.mul_(2).add_(y)`."""
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=method))):
            return in_place_receiver(inner) if method.endswith("_") else node
    return node


def _base(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, cst.Subscript):
        node = node.value
    return node


def _is_of(flow: Flow, value: Value, right: cst.BaseExpression, place: cst.BaseExpression) -> bool:
    """Whether a value is computed from what the place held."""
    return flow.path(place) in value.entries or _reads(flow, right, place)


def _reads(flow: Flow, right: cst.BaseExpression, place: cst.BaseExpression) -> bool:
    """Whether the right side reads the place that is assigned."""
    wanted = flow.path(place)
    return bool(wanted) and any(
        flow.path(node) == wanted
        for node in syntax.walk(right)
        if isinstance(node, (cst.Name, cst.Attribute, cst.Call))
    )


def _extends(flow: Flow, right: cst.BaseExpression, place: cst.BaseExpression) -> bool:
    """Whether a list is made of the place's own and more: `kept + [x]`, `[*kept, x]`."""
    wanted, parts = flow.path(place), list[cst.BaseExpression]()
    match right:
        case cst.BinaryOperation(operator=cst.Add(), left=left, right=other):
            parts = [left, other]
        case cst.List(elements=elements):
            parts = [e.value for e in elements if isinstance(e, cst.StarredElement)]
    return bool(wanted) and any(flow.path(part) == wanted for part in parts)


def _averages(right: cst.BaseExpression) -> bool:
    """Whether each element is summed: `[0.9 * s + 0.1 * p for s, p in zip(shadow, new)]`."""
    match right:
        case cst.ListComp(elt=each) | cst.DictComp(value=each):
            pass
        case cst.Call(func=cst.Name("list" | "tuple"), args=[cst.Arg(value=inner)]):
            return isinstance(inner, cst.GeneratorExp) and _is_mixed(inner.elt)
        case _:
            return False
    return _is_mixed(each)


def _is_mixed(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.BinaryOperation, cst.Call)) and _is_sum(node)


def _without(flow: Flow, place: cst.BaseExpression, right: cst.BaseExpression) -> Value:
    """Return what the right side adds to the place's own earlier contents."""
    path = flow.path(place)
    before = flow.env.get(path)
    is_tensor = (
        isinstance(place, (cst.Name, cst.Attribute)) and flow.evaluate(place).kind == "tensor"
    )
    flow.env[path] = DETACHED if is_tensor else EMPTY
    added = flow.evaluate(right)
    flow.env.pop(path)
    if before is not None:
        flow.env[path] = before
    return added.contents


def _is_sum(right: cst.BaseExpression) -> bool:
    """Whether the expression mixes old and new by arithmetic rather than by a model."""
    if isinstance(right, cst.Call):
        return syntax.dotted(right.func).rpartition(".")[2] in MIXING_FUNCTIONS
    return True


def _note_carried(
    flow: Flow, node: cst.CSTNode, target: cst.Tuple, value: Value, right: cst.BaseExpression
) -> None:
    """Record state that goes into a call and comes back: `out, self.h = self.rnn(x, self.h)`."""
    for element in target.elements:
        place = element.value
        if isinstance(place, cst.Attribute) and value.carries and _reads(flow, right, place):
            old = flow.evaluate(place)
            note_sum(flow, node, place, old, value, value, right, "carry")


def _through_call(flow: Flow, target: cst.Tuple, value: Value, right: cst.BaseExpression) -> Value:
    """Follow `out, h = step(x, h)` through a function we do not know.

    A loop that needs retain_graph=True for what comes out shows that it hangs on what went in.
    """
    if value.graph != UNKNOWN or not isinstance(right, cst.Call):
        return value
    places = [element.value for element in target.elements]
    live = [a.value for a in right.args if flow.evaluate(a.value).contents.graph != NONE]
    states = [p for p in places if flow.path(p) and any(_reads(flow, each, p) for each in live)]
    retained = (b.value for b in flow.backwards if retains(b.node))
    shown = {
        flow.analysis.slot_of[o][0]
        for v in retained
        for o in v.origins
        if o in flow.analysis.slot_of
    }
    if not states or not shown & value.origins:
        return value
    stale = frozenset[int]().union(*(flow.evaluate(place).stale for place in states))
    return flow.made(replace(value, graph=SURE, stale=value.stale | stale))


def _sunk(value: Value, node: cst.CSTNode | None) -> Value:
    if node is None or value.graph == NONE:
        return value
    return replace(value, sinks=value.sinks | {id(node)})
