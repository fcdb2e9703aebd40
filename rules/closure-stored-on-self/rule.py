"""self.f = lambda: ... self ...: object and closure hold each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape, syntax
from leakcheck.static.facts.link import Linked
from leakcheck.static.facts.model import AttributeEffect, Call, Expr, FileFacts
from leakcheck.static.facts.runs import is_made_again, is_made_once
from leakcheck.static.flow.prospects import own_attribute
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted, outline_nodes_of, outline_walk, walk


class ClosureStoredOnSelf(Rule):
    """Closures over `self` that `self` keeps, in classes that hold tensors."""

    code = "LK204"
    summary = "an object keeps a closure over itself, so only the garbage collector frees it"
    help = "make it a method, or close over a weakref to the object"

    def concerns(self, outline: ast.Module) -> bool:
        """Only a class with a lambda, a partial or a nested function can matter."""
        if not _may_keep(outline) and not any(
            map(_keeps_made, outline_nodes_of(outline, ast.Assign))
        ):
            return False
        owners: list[ast.ClassDef] = outline_nodes_of(outline, ast.ClassDef)
        direct = {*outline.body, *(each for owner in owners for each in owner.body)}
        nested = not direct.issuperset(outline_nodes_of(outline, ast.FunctionDef))
        if not nested and not outline_nodes_of(outline, ast.Lambda) and not _names_partial(outline):
            return False
        return any(_has_closure(method) for owner in owners for method in owner.body)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what each method assigns to `self`, or appends to a container there."""
        for made in _kept_closures(module.facts.facts):
            yield self.hit(
                made.at,
                f"self keeps what `{made.spelled}` makes, which holds self",
                confidence="low" if _is_of_one(module.facts, made) else "medium",
            )
        outline = syntax.outline(module.source)
        if outline is not None and not _may_keep(outline):
            return
        for assign in module.nodes(cst.Assign):
            targets = [t.target for t in assign.targets]
            if any(
                _own_attribute(target)
                for target in targets
                if not shape.is_put_back(module, target)
            ):
                yield from self._judge(module, assign.value)
        for call in module.calls:
            if _appends_to_own(call):
                yield from self._judge(module, call.args[0].value)

    def _judge(self, module: Module, value: cst.BaseExpression) -> Iterator[Hit]:
        if not _is_closure(module, value) or not hooks.holds_self(module, value, value):
            return
        if shape.method_of(module, value) is None:
            return
        if _is_compiled(module, value) or shape.holds_tensors(module, module.class_of(value)):
            told = "the object holds this closure and the closure the object, with its tensors"
            member = module.member_of(value)
            again = member is not None and is_made_again(member)
            shown = again or _is_compiled(module, value)  # which the collector never frees
            yield self.hit(value, told, confidence="high" if shown else "low")


def _is_of_one(linked: Linked, made: Call) -> bool:
    """Whether a run makes one such object: the cycle of one is little."""
    member = linked.class_around(made)
    return member is not None and is_made_once(member)


def _kept_closures(facts: FileFacts) -> Iterator[Call]:
    """Yield where a method makes a closure over self, for self to keep."""
    makers = set(_closure_makers(facts))
    for call in facts.calls:
        if call.fate == "bound" and call.spelled in makers:
            uses = (use for use in facts.uses if use.function == call.function)
            if any(_holds(use, call) for use in uses if use.holder == "self"):
                yield call


def _closure_makers(facts: FileFacts) -> Iterator[str]:
    """Spell the calls of methods that return a function of theirs which reads self."""
    for index, closure in enumerate(facts.functions):
        maker = facts.function(closure.around)
        if maker is None or "self" not in closure.reads or not maker.owner:
            continue
        weak = any(b.name == "self" and b.function == index for b in facts.bindings)
        if not weak and Expr("name", closure.name) in maker.returns:
            yield f"self.{maker.name}"


def _holds(use: AttributeEffect, call: Call) -> bool:
    """Whether the use gives what the call is bound to, as it is or in a tuple."""
    if use.role not in ("add", "slot", "bind"):
        return False
    if not call.bound or (use.role == "bind" and call.bound == f"self.{use.name}"):
        return use.at.line == call.at.line
    value = use.value
    return value is not None and (value.text == call.bound or call.bound in value.plain)


def _is_compiled(module: Module, value: cst.BaseExpression) -> bool:
    """A nested function under torch.jit or torch.compile: not even the collector sees the cycle."""
    method = shape.method_of(module, value)
    return (
        method is not None
        and isinstance(value, cst.Name)
        and any(
            isinstance(node, cst.FunctionDef)
            and node.name.value == value.value
            and any(module.code(mark.decorator).startswith(_COMPILERS) for mark in node.decorators)
            for node in walk(method.body)
        )
    )


_COMPILERS = ("torch.jit", "torch.compile", "jit.", "pyro.ops.jit")


def _names_partial(outline: ast.Module) -> bool:
    named = (node.id for node in outline_nodes_of(outline, ast.Name))
    attributes = (node.attr for node in outline_nodes_of(outline, ast.Attribute))
    return "partial" in named or "partial" in attributes


def _may_keep(outline: ast.Module) -> bool:
    functions = {node.name for node in outline_nodes_of(outline, ast.FunctionDef)}
    nodes = outline_nodes_of(outline, ast.Assign, ast.Call)
    return any(_keeps(node, functions) for node in nodes)


def _has_closure(method: ast.stmt) -> bool:
    for node in outline_walk(method) if isinstance(method, ast.FunctionDef) else ():
        if isinstance(node, ast.Lambda):
            return True
        if isinstance(node, ast.FunctionDef) and node is not method:
            return True
        if isinstance(node, ast.Name) and node.id == "partial":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "partial":
            return True
    return False


def _keeps(node: ast.AST, functions: set[str]) -> bool:
    """Whether self is given what may be a closure: a lambda, a call, a function's name."""
    match node:
        case ast.Assign(targets=targets, value=value):
            given = any(own_attribute(target) for target in targets)
        case ast.Call(func=ast.Attribute(value=holder, attr="append"), args=[value]):
            given = bool(own_attribute(holder))
        case _:
            return False
    named = isinstance(value, ast.Name) and value.id in functions
    return given and (named or isinstance(value, ast.Lambda) or _is_partial(value))


def _keeps_made(node: ast.Assign) -> bool:
    """Whether a name is given what a method of self made: `wrapper = self._wrap(handler)`."""
    match node:
        case ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self")))):
            return True
    return False


def _is_partial(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "partial"
    return False


def _own_attribute(target: cst.BaseExpression) -> bool:
    if isinstance(target, cst.Subscript):
        target = target.value
    return dotted(target).startswith("self.")


def _appends_to_own(call: cst.Call) -> bool:
    match call:
        case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="append")), args=[_]):
            return dotted(holder).startswith("self.")
    return False


def _is_closure(module: Module, value: cst.BaseExpression) -> bool:
    match value:
        case cst.Lambda() | cst.Name():
            return True
        case cst.Call():
            return module.qualified(value.func) == "functools.partial"
    return False
