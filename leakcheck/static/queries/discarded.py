"""Forward passes that a backward goes back through for gradients nobody uses.

`fake = G(noise); loss = D(fake).mean(); loss.backward(); D_optimizer.step(); G.zero_grad()`: the
graph of `G(noise)` is kept, and gone through, for gradients that are zeroed before any step.

Statements are read in the order in which they stand, and what a loop's last line is followed by is
its first. What an unknown call gives is taken to have a graph of its own, and not to hand one on.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from leakcheck.static.facts import passes
from leakcheck.static.facts.nodes import dotted, span
from leakcheck.static.syntax import below, outline, outline_nodes, outline_walk
from leakcheck.static.torch_api import is_loss_module, torch_function, words

if TYPE_CHECKING:
    from leakcheck.static.facts.model import Span
    from leakcheck.static.module import Module

Statements = ast.FunctionDef | ast.AsyncFunctionDef | ast.For | ast.While


@dataclass(frozen=True)
class ModelCall:
    """One call of a model that an optimizer has, and where its result goes into another model."""

    model: str
    call: ast.Call
    fed: bool  # what it is given has a graph of its own
    into: ast.Call | None = None


_UNKNOWN = ModelCall("", ast.Call(ast.Name("unknown"), [], []), fed=True)
_ModelCalls = frozenset[ModelCall]
_NONE: _ModelCalls = frozenset()
_UNCERTAIN: _ModelCalls = frozenset({_UNKNOWN})


@dataclass(frozen=True)
class _Event:
    kind: Literal["backward", "step", "zero"]
    models: frozenset[str] = frozenset()
    passes: _ModelCalls = frozenset()


@dataclass
class _Course:
    """What the statements of a loop, or function, do in their order."""

    events: list[_Event] = field(default_factory=list)
    kept: set[ModelCall] = field(default_factory=set)  # returned, stored, or handed on
    values: dict[str, _ModelCalls] = field(default_factory=dict)


def discarded(module: Module) -> Iterator[tuple[str, Span]]:
    """Yield the models whose gradients are zeroed unused, and where their graph could be cut."""
    tree = outline(module.source)
    if tree is None:
        return
    nodes = outline_nodes(tree)
    optimized = _optimized(nodes)
    if len(set().union(*optimized.values())) < 2:
        return
    told: set[ast.Call] = set()
    for scope in _scopes(tree):
        if any(
            "requires_grad" in getattr(n, "attr", getattr(n, "id", "")) for n in outline_walk(scope)
        ):
            continue  # parameters are frozen, or an input is differentiated
        course = _StatementReader(module, nodes, optimized).read(scope)
        for found in _unused(course):
            if found.call not in told:
                told.add(found.call)
                yield found.model, span(found.into or found.call)


def _optimized(nodes: tuple[ast.AST, ...]) -> dict[str, frozenset[str]]:
    """Return the models of each optimizer, by the names that they are spelled with."""
    found: dict[str, frozenset[str]] = defaultdict(frozenset)
    for node in nodes:
        match node:
            case ast.Assign(targets=[target], value=ast.Call() as call) if dotted(target):
                given = (*call.args, *(keyword.value for keyword in call.keywords))
                inner = (each for value in given for each in outline_walk(value))
                found[dotted(target)] |= frozenset(filter(None, map(_asked_for_parameters, inner)))
    return {name: models for name, models in found.items() if models}


def _asked_for_parameters(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=model, attr="parameters" | "named_parameters")):
            return dotted(model).removesuffix(".module")
    return ""


def _scopes(tree: ast.Module) -> list[Statements]:
    """Return the outermost loops of each function and of the module, else the function itself."""
    found: list[Statements] = []
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, looped = todo.pop()
        for child in below(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                loops = any(_holds_backward(each) for each in _loops(child))
                found += [] if loops else [child]
                todo.append((child, False))
            elif isinstance(child, (ast.For, ast.While)):
                found += [] if looped else [child]
                todo.append((child, True))
            else:
                todo.append((child, looped))
    return [scope for scope in found if _holds_backward(scope)]


def _loops(node: ast.AST) -> Iterator[ast.AST]:
    return (each for each in outline_walk(node) if isinstance(each, (ast.For, ast.While)))


def _holds_backward(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "backward" for n in outline_walk(node))


def _unused(course: _Course) -> Iterator[ModelCall]:
    """Yield the passes whose gradients are zeroed before a step, and that nothing else needs."""
    events = course.events
    for at, event in enumerate(events):
        if event.kind != "backward":
            continue
        behind = [*events[at + 1 :], *events[:at]]
        later = {(p.call) for e in events if e is not event for p in e.passes}
        later |= {each.call for each in course.kept}
        stepped = any(_next(behind, each.model) == "step" for each in event.passes)
        entered = sorted((each for each in event.passes if each.model), key=_in_order)
        for each in entered if stepped else ():
            if not each.fed and each.call not in later and _next(behind, each.model) == "zero":
                yield each


def _in_order(model_call: ModelCall) -> tuple[bool, Span, Span]:
    """Those that another model takes in come first, as they stand in the source."""
    into, call = model_call.into, span(model_call.call)
    return into is None, span(into) if into is not None else call, call


def _next(events: list[_Event], model: str) -> str:
    """Say what is done first with a model's gradients: "step", "zero" or nothing."""
    return next((e.kind for e in events if e.kind != "backward" and model in e.models), "")


