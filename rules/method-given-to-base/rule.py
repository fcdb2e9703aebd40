"""super().__init__(self.method): the base class will most likely store it, which closes a cycle."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.link import Member
from leakcheck.static.facts.model import FileFacts
from leakcheck.static.facts.nodes import dotted
from leakcheck.static.facts.runs import is_made_again, is_made_once
from leakcheck.static.facts.weight import holds_tensors, works_on_device
from leakcheck.static.module import Module
from leakcheck.static.queries import hooks
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline_nodes_of, outline_walk


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
        calls = outline_nodes_of(outline, ast.Call)
        given = [value for call in calls for value in _given_to_base(call)]
        functions = _functions(outline) if given else set()
        return any(_may_hold_self(value, functions) for value in given)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the arguments of each call of a base constructor."""
        if "torch" not in module.source:
            return
        told: set[tuple[str, str]] = set()
        for call in filter(_calls_base, module.calls):
            given = [arg for arg in call.args if hooks.holds_self(module, arg.value, call)]
            member = module.member_of(call) if given else None
            base = _constructor(member) if member is not None else None
            storing = (base.file.path, base.facts.name) if base is not None else None
            stored = any(_may_store(module, member, base, call, arg) for arg in given)
            if storing in told or not stored:
                continue
            shown = member is None or _matters(member)
            if storing is not None and shown:
                told.add(storing)  # one constructor that stores it, whoever gives it
            yield self.hit(
                call,
                "if the base class stores it, the object holds itself",
                confidence="medium" if shown else "low",
            )


def _calls_base(call: cst.Call) -> bool:
    match call.func:
        case cst.Attribute(
            value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")
        ):
            return True
    return False


def _matters(member: Member) -> bool:
    """Whether such an object is shown to hold what weighs, and to be none that a run has one of."""
    heavy = holds_tensors(member) or works_on_device(member)
    return heavy and (is_made_again(member) or not is_made_once(member))


def _constructor(member: Member) -> Member | None:
    """Return the nearest base of the project that has a constructor."""
    bases = member.file.lineage(member)[1:]
    return next((each for each in bases if "__init__" in each.facts.methods), None)


def _may_store(
    module: Module, member: Member | None, base: Member | None, call: cst.Call, arg: cst.Arg
) -> bool:
    """Whether the base may keep an argument: not where its constructor is known only to call it."""
    if base is None:
        foreign = member.file.foreign_bases(member) if member is not None else set()
        return foreign.isdisjoint(shape.api("loaders"))  # of which one lives as long as the run
    facts, index = base.file.facts, base.facts.methods["__init__"]
    parameters = facts.functions[index].parameters
    place = 1 + [*call.args].index(arg)
    names = [arg.keyword.value] if arg.keyword is not None else parameters[place : place + 1]
    given = [name for name in names if name in parameters]
    anew = _bound_behind(module, member, call) if member is not None else set()
    return not given or any(_is_handed_on(facts, index, name, anew) for name in given)


def _bound_behind(module: Module, member: Member, call: cst.Call) -> set[str]:
    """Name what the constructor itself binds on self, behind the base's."""
    own, line = member.facts.methods.get("__init__"), module.location(call).line
    binds = (use for use in member.binds() if use.function == own and not use.guarded)
    return {use.name for use in binds if use.at.line > line}


def _is_handed_on(facts: FileFacts, function: int, parameter: str, anew: set[str]) -> bool:
    """Whether a function binds, keeps or gives away a parameter: more than to call it.

    `anew`: attributes that get another value after that.
    """
    uses = (use for use in facts.uses if use.function == function)
    values = [use.value for use in uses if use.role != "bind" or use.name not in anew]
    values += [each.value for each in facts.bindings if each.function == function]
    values += [each.value for call in facts.calls_in(function) for each in call.arguments]
    return any(
        parameter in (value.text, *value.names, *value.plain)
        for value in values
        if value is not None and value.kind != "call"
    )


def _given_to_base(node: ast.Call) -> list[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("super")), attr="__init__")):
            return [*node.args, *(keyword.value for keyword in node.keywords)]
    return []


def _functions(outline: ast.Module) -> set[str]:
    """Name what a file defines by `def`, or assigns a lambda or a partial to."""
    found = {node.name for node in outline_nodes_of(outline, ast.FunctionDef)}
    found |= {node.name for node in outline_nodes_of(outline, ast.AsyncFunctionDef)}
    assigns: list[ast.Assign | ast.AnnAssign] = outline_nodes_of(outline, ast.Assign, ast.AnnAssign)
    for node in assigns:
        if node.value is not None and any(map(_is_made, outline_walk(node.value))):
            names = (each for each in outline_walk(node) if isinstance(each, ast.Name))
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


def _is_made(node: ast.AST) -> bool:
    return isinstance(node, ast.Lambda) or _is_partial(node)


def _is_partial(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "partial"
    return False
