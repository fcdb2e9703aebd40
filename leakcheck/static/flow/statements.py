"""What statements do to the flow: branches join, loops go round, blocks switch gradient mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.assignments import augment, note_step_output, rebind
from leakcheck.static.flow.definitions import Definition
from leakcheck.static.flow.gradient import mode_of
from leakcheck.static.flow.records import Frame, GrowingPlace
from leakcheck.static.flow.values import ANYTHING, EMPTY, NONE, Value, join

if TYPE_CHECKING:
    from leakcheck.static.flow.records import Env
    from leakcheck.static.flow.walk import Flow


def execute(flow: Flow, node: cst.CSTNode) -> None:
    """Walk one statement."""
    executor = _EXECUTORS.get(type(node))
    if executor:
        executor(flow, node)


def merge(one: Env, other: Env) -> Env:
    """Join what two branches leave; a place only one of them set may be missing in the other."""
    merged = dict(one)
    for path, value in other.items():
        merged[path] = join(merged[path], value) if path in merged else value
    return merged


def _line(flow: Flow, node: cst.SimpleStatementLine) -> None:
    for small in node.body:
        if flow.dead:
            return
        execute(flow, small)


def _expression(flow: Flow, node: cst.Expr) -> None:
    flow.evaluate(node.value)


def _annotated(flow: Flow, node: cst.AnnAssign) -> None:
    if node.value is not None:
        rebind(flow, node, [node.target], node.value)


def _assign(flow: Flow, node: cst.Assign) -> None:
    rebind(flow, node, [target.target for target in node.targets], node.value)


def _return(flow: Flow, node: cst.Return) -> None:
    value = flow.evaluate(node.value) if node.value is not None else EMPTY
    flow.give_back(value)
    note_step_output(flow, node, value)
    flow.exits.append(flow.env)
    flow.dead = True


def _raise(flow: Flow, node: cst.Raise) -> None:
    flow.dead = True


def _continue(flow: Flow, node: cst.Continue) -> None:
    if flow.frames:
        flow.frames[-1].continues.append(flow.env)
    flow.dead = True


def _break(flow: Flow, node: cst.Break) -> None:
    if flow.frames:
        flow.frames[-1].breaks.append(flow.env)
    flow.dead = True


def _delete(flow: Flow, node: cst.Del) -> None:
    targets = node.target.elements if isinstance(node.target, cst.Tuple) else [node]
    for element in targets:
        target = element.value if isinstance(element, cst.BaseElement) else node.target
        if isinstance(target, cst.Subscript):
            target = target.value  # `del self.rewards[:]`
            flow.assign(target, replace(flow.evaluate(target), element=None, items=()), None)
        elif path := flow.path(target):
            flow.env[path] = EMPTY


def _if(flow: Flow, node: cst.If) -> None:
    flow.evaluate(node.test)
    before, gradient = dict(flow.env), flow.gradient
    before_test = dict(flow.env)
    flow.refine(node.test, True)
    flow.block(node.body)
    after_body, body_dead, body_gradient = flow.env, flow.dead, flow.gradient
    flow.env, flow.dead, flow.gradient = before, False, gradient
    flow.refine(node.test, False)
    match node.orelse:
        case cst.If():
            _if(flow, node.orelse)
        case cst.Else(body=body):
            flow.block(body)
    if flow.dead:
        flow.env, flow.dead, flow.gradient = after_body, body_dead, body_gradient
    elif not body_dead:
        flow.env = _reconcile(before_test, after_body, flow.env)
        flow.gradient = flow.gradient if flow.gradient == body_gradient else None


def _reconcile(before: Env, one: Env, other: Env) -> Env:
    """Join two branches; what only one of them detached has or has no graph by the same test.

    `if train: loss.backward(); loss = loss.detach()` leaves no graph where backward was called.
    """
    merged = merge(one, other)
    for path, value in before.items():
        ends = [env[path] for env in (one, other) if path in env]
        cut = [end for end in ends if end.graph == NONE and end.kind == "tensor"]
        if value.carries and value.kind != "module" and len(cut) == 1:
            merged[path] = Value(born=value.born)
    return merged


def _for(flow: Flow, node: cst.For) -> None:
    passes = len(flow.backwards)
    iterated = flow.evaluate(node.iter)
    if _runs_generator(flow, node.iter):  # its body runs turn by turn
        here = frozenset({id(node)})
        for at in range(passes, len(flow.backwards)):
            flow.backwards[at] = replace(flow.backwards[at], loops=flow.backwards[at].loops | here)
    _loop(flow, node, lambda: flow.bind(node.target, iterated))


def _runs_generator(flow: Flow, node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call):
        return False
    if syntax.dotted(node.func) in ("enumerate", "tqdm", "tqdm.tqdm", "zip"):
        return any(_runs_generator(flow, arg.value) for arg in node.args)
    definition = flow.analysis.definition(node.func, flow)
    return isinstance(definition, Definition) and definition.is_generator


def _while(flow: Flow, node: cst.While) -> None:
    _loop(flow, node, lambda: flow.evaluate(node.test))


def _loop(flow: Flow, node: Any, start: Callable[[], Any]) -> None:
    before, recording = dict(flow.env), flow.recording
    gradient = flow.gradient
    flow.before[id(node)] = before
    frame = Frame(node)
    if recording or not flow.frames:
        flow.recording = False
        _turn(flow, frame, start)
        frame = Frame(node, anew=frozenset(path for path, v in flow.env.items() if v.leaf))
        flow.env = flow.next_turn(before, id(node))
        flow.recording = recording
        flow.gradient = gradient if flow.gradient == gradient else flow.gradient
    _turn(flow, frame, start)
    if recording:
        _note_turn(flow, frame)
    after = flow.next_turn(before, id(node))
    for env in frame.breaks:
        after = merge(after, env)
    flow.env = after
    if node.orelse is not None:
        flow.block(node.orelse.body)


def _turn(flow: Flow, frame: Frame, start: Callable[[], Any]) -> None:
    outer = flow.born
    flow.frames.append(frame)
    flow.born = outer | {id(frame.node)}
    start()
    flow.block(frame.node.body)  # type: ignore[attr-defined]
    ended = flow.dead
    for env in frame.continues:
        flow.env = dict(env) if ended else merge(flow.env, env)
        ended = False
    flow.dead = False
    flow.frames.pop()
    flow.born = outer


def _note_turn(flow: Flow, frame: Frame) -> None:
    """Record what goes round a loop: what a turn computes from what the turn before left."""
    loop = id(frame.node)
    carried: list[GrowingPlace] = []
    seen = {key[0] for key in flow.growths}
    for path, value in flow.env.items():
        node = flow.changed.get(path)
        if node is None or id(node) in seen:
            continue
        if loop in value.stale and loop in value.born and value.carries:
            carried.append(GrowingPlace("carry", node, path, value, value, frozenset({loop})))
    # a loss that is computed anew in every turn only shows what the state carries
    states = [g for g in carried if _read_before_set(flow, frame, g)]
    for growth in states or [g for g in carried if _in_every_turn(flow, frame, g)]:
        flow.grow(growth)


def _in_every_turn(flow: Flow, frame: Frame, growth: GrowingPlace) -> bool:
    """Whether the place is set whatever happens; else the old value is merely still there."""
    for above in flow.module.ancestors(growth.node):
        if above is frame.node:
            return True
        if isinstance(above, (cst.If, cst.Try, cst.TryStar, cst.Match, cst.For, cst.While)):
            return False
    return False


def _read_before_set(flow: Flow, frame: Frame, growth: GrowingPlace) -> bool:
    """Whether a turn of the loop reads the place before it sets it."""
    around = list(flow.module.ancestors(growth.node))
    for node in syntax.walk(frame.node):
        sets = any(_binds(flow, target, growth.target) for target, _ in syntax.bindings(node))
        if node is growth.node or sets:
            inner = syntax.walk(getattr(node, "value", node))
            if any(_is_place(flow, part, growth.target) for part in inner):
                return True
            block = flow.module.parent(flow.module.parent(node) or node)
            if node is growth.node or any(block is above for above in around):
                return False
        elif _is_place(flow, node, growth.target) and not _is_bound(flow, node):
            return True
    return False


def _binds(flow: Flow, target: cst.CSTNode, path: str) -> bool:
    return any(
        _is_place(flow, part, path) and _is_bound(flow, part) for part in syntax.walk(target)
    )


def _is_bound(flow: Flow, node: cst.CSTNode) -> bool:
    """Whether a name stands where it is given a value, alone or among others."""
    above = flow.module.parent(node)
    while isinstance(above, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
        node, above = above, flow.module.parent(above)
    match above:
        case cst.AssignTarget():
            return True
        case cst.For(target=target) | cst.AnnAssign(target=target):
            return target is node
    return False


def _is_place(flow: Flow, node: cst.CSTNode, path: str) -> bool:
    """Whether a node names a place; the name of an attribute or of an argument does not."""
    if not isinstance(node, (cst.Name, cst.Attribute)) or flow.path(node) != path:
        return False
    match flow.module.parent(node):
        case cst.Attribute(attr=name) | cst.Arg(keyword=name):
            return name is not node
    return True


def _with(flow: Flow, node: cst.With) -> None:
    gradient = flow.gradient
    for item in node.items:
        mode, sets = mode_of(item.item, flow.module)
        if sets:
            flow.gradient = mode
            continue
        value = flow.evaluate(item.item)
        if item.asname is not None:
            flow.assign(item.asname.name, _managed(flow, item.item, value), None)
    flow.block(node.body)
    flow.gradient = gradient


def _managed(flow: Flow, item: cst.BaseExpression, value: Any) -> Any:
    match item:
        case cst.Call(func=function, args=[cst.Arg(value=first), *_]):
            if syntax.dotted(function).endswith("scale_loss"):
                return flow.evaluate(first)
    return value if value.kind == "object" else ANYTHING


def _try(flow: Flow, node: cst.Try | cst.TryStar) -> None:
    before = dict(flow.env)
    flow.block(node.body)
    if not flow.dead and node.orelse is not None:
        flow.block(node.orelse.body)
    outcomes = [] if flow.dead else [flow.env]
    start = merge(before, flow.env)
    for handler in node.handlers:
        flow.env, flow.dead = dict(start), False
        flow.block(handler.body)
        if not flow.dead:
            outcomes.append(flow.env)
    flow.dead = not outcomes
    flow.env = outcomes[0] if outcomes else start
    for env in outcomes[1:]:
        flow.env = merge(flow.env, env)
    if node.finalbody is not None:
        ended, flow.dead = flow.dead, False
        flow.block(node.finalbody.body)
        flow.dead = flow.dead or ended


def _match(flow: Flow, node: cst.Match) -> None:
    flow.evaluate(node.subject)
    before, outcomes = dict(flow.env), [dict(flow.env)]
    for case in node.cases:
        flow.env, flow.dead = dict(before), False
        flow.block(case.body)
        if not flow.dead:
            outcomes.append(flow.env)
    flow.env, flow.dead = outcomes[0], False
    for env in outcomes[1:]:
        flow.env = merge(flow.env, env)


def _class(flow: Flow, node: cst.ClassDef) -> None:
    flow.env.pop(node.name.value, None)


def _function(flow: Flow, node: cst.FunctionDef) -> None:
    if node.decorators:
        flow.env.pop(node.name.value, None)
    else:
        definition = Definition(flow.analysis, node)
        flow.env[node.name.value] = Value(NONE, "function", function=definition)


def _augment(flow: Flow, node: cst.AugAssign) -> None:
    augment(flow, node)


def _assert(flow: Flow, node: cst.Assert) -> None:
    flow.evaluate(node.test)


_EXECUTORS: dict[type, Callable[[Flow, Any], None]] = {
    cst.SimpleStatementLine: _line,
    cst.Expr: _expression,
    cst.Assign: _assign,
    cst.AnnAssign: _annotated,
    cst.AugAssign: _augment,
    cst.Return: _return,
    cst.Raise: _raise,
    cst.Continue: _continue,
    cst.Break: _break,
    cst.Del: _delete,
    cst.Assert: _assert,
    cst.If: _if,
    cst.For: _for,
    cst.While: _while,
    cst.With: _with,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.Match: _match,
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
}