class _StatementReader:
    """Reads statements in their order, and follows which models' graphs are in which values."""

    def __init__(
        self, module: Module, nodes: tuple[ast.AST, ...], optimized: dict[str, frozenset[str]]
    ) -> None:
        self._imports = module.facts.facts.imports
        self._optimized = optimized
        self._models = frozenset().union(*optimized.values())
        self._losses = {name for node in nodes for name in self._loss_bound(node)}
        self._apart = {name for node in nodes for name in self._apart_from_models(node)}
        self._course = _Course()
        self._off = False

    def read(self, scope: Statements) -> _Course:
        """Read a loop or a function, from its first statement to its last."""
        if isinstance(scope, (ast.For, ast.AsyncFor)):
            self._bind(scope.target, _NONE)
        self._block(scope.body)
        return self._course

    def _loss_bound(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Assign(targets=[target], value=ast.Call() as call):
                if is_loss_module(self._qualified(_first(call))):
                    yield dotted(target)

    def _apart_from_models(self, node: ast.AST) -> Iterator[str]:
        """Name a function of this file that reads no model, `make_noise(batch_size)`."""
        if isinstance(node, ast.FunctionDef):
            read = {
                dotted(n) for n in outline_walk(node) if isinstance(n, (ast.Name, ast.Attribute))
            }
            if not read & (self._models | {"self"}):
                yield node.name

    def _qualified(self, node: ast.expr) -> str:
        spelled = dotted(node)
        head, dot, tail = spelled.partition(".")
        return f"{self._imports.get(head, head)}{dot}{tail}"

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            outer = self._off
            if isinstance(statement, (ast.With, ast.AsyncWith)):
                managers = (ast.unparse(item.context_expr) for item in statement.items)
                self._off |= any(passes.is_switch(manager) for manager in managers)
            if isinstance(statement, (ast.For, ast.AsyncFor)):
                self._bind(statement.target, _NONE)
            inner = [getattr(statement, part, None) for part in _PARTS]
            for block in inner:
                if isinstance(block, list):
                    self._block(block)
            if not any(inner):
                self._statement(statement)
            self._off = outer

    def _statement(self, statement: ast.stmt) -> None:
        for call in (node for node in outline_walk(statement) if isinstance(node, ast.Call)):
            self._event(call)
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, self._value(value))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, self._value(value))
            case ast.AugAssign(target=target, value=value):
                self._bind(target, self._value(target) | self._value(value))
            case ast.Return(value=ast.expr() as value):
                self._course.kept |= self._value(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr="detach_"))):
                self._bind(held, frozenset())

    def _bind(self, target: ast.expr, value: _ModelCalls) -> None:
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._bind(part, value)
            case ast.Name(id=name):
                self._course.values[name] = value
            case _:
                self._course.kept |= value

    def _event(self, call: ast.Call) -> None:
        """Take note of `loss.backward()`, `optimizer.step()`, `model.zero_grad()`."""
        match call.func:
            case ast.Attribute(value=loss, attr="backward" | "manual_backward"):
                found = self._all([loss, *call.args])
                if isinstance(loss, ast.Call):  # scaler.scale(loss).backward()
                    found |= self._all(loss.args)
                if any(keyword.arg == "retain_graph" for keyword in call.keywords):
                    self._course.kept |= found
                self._course.events.append(_Event("backward", passes=found))
            case ast.Attribute(value=held, attr="step" | "zero_grad" as attr):
                names = {dotted(held), *map(dotted, call.args)}
                models = {name.removesuffix(".module") for name in names} & self._models
                models = models.union(*(self._optimized.get(name, ()) for name in names))
                kind: Literal["step", "zero"] = "step" if attr == "step" else "zero"
                self._course.events.append(_Event(kind, frozenset(models)))

    def _value(self, node: ast.expr) -> _ModelCalls:
        """Return the passes whose graphs are in a value."""
        match node:
            case ast.Name(id=name):
                return self._course.values.get(name, _NONE)
            case ast.Attribute(value=inner, attr=attr):
                return _NONE if attr in words("attributes", "cut") else self._value(inner)
            case ast.Call():
                return _NONE if self._off else self._called(node)
            case ast.IfExp(body=one, orelse=other):
                return self._value(one) & self._value(other)
            case ast.Compare() | ast.Lambda() | ast.Constant() | ast.JoinedStr():
                return _NONE
            case ast.BinOp() | ast.UnaryOp() | ast.Tuple() | ast.List() | ast.Starred():
                return self._all(n for n in below(node) if isinstance(n, ast.expr))
            case ast.Dict(values=values):
                return self._all(values)
            case ast.Subscript(value=inner):
                return self._value(inner)
        return _UNCERTAIN

    def _all(self, nodes: Iterable[ast.expr]) -> _ModelCalls:
        return _NONE.union(*map(self._value, nodes))

    def _called(self, call: ast.Call) -> _ModelCalls:
        inside = self._all([*call.args, *(keyword.value for keyword in call.keywords)])
        model = self._model(call.func)
        if model:
            entered = {p if p.into is not None else replace(p, into=call) for p in inside}
            return frozenset(entered) | {ModelCall(model, call, fed=bool(inside))}
        name = self._qualified(call.func)
        if name.startswith("torch."):
            leaf = torch_function(name) in words("functions", "without_graph")
            return _NONE if leaf else inside
        if dotted(call.func) in self._losses or name in _HANDS_ON:
            return inside
        if name in self._apart:
            return _UNCERTAIN if inside else _NONE
        if isinstance(call.func, ast.Call):  # nn.MSELoss()(output, target)
            known = is_loss_module(self._qualified(call.func.func))
            return inside if known else _UNCERTAIN
        return self._asked(call.func, inside)

    def _asked(self, function: ast.expr, inside: _ModelCalls) -> _ModelCalls:
        """Return what a method gives, of a tensor if what it is called on is known."""
        match function:
            case ast.Attribute(attr=attr) if attr in words("methods", "cut"):
                return _NONE
            case ast.Attribute(value=ast.Name(id=name)) if name not in self._course.values:
                return _UNCERTAIN
            case ast.Attribute(value=ast.Attribute() as held) if not self._value(held):
                return _UNCERTAIN
            case ast.Attribute(value=held):
                return self._value(held) | inside
        return _UNCERTAIN

    def _model(self, function: ast.expr) -> str:
        """Return the model that is called, by itself or by a method of its own."""
        spelled = dotted(function).removesuffix(".forward").removesuffix(".module")
        if spelled in self._models:
            return spelled
        owner, _, method = spelled.rpartition(".")
        runs = owner in self._models and method not in words("methods", "without_pass")
        return owner if runs else ""


def _first(call: ast.Call) -> ast.expr:
    """Return what makes the object of `nn.BCELoss().to(device)`."""
    made: ast.expr = call.func
    while isinstance(made, ast.Attribute) and isinstance(made.value, ast.Call):
        made = made.value.func
    return made


_HANDS_ON = frozenset({"sum", "list", "tuple"})
_PARTS = ("body", "orelse", "handlers", "finalbody")
