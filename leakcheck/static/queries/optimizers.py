"""An optimizer whose step calculates with parameters while autograd records.

`grad.add_(p, alpha=weight_decay)`: the parameter requires grad, so the gradient it is added to has
a graph from then on, and each buffer that is updated with it keeps those of all earlier steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.flow.gradient import runs_without_gradient
from leakcheck.static.queries.copies import reads
from leakcheck.static.torch_api import words

if TYPE_CHECKING:
    from leakcheck.static.module import Module


def updates(module: Module) -> Iterator[cst.Call]:
    """Yield the in-place sums of an optimizer's step that a parameter goes into with its graph."""
    for function in module.functions:
        if function.name.value != "step" or not _is_of_optimizer(module, function):
            continue
        if any("grad" in module.code(each.decorator) for each in function.decorators):
            continue  # no_grad, or torch's own _use_grad_for_differentiable
        for loop in (node for node in syntax.walk(function.body) if isinstance(node, cst.For)):
            if isinstance(loop.target, cst.Name) and _lists_parameters(loop.iter):
                yield from _sums(module, loop, loop.target.value)


def _is_of_optimizer(module: Module, function: cst.FunctionDef) -> bool:
    owner = analysis_of(module).method_owner(function)
    bases = module.bases(owner) if owner is not None else ()
    return any(base.rpartition(".")[2] == "Optimizer" or "torch.optim." in base for base in bases)


def _lists_parameters(node: cst.BaseExpression) -> bool:
    """`group["params"]`."""
    match node:
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]
        ):
            return key.raw_value == "params"
    return False


def _sums(module: Module, loop: cst.For, parameter: str) -> Iterator[cst.Call]:
    for call in syntax.walk(loop.body):
        match call:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))) if method in words(
                "methods", "in_place_sums"
            ):
                if reads(module, call, parameter) and not runs_without_gradient(module, call):
                    yield call
