"""module.forward = partial(..., module.forward): the module holds a bound method of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes


class WrappedForwardCycle(Rule):
    """Methods replaced by partials and lambdas that hold the same object's bound method."""

    code = "LK205"
    proof = (
        "static only: the collector frees the cycle in the end, so a run sees garbage, not growth"
    )
    summary = "a module's method is replaced by a wrapper that holds the module"
    help = "wrap type(module).forward and pass a weakref to the module"
    words = ("partial", "lambda")
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a call or a lambda that is put where a name in it comes from can matter."""
        for node in outline_nodes(outline):
            match node:
                case ast.Assign(targets=targets, value=(ast.Call() | ast.Lambda()) as value):
                    written = {n.attr for n in targets if isinstance(n, ast.Attribute)}
                    read = (n for n in ast.walk(value) if isinstance(n, ast.Attribute))
                    if written and any(each.attr in written for each in read):
                        return True
        return False

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each assignment to an attribute of a name."""
        for assign in module.nodes(cst.Assign):
            for target in assign.targets:
                if isinstance(target.target, cst.Attribute) and _wraps(
                    module, target.target, assign.value
                ):
                    yield self.hit(
                        assign, "the module keeps a wrapper that keeps the module: a cycle"
                    )


def _wraps(module: Module, target: cst.Attribute, value: cst.BaseExpression) -> bool:
    method = dotted(target)
    if method.count(".") != 1 or not _is_method(module, target):
        return False
    match value:
        case cst.Call() if module.qualified(value.func) == "functools.partial":
            return any(shape.mentions(arg.value, method) for arg in value.args)
        case cst.Lambda():
            return shape.mentions(value.body, method)
    return False


def _is_method(module: Module, target: cst.Attribute) -> bool:
    """A method of every module, or of the class around; other attributes may hold plain data."""
    owner = module.class_of(target)
    if dotted(target.value) == "self" and owner is not None:
        return target.attr.value in module.methods(owner)
    return target.attr.value in shape.api("module-methods")
