"""A copy of a model that follows another one, updated in place with gradients on.

`for s, p in zip(copy.parameters(), model.parameters()): s.mul_(d).add_(p)`: the parameters of the
copy cannot require grad, or torch refuses; those of the model do, so the copy's graph grows by a
step of the average with every update.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.flow.assignments import in_place_receiver
from leakcheck.static.flow.gradient import runs_without_gradient
from leakcheck.static.flow.graphs import graph_leaks
from leakcheck.static.torch_api import words

if TYPE_CHECKING:
    from leakcheck.static.module import Module

_LISTING = frozenset({"parameters", "named_parameters"})


def updates(module: Module) -> Iterator[cst.Call]:
    """Yield the in-place updates of one model's parameters by another's, in training code."""
    for loop in module.nodes(cst.For):
        names = _followed(loop)
        if names is None:
            continue
        calls = (node for node in syntax.walk(loop.body) if isinstance(node, cst.Call))
        for call in calls:
            grows = _adds(module, call, *names) and _trains(module, loop)
            if grows and not runs_without_gradient(module, call):
                yield call


def _followed(loop: cst.For) -> tuple[str, str] | None:
    """Name what a loop over `zip(copy.parameters(), model.parameters())` calls the two."""
    match loop:
        case cst.For(
            iter=cst.Call(func=cst.Name(value="zip"), args=[copy, model]),
            target=cst.Tuple(elements=[first, second]),
        ) if _is_listing(copy) and _is_listing(model) and not copy.value.deep_equals(model.value):
            one, other = _last(first.value), _last(second.value)
            return (one, other) if one and other else None
    return None


def _is_listing(arg: cst.Arg) -> bool:
    match arg.value:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=[]):
            return name in _LISTING
    return False


def _last(target: cst.BaseExpression) -> str:
    if isinstance(target, cst.Tuple):
        return _last(target.elements[-1].value)
    return target.value if isinstance(target, cst.Name) else ""


def _adds(module: Module, call: cst.Call, copy: str, model: str) -> bool:
    """Whether a call adds the model's parameter, with its graph, to the copy's own past."""
    if not isinstance(call.func, cst.Attribute) or not call.args:
        return False
    receiver, method = in_place_receiver(call), call.func.attr.value
    if not isinstance(receiver, cst.Name) or receiver.value != copy:
        return False
    if method == "copy_":  # forgets what was there, unless what it copies is made of that
        return reads(module, call, copy) and reads(module, call, model)
    return method in words("methods", "in_place_sums") and reads(module, call, model)


def reads(module: Module, call: cst.Call, name: str) -> bool:
    """Tell whether an argument of a call reads a tensor with its graph."""
    names = (n for arg in call.args for n in syntax.walk(arg.value) if isinstance(n, cst.Name))
    return any(node.value == name and not _is_cut(module, node, call) for node in names)


def _is_cut(module: Module, node: cst.CSTNode, within: cst.Call) -> bool:
    cuts = words("attributes", "cut") | words("methods", "cut")
    for above in module.ancestors(node):
        if above is within:
            return False
        if isinstance(above, cst.Attribute) and above.attr.value in cuts:
            return True
    return False


def _trains(module: Module, loop: cst.For) -> bool:
    """Whether the function of the loop, or one that calls it, calls backward as well."""
    scope = module.function_of(loop) or module.tree
    analysis = analysis_of(module)
    if analysis.calls_backward(scope):
        return True
    graph_leaks(module)  # walks every scope, and so learns who calls whom
    if isinstance(scope, cst.Module):
        return False
    callers = analysis.callers.get(id(scope), [])
    return any(analysis.calls_backward(caller) for caller in callers)
