"""What a class does with what it is given: attributes, methods, and what piles up on self."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.fields import class_fields, filled
from leakcheck.static.flow.records import Feed
from leakcheck.static.flow.relief import relieved
from leakcheck.static.flow.values import ANYTHING, LIKELY, NONE, SURE, UNKNOWN, Value, join
from leakcheck.static.torch_api import framework, makes_module

if TYPE_CHECKING:
    from leakcheck.static.flow.analysis import Analysis
    from leakcheck.static.flow.arguments import Arguments
    from leakcheck.static.flow.definitions import Definition
    from leakcheck.static.flow.records import GrowingPlace
    from leakcheck.static.flow.walk import Flow

_BEGINNINGS = ("__init__", "build", "setup", "reset", "_build", "__post_init__")


class ClassInfo:
    """A class of the project; asked by the flow of its own methods and by its users'."""

    def __init__(self, analysis: Analysis, node: cst.ClassDef) -> None:
        """Refer to a class; its methods are walked when they matter."""
        self.analysis = analysis
        self.node = node
        self._busy = False
        self.answers: dict[int, str] = {}  # calls of its methods -> the method
        self.evidence: list[set[int]] = []  # the callers' evidence, as it grows

    @property
    def name(self) -> str:
        """The class's name."""
        return self.node.name.value

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """Qualified names of the bases, through those of the same project."""
        found = list(self.analysis.module.bases(self.node))
        for parent in self.parents:
            found += parent.bases
        return tuple(found)

    @cached_property
    def parents(self) -> list[ClassInfo]:
        """The base classes that the project defines."""
        if self._busy:
            return []
        self._busy = True
        found = [self.analysis.resolve_class(base.value) for base in self.node.bases]
        self._busy = False
        return [parent for parent in found if parent is not None and parent is not self]

    @cached_property
    def is_module(self) -> bool:
        """Whether it is a torch.nn.Module, by its bases or by what it registers on itself."""
        return any(makes_module(base) for base in self.bases) or self._registers()

    def _registers(self) -> bool:
        """Whether it has buffers, though nobody knows its base."""
        if not self.node.bases or ".register_buffer(" not in self.analysis.module.source:
            return False
        calls = (node for node in syntax.walk(self.node.body) if isinstance(node, cst.Call))
        called = (syntax.dotted(call.func) for call in calls)
        return "register_buffer" not in self.methods and "self.register_buffer" in called

    @cached_property
    def is_lightning(self) -> bool:
        """Whether Lightning calls its hooks."""
        return any(base in framework("lightning", "bases") for base in self.bases)

    @cached_property
    def has_lightning_hooks(self) -> bool:
        """Whether Lightning calls hooks of it: of a module, or of a callback."""
        callbacks = framework("lightning", "callbacks")
        return self.is_lightning or any(base in callbacks for base in self.bases)

    @cached_property
    def is_criterion(self) -> bool:
        """Whether its forward returns the loss first, and last a dict that the trainer keeps."""
        return any(base in framework("criterions", "bases") for base in self.bases)

    @cached_property
    def is_pipeline(self) -> bool:
        """Whether its call samples from models step by step, and trains nothing."""
        return any(
            base.rpartition(".")[2] in framework("pipelines", "bases") for base in self.bases
        )

    def keeps_step_outputs(self, scope: cst.CSTNode) -> bool:
        """Whether this is a training step whose outputs a trainer, or a hook, waits for."""
        if self.is_criterion:
            return scope is self.methods.get("forward")
        hooks = framework("lightning", "collecting")
        return (
            self.is_lightning
            and scope is self.methods.get("training_step")
            and not hooks.isdisjoint(self.methods)
        )

    def is_called_to_train(self, method: str) -> bool:
        """Whether a trainer calls this method at every step, and backward on what it returns."""
        if self.is_lightning:
            return method == "training_step"
        if self.is_criterion:
            return method in framework("criterions", "per_step")
        mine = any(base in framework("trainers", "bases") for base in self.bases)
        return mine and method in framework("trainers", "per_step")

    @cached_property
    def is_detached_metric(self) -> bool:
        """Whether its base runs update without gradient."""
        prefixes = framework("metrics", "bases_without_grad")
        return any(base.startswith(prefix) for base in self.bases for prefix in prefixes)

    @cached_property
    def is_given_graphs(self) -> bool:
        """Whether a framework hands its update method a model's outputs as they are."""
        return any(base in framework("metrics", "bases_given_graphs") for base in self.bases)

    @cached_property
    def methods(self) -> dict[str, cst.FunctionDef]:
        """Its own methods, by name."""
        return self.analysis.module.methods(self.node)

    def method(self, name: str, depth: int = 0) -> Definition | None:
        """Return a method, its own or a base's."""
        if name in self.methods:
            own = self.analysis.define(self.methods[name])
            return self._override(name) or own if own.is_abstract else own
        if depth > 6:
            return None
        found = (parent.method(name, depth + 1) for parent in self.parents)
        return next((method for method in found if method is not None), None)

    def _override(self, name: str) -> Definition | None:
        """Return what stands in for an abstract method: the first subclass that defines it."""
        for node in self.analysis.module.classes:
            info = self.analysis.class_info(node)
            if info is None or info is self or self not in info.parents:
                continue
            method = info.methods.get(name)
            if method is not None and not self.analysis.define(method).is_abstract:
                return self.analysis.define(method)
        return None

    def attribute(self, name: str) -> Value:
        """Return what an attribute holds after the object was made."""
        if self._busy or self.is_being_made:
            return ANYTHING
        value = self._attributes.get(name)
        if value is not None:
            return value
        for parent in self.parents:
            if not parent.is_being_made and name in parent._attributes:
                return parent._attributes[name]
        return ANYTHING

    @property
    def is_being_made(self) -> bool:
        """Whether a method that gives the attributes their first values is being walked."""
        beginnings = (self.methods.get(name) for name in _BEGINNINGS)
        return any(f is not None and self.analysis.is_under_way(f) for f in beginnings)

    @cached_property
    def _attributes(self) -> dict[str, Value]:
        self._busy = True
        found: dict[str, Value] = {}
        for method in _BEGINNINGS:
            function = self.methods.get(method)
            flow = self.analysis.flow(function) if function is not None else None
            for path, value in (flow.env if flow else {}).items():
                name = path.removeprefix("self.")
                if name != path and "." not in name and "[" not in name:
                    found[name] = join(found[name], value) if name in found else value
        self._busy = False
        return found

    @property
    def learns(self) -> bool:
        """Whether it has parameters of its own, as far as its attributes show."""
        values = [] if self.is_being_made else self._attributes.values()
        return any(
            (value.kind == "module" and (value.ref is None or value.ref.learns)) or value.leaf
            for value in values
        ) or any(parent.learns for parent in self.parents)

    # ---- as its users see it

    def call(self, flow: Flow, call: cst.Call, arguments: Arguments) -> Value:
        """Return a new object."""
        if self.fields:
            return filled(self.fields, arguments, flow.born, self)
        return Value(NONE, "object", ref=self, born=flow.born)

    @cached_property
    def fields(self) -> list[str]:
        """Its fields, if it is a dataclass or a NamedTuple."""
        return class_fields(self)

    @cached_property
    def slots(self) -> ClassInfo | None:
        """The class of what it holds under each key, if it is a defaultdict: its factory's."""
        begins = self.methods.get("__init__")
        if begins is None or not any(
            each.rpartition(".")[2] == "defaultdict" for each in self.bases
        ):
            return None
        for node in syntax.walk(begins.body):
            match node:
                case cst.Call(
                    func=cst.Attribute(
                        value=cst.Call(func=cst.Name("super")), attr=cst.Name("__init__")
                    ),
                    args=[cst.Arg(value=factory), *_],
                ):
                    return self.analysis.made_by(factory)
        return None

    def call_method(
        self, name: str, flow: Flow, call: cst.Call, arguments: Arguments
    ) -> Value | None:
        """Return what a method gives back, and note what it keeps; None when it is not ours."""
        if name == "__call__" and self.is_module:
            return self._forward(flow, call, arguments)
        method = self.method(name)
        if method is None:
            return None
        self.answers[id(call)] = name
        if not any(known is flow.analysis.evident for known in self.evidence):
            self.evidence.append(flow.analysis.evident)
        bound = method.bind(arguments)
        self.feed(method, flow, call, bound)
        return method.apply(flow, call, bound, arguments.sinks)

    def feed_slot(self, flow: Flow, node: cst.CSTNode, value: Value) -> None:
        """Take note of `object[key] = value`."""
        method = self.method("__setitem__")
        if method is None or not isinstance(node, cst.Assign):
            return
        names = [p.name.value for p in syntax.parameters(method.function)]
        for growth in self.keeps(method):
            if growth.added.parameters & set(names[2:]):
                self._note(flow, node, growth, value.contents, "__setitem__")

    def keeps(self, method: Definition) -> list[GrowingPlace]:
        """List what a method piles up on self out of its parameters."""
        flow = method.flow
        if flow is None:
            return []
        grown = (g for g in flow.growths.values() if g.per_call and g.value.parameters)
        return [g for g in grown if not relieved(flow, g)]

    def feed(self, method: Definition, flow: Flow, call: cst.Call, bound: dict[str, Value]) -> None:
        """Take note of the arguments that a method piles up on self."""
        for growth in self.keeps(method):
            for name in growth.added.parameters & bound.keys():
                given = bound[name].contents
                self._note(flow, call, growth, given, method.function.name.value)
                target = self._target_in(flow, call, growth)
                if target and given.parameters and not given.carries:
                    node = growth.node if method.analysis is self.analysis else call
                    grown = replace(growth, node=node, target=target, loops=frozenset())
                    flow.grow(replace(grown, value=given, added=given))

    def _target_in(self, flow: Flow, call: cst.Call, growth: GrowingPlace) -> str:
        """Name what grows as the caller's own attribute: its place, or what is a part of it."""
        if flow.owner is self:
            return growth.target
        part = flow.path(call.func.value) if isinstance(call.func, cst.Attribute) else ""
        return part if part.startswith(("self.", "self[")) else ""  # `self.meters[k].update(v)`

    def _note(
        self, flow: Flow, node: cst.CSTNode, growth: GrowingPlace, argument: Value, method: str
    ) -> None:
        as_given = _keeps_as_given(growth)
        bare = argument.leaf if as_given else flow.gradient is False  # computed under no_grad
        if flow.recording and argument.carries and not bare:
            flow.feeds.append(Feed(node, argument, self, growth, flow.born, method))

    def _forward(self, flow: Flow, call: cst.Call, arguments: Arguments) -> Value:
        forward = self.method("forward")
        if forward is None:
            return flow.seen(
                flow.made(Value(SURE, "tensor", frozenset({id(call)}), born=flow.born))
            )
        result = forward.apply(flow, call, forward.bind(arguments), arguments.sinks)
        if not self.learns or flow.gradient is not True:
            return result
        collected = result.element if result.kind in ("list", "dict") and not result.items else None
        if collected is not None and collected.graph in (UNKNOWN, LIKELY):
            return replace(result, element=self._with_graph(collected))
        return self._with_graph(result) if result.graph in (UNKNOWN, LIKELY) else result

    def _with_graph(self, value: Value) -> Value:
        return replace(value, graph=SURE, parameters=frozenset())


def _keeps_as_given(growth: GrowingPlace) -> bool:
    """Whether a container takes in the very thing, not what is computed from it."""
    node = growth.node
    added = node.value if isinstance(node, cst.Assign) else growth.expression
    return growth.how == "collect" and isinstance(added, cst.Name)
