"""Acquired here: released, or handed on to somebody who might release it?

Silence when unsure: whatever is returned, stored or passed to code that can't be seen is taken to
be looked after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.syntax import children, dotted, parameters, walk

ResourceFate = Literal["released", "handed on", "left open"]
_DEEPEST_CALL = 3


def bound_name(module: Module, call: cst.Call, position: int = 0) -> str:
    """Return the local name that a call's result is assigned to; empty for anything else.

    Of `fig, ax = subplots()` the name at `position` is meant.
    """
    above = module.parent(call)
    if not isinstance(above, cst.Assign) or len(above.targets) != 1:
        return ""
    target: cst.BaseExpression = above.targets[0].target
    if isinstance(target, cst.Tuple) and position < len(target.elements):
        target = target.elements[position].value
    return target.value if isinstance(target, cst.Name) else ""


def holds(value: cst.CSTNode, name: str) -> bool:
    """Tell whether an expression is the name, or a tuple, list or dict that it is in."""
    if isinstance(value, cst.Name):
        return value.value == name
    displays = (cst.Tuple, cst.List, cst.Dict, cst.Element, cst.DictElement)
    return isinstance(value, displays) and any(holds(child, name) for child in children(value))


def fate(
    module: Module,
    function: cst.FunctionDef,
    name: str,
    closers: Collection[str],
    harmless: Collection[str] = (),
    depth: int = 0,
) -> ResourceFate:
    """Say what becomes of the resource that a local name holds.

    `closers` and `harmless` are qualified functions that end a resource or merely use it; a name
    that ends in a dot covers a whole package.
    """
    verdict: ResourceFate = "left open"
    for node in _until_renamed(module, function, name, harmless):
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        use = _use(module, function, node, closers, harmless, depth)
        if use == "released":
            return use
        if use == "handed on":
            verdict = use
    return verdict


def _until_renamed(
    module: Module, function: cst.FunctionDef, name: str, harmless: Collection[str]
) -> Iterator[cst.CSTNode]:
    """Yield a function's nodes up to where the name stands for what was made of the resource.

    `fig = wandb.Image(fig)` at the function's own level: what is logged then is no figure.
    """
    for statement in function.body.body:
        yield from walk(statement)
        for node in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            match node:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=target))],
                    value=cst.Call(args=[cst.Arg(value=cst.Name(value=given))]) as call,
                ) if target == given == name and _only_uses(module, call, harmless):
                    return


def _use(
    module: Module,
    function: cst.FunctionDef,
    node: cst.Name,
    closers: Collection[str],
    harmless: Collection[str],
    depth: int,
) -> ResourceFate:
    above = module.parent(node)
    match above:
        case cst.Attribute() if above.value is node:
            return "released" if above.attr.value in shape.api("closing-methods") else "left open"
        case cst.Attribute() | cst.AssignTarget() | cst.Param() | cst.NameItem():
            return "left open"
        case cst.WithItem():
            return "released"
        case cst.Arg() if above.value is node:
            return _passed(module, function, above, closers, harmless, depth)
        case cst.Element() if isinstance(
            module.parent(module.parent(above) or above), cst.AssignTarget
        ):
            return "left open"  # the other names of the tuple that binds it
        case cst.Comparison() | cst.UnaryOperation() | cst.BooleanOperation() | cst.If():
            return "left open"
        case cst.FormattedStringExpression() | cst.Expr() | cst.Subscript() | cst.Assert():
            return "left open"
        case cst.For() | cst.CompFor() if above.iter is node:
            return "left open"
    return "handed on"


def _passed(
    module: Module,
    function: cst.FunctionDef,
    arg: cst.Arg,
    closers: Collection[str],
    harmless: Collection[str],
    depth: int,
) -> ResourceFate:
    call = module.parent(arg)
    if not isinstance(call, cst.Call):
        return "handed on"
    if module.qualified(call.func) in closers:
        return "released"
    if _only_uses(module, call, harmless):
        return "left open"
    callee = _own_function(module, call)
    if callee is None or depth >= _DEEPEST_CALL:
        return "handed on"
    parameter = _parameter(call, arg, callee)
    if not parameter:
        return "handed on"
    return fate(module, callee, parameter, closers, harmless, depth + 1)


def _only_uses(module: Module, call: cst.Call, harmless: Collection[str]) -> bool:
    spelled = module.qualified(call.func) or dotted(call.func)
    return spelled in harmless or spelled.partition(".")[0] + "." in harmless


def _own_function(module: Module, call: cst.Call) -> cst.FunctionDef | None:
    if module.qualified(call.func):
        return None
    match call.func:
        case cst.Name(value=name):
            return next((f for f in module.functions if f.name.value == name), None)
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
            owner = module.class_of(call)
            return module.methods(owner).get(name) if owner is not None else None
    return None


def _parameter(call: cst.Call, arg: cst.Arg, callee: cst.FunctionDef) -> str:
    if arg.star:
        return ""
    if arg.keyword is not None:
        return arg.keyword.value
    names = [p.name.value for p in parameters(callee)]
    if names and names[0] in ("self", "cls"):
        names = names[1:]
    position = next(i for i, other in enumerate(call.args) if other is arg)
    return names[position] if position < len(names) else ""


def removed_in_finally(module: Module, node: cst.CSTNode) -> bool:
    """Tell whether a node stands in a `finally` block or in what runs on leaving a `with`."""
    for above in module.ancestors(node):
        if isinstance(above, cst.Finally):
            return True
        if isinstance(above, cst.FunctionDef):
            return above.name.value in ("__exit__", "__del__", "__aexit__")
    return False
