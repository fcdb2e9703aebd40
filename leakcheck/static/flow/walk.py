"""Flow-sensitive walk of one function: which values carry a graph, and where they pile up.

A function is walked twice: once to gather evidence (what is backward called on?), once to record
what grows. Each loop body is walked twice in a row; what the first turn leaves behind is *stale* in
the second, and a stale graph inside a new value is a chain that grows with every turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.assignments import (
    assign,
    extend_container,
    in_place_receiver,
    note_sum,
    rebind,
)
from leakcheck.static.flow.expressions import evaluate, operate
from leakcheck.static.flow.gradient import decorated_mode, mode_of
from leakcheck.static.flow.prospects import SETTING_UP
from leakcheck.static.flow.records import Backward, Env, Feed, Fill, Frame, GrowingPlace, Summed
from leakcheck.static.flow.refine import plain_when
from leakcheck.static.flow.statements import execute
from leakcheck.static.flow.values import (
    ANYTHING,
    EMPTY,
    NONE,
    SURE,
    UNKNOWN,
    Ids,
    Value,
    age,
    join,
)
from leakcheck.static.torch_api import framework

if TYPE_CHECKING:
    from leakcheck.static.flow.analysis import Analysis
    from leakcheck.static.flow.arguments import Arguments
    from leakcheck.static.flow.classes import ClassInfo


class Flow:
    """The walk of one function, method or module body."""

    def __init__(
        self, analysis: Analysis, scope: cst.FunctionDef | cst.Module, owner: ClassInfo | None
    ) -> None:
        """Prepare the walk; `owner` is the class the function is a method of."""
        self.analysis = analysis
        self.module = analysis.module
        self.scope = scope
        self.owner = owner
        self._reset()

    def run(self) -> Flow:
        """Walk the scope and keep what was found."""
        if self.analysis.calls_backward(self.scope) or self.is_called_to_train:
            self._walk(record=False)
        self._walk(record=True)
        return self

    @property
    def is_called_to_train(self) -> bool:
        """Whether a trainer calls this method at every step, and backward on what it returns."""
        if self.owner is None or isinstance(self.scope, cst.Module):
            return False
        return self.owner.is_called_to_train(self.scope.name.value)

    def _reset(self) -> None:
        self.env: Env = {}
        self.given: Env = {}  # the parameters, as the walk begins
        self.gradient: bool | None = True
        self.frames: list[Frame] = []
        self.born: Ids = frozenset()
        self.growths: dict[tuple[int, str], GrowingPlace] = {}
        self.backwards: list[Backward] = []
        self.differentiations: list[Backward] = []
        self.feeds: list[Feed] = []
        self.fills: list[Fill] = []
        self.summed: list[Summed] = []
        self.returned: list[Value] = []
        self.uses: dict[int, set[str]] = {}
        self.cuts: dict[int, set[Ids]] = {}  # growing places read without their graph, and where
        self.sampled: set[int] = set()  # the calls that take a pipeline from sample to sample
        self.freed: set[str] = set()  # parameters that backward is called on
        self.asked: set[str] = set()  # parameters that autograd.grad is asked about
        self.changed: dict[str, cst.CSTNode | None] = {}
        self.exits: list[Env] = []  # what names hold at each way out
        self.before: dict[int, Env] = {}  # what names hold when a loop is reached
        self.dead = False

    def _walk(self, *, record: bool) -> None:
        self._reset()
        self.recording = record
        if isinstance(self.scope, cst.FunctionDef):
            self.gradient = decorated_mode(self.scope, self.module, self.owner)
            self.env = self.analysis.parameters(self.scope, self.owner)
            self.given = dict(self.env)
        self.block(self.scope.body)
        if not self.dead:
            self.exits.append(self.env)

    def keeps_graph(self, path: str) -> bool:
        """Whether a place may still hold a graph, or a parameter's, when the scope is left."""
        ends = [env[path].contents for env in self.exits if path in env]
        return any(value.carries or value.parameters for value in ends) or not ends

    # ---- names

    def path(self, node: cst.CSTNode) -> str:
        """Name a place values are kept in: "total", "self.sum", "stats['loss']"; empty if none."""
        if isinstance(node, cst.Name):
            return node.value
        if isinstance(node, cst.Attribute):
            inner = self.path(node.value)
            return f"{inner}.{node.attr.value}" if inner else ""
        if isinstance(node, cst.Subscript):
            inner = self.path(node.value)
            return f"{inner}[{self._slice_text(node)}]" if inner else ""
        if isinstance(node, cst.Call) and (found := syntax.got_attribute(node)):
            inner = self.path(found[0])
            return f"{inner}.{found[1]}" if inner else ""
        return ""

    def _slice_text(self, node: cst.Subscript) -> str:
        return ",".join(self.analysis.code(element.slice) for element in node.slice)

    def held(self, path: str) -> Value | None:
        """Return what a place holds since it was last set here; None when it was not."""
        return self.env.get(path)

    def read(self, name: str) -> Value:
        """Return what a plain name holds: here, in the module, or nothing known."""
        if name in self.env:
            return self.env[name]
        return self.analysis.module_level(name, self)

    def entry(self, path: str) -> Value:
        """Return what an attribute of self holds when the method begins."""
        name = path.partition(".")[2]
        value = self.owner.attribute(name) if self.owner else ANYTHING
        if value.kind in ("module", "loss", "object", "function", "class") or value.leaf:
            return value
        graph = value.graph if value.graph == SURE and value.leaf else UNKNOWN
        known = ("list", "dict", "tensor", "bounded")
        kind = value.kind if value.kind in known else "unknown"
        element: Value | None = None
        if kind in ("list", "dict"):
            inner = value.contents  # of objects the class is known, of tensors nothing is
            element = replace(inner if inner.ref else ANYTHING, entries=frozenset({path}))
        return Value(graph, kind, entries=frozenset({path}), element=element)

    @property
    def is_forward(self) -> bool:
        """Whether this is the forward of its class."""
        return self.owner is not None and self.scope is self.owner.methods.get("forward")

    @property
    def writes_again(self) -> bool:
        """Whether this is a method whose attributes have their first values already."""
        if self.owner is None or isinstance(self.scope, cst.Module):
            return False
        return not SETTING_UP.match(self.scope.name.value)

    @property
    def samples(self) -> bool:
        """Whether this is the call of a pipeline, which asks its models step by step."""
        if self.owner is None or isinstance(self.scope, cst.Module):
            return False
        return self.owner.is_pipeline and self.scope.name.value == "__call__"

    def passes_on(self, call: cst.Call) -> bool:
        """Whether forward calls something that its module keeps on self: a layer, a function."""
        owner, path = self.owner, self.path(call.func)
        if owner is None or not owner.is_module or not self.is_forward:
            return False
        of_self = path.startswith("self.") and path.count(".") == 1
        return of_self and owner.attribute(path[5:]) is not ANYTHING

    def folds(self, call: cst.Call, arguments: Arguments) -> bool:
        """Whether a metric calls a function that it was given: `self._op(self.total, output)`."""
        owner, path = self.owner, self.path(call.func)
        if owner is None or not path.startswith("self.") or path[5:] in owner.methods:
            return False
        given = framework("metrics", "outputs_given")
        return owner.is_given_graphs or any(v.parameters & given for v in arguments.all)

    def is_module(self, path: str) -> bool:
        """Whether the file treats this name as a torch module: .train(), .parameters() ..."""
        return path in self.analysis.module_names

    def code(self, node: cst.CSTNode) -> str:
        """Write a node as in the source."""
        return self.analysis.code(node)

    # ---- values

    def evaluate(self, node: cst.CSTNode) -> Value:
        """Return what an expression's value carries."""
        return evaluate(self, node)

    def made(self, value: Value) -> Value:
        """Return a computed value as the current gradient mode leaves it."""
        if self.gradient is False:
            return value.cut_whole()
        if self.gradient is True or value.graph == NONE:
            return value
        evident = value.origins & self.analysis.evident
        if value.carries and not evident:
            return replace(value, graph=UNKNOWN)
        return value

    def seen(self, value: Value) -> Value:
        """Return the value with what is known of its origins: backward was called on one."""
        if value.graph == SURE or self.gradient is False:
            return value
        known = value.origins & self.analysis.evident
        return replace(value, graph=SURE, lent=bool(value.parameters)) if known else value

    def backward(self, value: Value, call: cst.Call) -> None:
        """Take note that backward is called on a value."""
        value = value.contents
        self.freed |= self._differentiate(value)
        self.backwards.append(Backward(call, value, self.born))

    def differentiated(self, value: Value, call: cst.Call) -> None:
        """Take note that autograd.grad is asked about a value."""
        value = value.contents
        self.asked |= self._differentiate(value)
        self.differentiations.append(Backward(call, value, self.born))

    def _differentiate(self, value: Value) -> set[str]:
        """Note that the value has a graph; return the parameters that show it."""
        self.analysis.evident.update(value.origins)
        given = {name: self.given.get(name) for name in value.parameters}
        return {
            name
            for name, start in given.items()
            if start is None or not start.origins or start.origins & value.origins
        }

    def give_back(self, value: Value) -> None:
        """Take note that the function returns or yields a value."""
        self.returned.append(value)
        if self.is_called_to_train:
            loss = value.slot("loss" if value.kind == "dict" else 0) or value
            self.analysis.evident.update(loss.contents.origins)
        for sink in value.contents.sinks:
            self.uses.setdefault(sink, set()).add("return")

    def hand_over(self, call: cst.Call, name: str, arguments: Arguments) -> None:
        """Take note that what grows is handed to a function we do not know."""
        for sink in arguments.sinks:
            self.uses.setdefault(sink, set()).add("escape")
            if isinstance(self.module.parent(call), cst.Expr):  # for what it does, not gives back
                self.uses[sink].add("handed")

    def switch_gradient(self, call: cst.Call, qualified: str) -> bool:
        """Apply a bare torch.set_grad_enabled(...) statement; False when the call is none."""
        if not qualified.startswith("torch.set_grad"):
            return False
        self.gradient = mode_of(call, self.module)[0]
        return True

    @contextmanager
    def assuming(self, test: cst.BaseExpression, truth: bool) -> Iterator[None]:
        """Walk what follows with what the test's outcome says about types."""
        before = dict(self.env)
        self.refine(test, truth)
        yield
        for path in plain_when(test, truth, self.path, self.module.qualified):
            if path in before:
                self.env[path] = before[path]
            else:
                self.env.pop(path, None)

    def refine(self, test: cst.BaseExpression, truth: bool) -> None:
        """Drop the graph of names that the test shows to be no tensor."""
        for path in plain_when(test, truth, self.path, self.module.qualified):
            self.env[path] = EMPTY

    @contextmanager
    def comprehending(self, clause: cst.CompFor) -> Iterator[None]:
        """Bind a comprehension's names, innermost clause last."""
        before = dict(self.env)
        inner: cst.CompFor | None = clause
        while inner is not None:
            self.bind(inner.target, self.evaluate(inner.iter))
            for condition in inner.ifs:
                self.evaluate(condition.test)
            inner = inner.inner_for_in
        yield
        self.env = before

    def bind(self, target: cst.BaseExpression, iterated: Value) -> None:
        """Give a loop's target what one turn takes from the iterated value."""
        item = iterated.element if iterated.kind in ("list", "dict") else None
        if iterated.kind == "tuple":
            item = iterated.contents
        if item is None:
            item = replace(iterated, kind="unknown", items=(), element=None)
        if iterated.kind == "dict":
            item = EMPTY
        if isinstance(target, cst.Tuple) and item.kind not in ("tuple",):
            item = replace(item, items=(), element=item.contents, kind="list")
        self.assign(target, item, None)

    # ---- statements (see statements.py)

    def block(self, body: cst.BaseSuite | Sequence[cst.BaseStatement]) -> None:
        """Walk the statements of a suite until the flow ends."""
        statements = body if isinstance(body, Sequence) else body.body
        for statement in statements:
            if self.dead:
                return
            execute(self, statement)

    def assign(self, target: cst.CSTNode, value: Value, node: cst.CSTNode | None) -> None:
        """Put a value in a place."""
        assign(self, target, value, node)

    def rebind(
        self, node: cst.CSTNode, target: cst.BaseExpression, right: cst.BaseExpression
    ) -> None:
        """Walk what gives a place another value within an expression: `:=`, setattr."""
        rebind(self, node, [target], right)

    def grow(self, growth: GrowingPlace) -> None:
        """Record a growing place, once per statement and target."""
        if self.recording:
            key = (id(growth.node), growth.target)
            old = self.growths.get(key)
            loops = growth.loops | old.loops if old else growth.loops
            better = old if old and old.value.graph > growth.value.graph else growth
            self.growths[key] = replace(better, loops=loops)

    def grow_container(
        self,
        call: cst.Call,
        receiver: cst.BaseExpression,
        base: Value,
        method: str,
        arguments: Arguments,
    ) -> Value:
        """Apply append, extend, update ... to a container."""
        return extend_container(self, call, receiver, base, method, arguments)

    def sum_in_place(
        self, call: cst.Call, receiver: cst.BaseExpression, base: Value, added: Value
    ) -> Value:
        """Apply add_, mul_ ...: the place keeps its name and takes the operand's graph."""
        receiver = in_place_receiver(receiver)
        value = self.made(operate(self, cst.Add(), base, join(EMPTY, added)))
        place = self.path(receiver)
        if place in self.given and place in base.parameters and self.gradient is not False:
            self.summed.append(Summed(place, added))
        if place and added.carries:
            note_sum(self, call, receiver, base, value, added, None)
            self.assign(receiver, value, None)
        return value

    def next_turn(self, before: Env, loop: int) -> Env:
        """Return what the next turn starts with: what was there, joined with what is left over."""
        merged = dict(before)
        for path, value in self.env.items():
            aged = age(value, loop)
            merged[path] = join(merged[path], aged) if path in merged else aged
        return merged
