"""super().__init__(self.method): the base class will most likely store it, which closes a cycle."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from leakcheck.static.facts.nodes import dotted
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline_nodes


class MethodGivenToBase(Rule):
    """Bound methods and closures over `self` passed to the base class's constructor."""

    code = "LK209"
    summary = "a bound method is given to the base class, whose constructor may store it on self"
    help = "override a method of the base class instead, or pass a weakref.WeakMethod"
    severity = "info"
    words = ("super",)
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a base constructor that is given a method, or a function that is made, matters."""
        nodes = outline_nodes(outline)
        given = [value for node in nodes for value in _given_to_base(node)]
        functions = _functions(nodes) if given else set()
        return any(_may_hold_self(value, functions) for value in given)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the arguments of each call of a base constructor."""
        if "torch" not in module.source:
            return
        for call in module.calls:
            match call.func:
                case cst.Attribute(
                    value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")
                ):
                    if any(hooks.holds_self(module, arg.value, call) for arg in call.args):
                        yield self.hit(
                            call,
                            "if the base class stores it, the object holds itself",
                            confidence="medium",
                        )


def _given_to_base(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("super")), attr="__init__")):
            return [*node.args, *(keyword.value for keyword in node.keywords)]
    return []


def _functions(nodes: Sequence[ast.AST]) -> set[str]:
    """Name what a file defines by `def`, and, if it makes any lambda or partial, all it assigns."""
    defined = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in nodes if isinstance(node, defined)}
    if any(isinstance(node, ast.Lambda) or _is_partial(node) for node in nodes):
        names = (node for node in nodes if isinstance(node, ast.Name))
        found |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return found


def _may_hold_self(value: ast.expr, functions: set[str]) -> bool:
    match value:
        case ast.Name(name):
            return name == "self" or name in functions
        case ast.Attribute(value=ast.Name("self"), attr=name):
            return name in functions
        case ast.Call():
            return dotted(value.func).startswith("self.") or _is_partial(value)
    return isinstance(value, (ast.Lambda, ast.Starred))


def _is_partial(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "partial"
