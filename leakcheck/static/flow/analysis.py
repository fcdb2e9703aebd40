"""Flow results of a whole module, function by function, and what calls learn from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.facts.link import is_test
from leakcheck.static.flow.classes import ClassInfo
from leakcheck.static.flow.definitions import Definition
from leakcheck.static.flow.fields import tuple_fields
from leakcheck.static.flow.fillers import empty_container
from leakcheck.static.flow.values import (
    ANYTHING,
    LIKELY,
    NONE,
    PLAIN,
    SURE,
    UNKNOWN,
    Value,
    ValueKind,
)
from leakcheck.static.flow.walk import Flow
from leakcheck.static.torch_api import framework, is_learnable_module, words

if TYPE_CHECKING:
    from leakcheck.static.module import Module

DEEPEST_CALLS = 12  # call chains longer than this are unknown
Scope = cst.FunctionDef | cst.Module


class Analysis:
    """The flow analysis of one module; results are kept, evidence only grows."""

    def __init__(self, module: Module) -> None:
        """Start with nothing walked."""
        self.module = module
        self.evident: set[int] = set()  # origins that backward was called on
        self.answered: dict[int, Definition] = {}  # calls of the module's own functions
        self.callers: dict[int, list[Scope]] = {}  # functions -> scopes that call them
        self.trained: set[int] = set()  # functions whose results callers call backward on
        self.slot_of: dict[int, tuple[int, str]] = {}  # a slot's origin -> the whole's, its name
        self._slots: dict[tuple[int, str], int] = {}
        self._flows: dict[int, Flow | None] = {}
        self._under_way: dict[int, Flow] = {}
        self._early: list[int] = []  # scopes walked while their object was being made
        self._classes: dict[int, ClassInfo] = {}
        self._code: dict[int, str] = {}
        self._definitions: dict[int, Definition] = {}
        self._definers: dict[str, ClassInfo | None] = {}
        self._found: dict[str, tuple[Analysis, str] | None] = {}  # qualified names -> where
        self._depth = 0

    def release(self) -> None:
        """Let go of all walks: they refer to their analysis."""
        vars(self).clear()

    # ---- results

    def flow(self, scope: Scope) -> Flow | None:
        """Walk a function, or the module's top level, once; None while that is under way."""
        key = id(scope)
        if key not in self._flows:
            self._flows[key] = None
            if self._depth < DEEPEST_CALLS:
                self._depth += 1
                owner = self.class_info(self.method_owner(scope))
                early = owner is not None and owner.is_being_made
                walk = self._under_way[key] = Flow(self, scope, owner)
                self._flows[key] = walk.run()
                del self._under_way[key]
                self._depth -= 1
                self._keep(key, early=early)
        return self._flows[key]

    def _keep(self, key: int, *, early: bool) -> None:
        """Let walks go that were made while an object's attributes were not known yet."""
        if early:
            self._early.append(key)
            return
        while self._early:
            self._flows.pop(self._early.pop(), None)

    def is_under_way(self, scope: Scope) -> bool:
        """Whether a scope is being walked right now."""
        return id(scope) in self._under_way

    def forget(self, scope: Scope) -> None:
        """Let a function be walked anew: more is known by now."""
        self._flows.pop(id(scope), None)

    def scopes(self) -> list[Scope]:
        """Every scope worth walking: the module, and each function."""
        return [self.module.tree, *self.module.functions]

    def method_owner(self, scope: Scope) -> cst.ClassDef | None:
        """Return the class a function is directly a method of."""
        if isinstance(scope, cst.Module):
            return None
        around = self.module.enclosing(scope, cst.FunctionDef, cst.ClassDef)
        return around if isinstance(around, cst.ClassDef) else None

    def class_info(self, node: cst.ClassDef | None) -> ClassInfo | None:
        """Return what is known of a class of this module."""
        if node is None:
            return None
        if id(node) not in self._classes:
            self._classes[id(node)] = ClassInfo(self, node)
        return self._classes[id(node)]

    # ---- evidence

    def slot(self, origin: int, name: str) -> int:
        """Return the origin of one slot, "[0]" or ".loss", of what a call gave back."""
        key = (origin, name)
        if key not in self._slots:
            self._slots[key] = -len(self._slots) - 1
            self.slot_of[self._slots[key]] = key
        return self._slots[key]

    def sibling_of_evident(self, value: Value, name: str) -> bool:
        """Whether a slot named like a loss has a sibling that backward was called on."""
        return "loss" in name.lower() and self.beside_evident(value)

    def beside_evident(self, value: Value) -> bool:
        """Whether backward was called on another part of what the value is a part of."""
        bases = {base for origin in value.origins for base in self._wholes(origin)}
        return any(self.slot_of.get(origin, (None, ""))[0] in bases for origin in self.evident)

    def _wholes(self, origin: int) -> Iterator[int]:
        while origin in self.slot_of:
            origin = self.slot_of[origin][0]
            yield origin

    @property
    def shown_by_slots(self) -> frozenset[int]:
        """The origins of which backward was called on a slot: `output["loss"].backward()`."""
        return frozenset(self.slot_of[o][0] for o in self.evident if o in self.slot_of)

    @cached_property
    def module_names(self) -> frozenset[str]:
        """Names the file treats as torch modules: model.train(), self.net.parameters() ..."""
        evidence = words("methods", "module_evidence") - {"zero_grad", "load_state_dict"}
        found = set()
        for call in self.module.calls:
            match call:
                case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))):
                    if method in evidence and (len(call.args) == 0 or method == "train"):
                        found.add(syntax.dotted(receiver))
        return frozenset(found - {""})

    def calls_backward(self, scope: Scope) -> bool:
        """Whether the scope has a call whose name speaks of backward or of gradients."""
        return id(scope) in self._backward_scopes

    @cached_property
    def _backward_scopes(self) -> set[int]:
        found: set[int] = set()
        for call in self.module.calls:
            name = syntax.dotted(call.func).rpartition(".")[2]
            if isinstance(call.func, cst.Attribute):
                name = call.func.attr.value
            if "backward" in name or name == "grad":
                scope: Any = self.module.function_of(call) or self.module.tree
                found.add(id(scope))
        return found

    # ---- names

    def code(self, node: cst.CSTNode) -> str:
        """Write a node as in the source, without its comments' lines."""
        if id(node) not in self._code:
            self._code[id(node)] = " ".join(self.module.code(node).split())
        return self._code[id(node)]

    def module_level(self, name: str, flow: Flow) -> Value:
        """Return what a name holds at the module's top level."""
        if flow.scope is self.module.tree:
            return ANYTHING
        if (outer := self.free(name, flow.scope)) is not None:
            return outer
        # while the top level calls the function, its names hold what they were given so far
        top = self.flow(self.module.tree) or self._under_way.get(id(self.module.tree))
        if top is None:
            return ANYTHING
        value = top.env.get(name, ANYTHING)
        known = ("module", "loss", "object", "class", "function")
        return value if value.kind in known else ANYTHING

    def free(self, name: str, scope: Scope) -> Value | None:
        """Return what a name of an enclosing scope holds when the function is called.

        Only what the function can make grow: an outer list or dict, or a name it declares global.
        """
        if isinstance(scope, cst.Module):
            return None
        outside = frozenset({name})
        start = self._outer_starts.get((self.module.function_of(scope), name))
        start = start or self._outer_starts.get((None, name))
        if start is not None:
            return Value(NONE, start, entries=outside, element=Value(entries=outside))
        return Value(entries=outside) if (scope, name) in self._declared else None

    @cached_property
    def _outer_starts(self) -> dict[tuple[cst.FunctionDef | None, str], ValueKind]:
        found: dict[tuple[cst.FunctionDef | None, str], ValueKind] = {}
        for node in self.module.nodes(cst.Assign):
            for target, value in syntax.bindings(node):
                kind = empty_container(value)
                around = self.module.enclosing(node, cst.FunctionDef, cst.ClassDef)
                is_field = isinstance(around, cst.ClassDef)
                if isinstance(target, cst.Name) and kind and not is_field:
                    found.setdefault((self.module.function_of(node), target.value), kind)
        return found

    @cached_property
    def tuple_fields(self) -> dict[str, list[str]]:
        """The module's namedtuples and their fields."""
        return tuple_fields(self.module)

    @cached_property
    def _declared(self) -> set[tuple[cst.CSTNode | None, str]]:
        declarations: list[cst.Global | cst.Nonlocal] = [*self.module.nodes(cst.Global)]
        declarations += self.module.nodes(cst.Nonlocal)
        return {
            (self.module.function_of(node), item.name.value)
            for node in declarations
            for item in node.names
        }

    def parameters(self, function: cst.FunctionDef, owner: ClassInfo | None) -> dict[str, Value]:
        """Return the values a function's parameters start with."""
        inputs = owner is not None and owner.is_module and function.name.value == "forward"
        values: dict[str, Value] = {}
        for parameter in syntax.parameters(function):
            name = parameter.name.value
            graph = LIKELY if inputs else UNKNOWN
            shown = id(parameter) in self.evident
            graph = SURE if shown else graph
            origin = frozenset({id(parameter)})
            named = frozenset({name})
            value = Value(graph, origins=origin, parameters=named, inputs=named, lent=shown)
            annotation = parameter.annotation.annotation if parameter.annotation else None
            if annotation is not None:
                value = self._annotated(annotation, value)
            values[name] = value
        values |= _spread(function, LIKELY if inputs else UNKNOWN)
        values.pop("self", None)
        values.pop("cls", None)
        if (
            owner is not None
            and "model" in values
            and owner.is_called_to_train(function.name.value)
        ):
            values["model"] = Value(NONE, "module")
        return values

    def _annotated(self, annotation: cst.BaseExpression, value: Value) -> Value:
        qualified = self.module.qualified(annotation)
        if qualified in framework("modules", "bases") or is_learnable_module(qualified):
            return Value(NONE, "module")
        if syntax.dotted(annotation) in syntax.PLAIN_TYPES:
            return PLAIN
        info = self.resolve_class(annotation)
        return Value(NONE, "object", ref=info) if info else value

    # ---- definitions

    def define(self, function: cst.FunctionDef) -> Definition:
        """Return a function of this module as its callers see it."""
        key = id(function)
        if key not in self._definitions:
            self._definitions[key] = Definition(self, function)
        return self._definitions[key]

    def resolve_class(self, node: cst.BaseExpression) -> ClassInfo | None:
        """Return the class of the project a name stands for."""
        own = self.module.class_named(syntax.dotted(node))
        if own is not None:
            return self.class_info(own)
        found = self._imported(node)
        if found is None:
            return None
        analysis, name = found
        return analysis.class_info(analysis.module.class_named(name))

    def made_by(self, factory: cst.BaseExpression) -> ClassInfo | None:
        """Return the class of what a factory makes: a class, or a partial of one."""
        match factory:
            case cst.Call(args=[cst.Arg(value=made), *_]) if (
                self.module.qualified(factory.func) == "functools.partial"
            ):
                return self.resolve_class(made)
        return self.resolve_class(factory)

    def only_definer(self, called: cst.Attribute) -> ClassInfo | None:
        """Return the one class of the project that has the method called; None for several."""
        name = called.attr.value
        if name not in self._definers:
            self._definers[name] = self._only_definer(name)
        return self._definers[name]

    def _only_definer(self, method: str) -> ClassInfo | None:
        module, project = self.module, self.module.project
        paths: Sequence[str] = ()
        if project is not None:
            paths = [
                path
                for path in project.mentioning(f"def {method}(", module.path)
                if not is_test(path)
            ]
        own = [node for node in module.classes if method in module.methods(node)]
        if len(own) + len(paths) != 1:
            return None
        home = module if own else project.module(paths[0]) if project is not None else None
        found = [node for node in home.classes if method in home.methods(node)] if home else []
        return analysis_of(home).class_info(found[0]) if home and len(found) == 1 else None

    def definition(self, node: cst.BaseExpression, flow: Flow) -> Definition | ClassInfo | None:
        """Return the function or class of the project that a call's name stands for."""
        spelled = syntax.dotted(node)
        if spelled in flow.env:
            return flow.env[spelled].function
        if not spelled:
            return None
        if spelled.startswith("self.") and flow.owner is not None and spelled.count(".") == 1:
            return flow.owner.method(spelled[5:])
        if spelled == "self" and flow.owner is not None:
            return flow.owner.method("forward") or flow.owner.method("__call__")
        own = self.module.top_function(spelled) or self._nested(spelled, flow.scope)
        if own is not None:
            return self.define(own)
        if (info := self.resolve_class(node)) is not None:
            return info
        found = self._imported(node)
        if found is None:
            return None
        analysis, name = found
        function = analysis.module.top_function(name)
        return analysis.define(function) if function is not None else None

    def _nested(self, name: str, scope: Scope) -> cst.FunctionDef | None:
        """Return a function of this name defined inside the scope, or one around the scope."""
        if isinstance(scope, cst.Module) or "." in name:
            return None
        found = [f for f in self.module.functions if f.name.value == name]
        around: cst.FunctionDef | None = scope
        while found and around is not None:
            for function in found:
                if self.module.function_of(function) is around:
                    return function
            around = self.module.function_of(around)
        return None

    def _imported(self, node: cst.BaseExpression) -> tuple[Analysis, str] | None:
        qualified = self.module.qualified(node)
        if qualified not in self._found:
            self._found[qualified] = self._find(qualified) if qualified else None
        return self._found[qualified]

    def _find(self, qualified: str) -> tuple[Analysis, str] | None:
        project = self.module.project
        home = project.home(qualified, self.module.path) if project is not None else None
        if project is None or home is None:
            return None
        path, name = home
        module = project.module(path)
        return (analysis_of(module), name) if module is not None else None


def analysis_of(module: Module) -> Analysis:
    """Return the flow analysis of a module: what carries a graph, and where it piles up."""
    return module.once(Analysis)


def _spread(function: cst.FunctionDef, graph: int) -> dict[str, Value]:
    """Return what `*args` and `**kwargs` start with: whatever the caller hands over.

    `graph`: what each positional one has; a mask or an option has a name.
    """
    spread: list[tuple[object, ValueKind, int]] = [
        (function.params.star_arg, "list", graph),
        (function.params.star_kwarg, "dict", UNKNOWN),
    ]
    found: dict[str, Value] = {}
    for parameter, kind, each in spread:
        if isinstance(parameter, cst.Param):
            name = parameter.name.value
            named = frozenset({name})
            given = Value(each, parameters=named, inputs=named)
            found[name] = Value(NONE, kind, element=given)
    return found
