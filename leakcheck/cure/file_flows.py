"""What is computed from what in one file, in whatever order its lines run.

A place is where values are: a variable of one function, a global of any module, or an attribute of
this name on any object; what a function returns is at the place of its name. A flow leads from the
places that an expression reads to those that get what it makes.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

import libcst as cst
from libcst.metadata import BuiltinScope, ClassScope, GlobalScope

from leakcheck.cure.sites import MOST_READ, SourceTree
from leakcheck.source.words import words

LEARNS = words("functions", "goes_back")
# methods that put in or take out, and read nothing where their result is not asked for
CHANGES = frozenset[str]().union(
    *(words("methods", each) for each in ("add", "take", "take_if_there", "clear"))
)
ATTRIBUTE, GLOBAL = ".", ""
CALLED = (ATTRIBUTE, "()")  # what is called as a function and is an object: modules of a model
CALLS = ("forward", "__call__")  # what is run then
SELF = ("self", "cls")
_STATEMENTS = (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)
_Node = TypeVar("_Node", bound=cst.CSTNode)
Place = tuple[object, str]  # what the name belongs to, and the name
Places = frozenset[Place]


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """One part of the source that reads some places and binds others."""

    node: cst.CSTNode
    reads: Places
    binds: Places


@dataclass(frozen=True, eq=False)
class FileFlows:
    """The flows within one file."""

    source: SourceTree

    @cached_property
    def flows(self) -> list[Flow]:
        """What is computed from what here, but for what calls hand to parameters."""
        kinds = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)
        more = (cst.WithItem, cst.Return, cst.Yield, cst.From, cst.Call, cst.ImportFrom)
        nodes = (each for kind in (*kinds, *more) for each in self.all(kind))
        found = (flow for each in nodes for flow in _flows_of(self, each))
        return [each for each in found if each.binds and each.reads]

    def all(self, kind: type[_Node]) -> list[_Node]:
        """Return the nodes of a kind, in the order of the text."""
        return [each for each in self._by_kind.get(kind, []) if isinstance(each, kind)]

    @cached_property
    def _by_kind(self) -> dict[type[cst.CSTNode], list[cst.CSTNode]]:
        found: dict[type[cst.CSTNode], list[cst.CSTNode]] = {}
        for node in sorted(self.source.ranges, key=self.source.start):
            found.setdefault(type(node), []).append(node)
        return found

    @cached_property
    def imported(self) -> frozenset[str]:
        """The names that imports bind in this file."""
        return frozenset(map(_bound_name, self.all(cst.ImportAlias)))

    @cached_property
    def modules(self) -> frozenset[str]:
        """Those that are modules for certain: they hold no values of the program's run."""
        imports = (alias for each in self.all(cst.Import) for alias in each.names)
        return frozenset(map(_bound_name, imports))

    @cached_property
    def values(self) -> list[cst.Name]:
        """The names that stand for values, in the order of the text."""
        return [each for each in self.all(cst.Name) if self._is_value(each)]

    def _is_value(self, name: cst.Name) -> bool:
        outer = self.source.parents.get(name)
        is_keyword = isinstance(outer, cst.Arg) and outer.keyword is name
        return not is_keyword and name.value not in self.modules

    def place(self, name: cst.Name) -> Place:
        """Return where a name's value is."""
        outer = self.source.parents.get(name)
        if isinstance(outer, cst.Attribute) and outer.attr is name:
            return (self._owner(outer.value), name.value)
        scope = self.source.scopes.get(name)
        for each in scope[name.value] if scope is not None else ():
            match each.scope:
                case GlobalScope() | BuiltinScope():
                    return (GLOBAL, name.value)
                case ClassScope():
                    return (ATTRIBUTE, name.value)
            return (each.scope, name.value)
        return (GLOBAL, name.value)

    def _owner(self, value: cst.BaseExpression) -> str:
        of_module = isinstance(value, cst.Name) and value.value in self.modules
        return GLOBAL if of_module else ATTRIBUTE

    def read_by(self, node: cst.CSTNode) -> Places:
        """Return the places that an expression reads, and those of what the functions return."""
        if node not in self._read:
            names = (each for each in _found(node, cst.Name) if self._is_value(each))
            found = {self.place(each) for each in names}
            calls = any(self.is_of_object(each) for each in _found(node, cst.Call))
            self._read[node] = frozenset(found | ({CALLED} if calls else set()))
        return self._read[node]

    @cached_property
    def _read(self) -> dict[cst.CSTNode, Places]:
        """What was asked for already."""
        return {}

    def is_of_object(self, call: cst.Call) -> bool:
        """Whether an object may be called, which no import and no word of Python's names."""
        match call.func:
            case cst.Name(value=name):
                return name not in self.imported and not hasattr(builtins, name)
            case cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name)):
                return owner not in self.imported and name not in CHANGES
            case cst.Attribute(attr=cst.Name(value=name)):
                return name not in CHANGES
        return True

    def named(self, value: cst.BaseExpression) -> Places:
        """Return the place of a variable or an attribute, nothing for any other expression."""
        match value:
            case cst.Name() | cst.Attribute(attr=cst.Name()):
                name = value if isinstance(value, cst.Name) else value.attr
                return frozenset({self.place(name)})
        return frozenset()

    def bound_by(self, target: cst.CSTNode) -> Places:
        """Return the places that a target binds, or puts something into."""
        match target:
            case cst.Name(value=name):
                return frozenset({self.place(target)} if name not in self.modules else ())
            case cst.Attribute(value=cst.Name(value=owner), attr=attr) if owner in SELF:
                return frozenset({self.place(attr)})
            case cst.Attribute(value=cst.Name() as owner, attr=attr):
                return frozenset({self.place(attr), self.place(owner)})
            case cst.Attribute(attr=attr):
                return frozenset({self.place(attr)})
            case cst.Subscript(value=value) | cst.StarredElement(value=value):
                return self.bound_by(value)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return frozenset[Place]().union(*(self.bound_by(each.value) for each in elements))
        return frozenset()

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """Return the innermost function around a node, None in the file's own code."""
        around = self.source.around(node)
        return next((each for each in around if isinstance(each, cst.FunctionDef)), None)

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the innermost statement that a node is in."""
        around = (node, *self.source.around(node))
        return next((each for each in around if isinstance(each, _STATEMENTS)), node)

    def line(self, node: cst.CSTNode) -> int:
        """Return the line on which the statement of a node begins."""
        return self.source.start(self.statement(node))[0]

    def learned_by(self, value: cst.BaseExpression) -> Places:
        """Return the places that a call goes back through, as of `scaler.scale(loss)` the loss."""
        match value:
            case cst.Call(func=function, args=args):
                given = frozenset[Place]().union(*(self.learned_by(each.value) for each in args))
                if isinstance(function, cst.Name):
                    is_own = self.is_of_object(value)
                    return given | self.read_by(function) | {CALLED} if is_own else given
                is_last = given and last_word(function) not in LEARNS
                owner = function.value if isinstance(function, cst.Attribute) else function
                return given if is_last else given | self.learned_by(owner)
        return self.read_by(value)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file, as Python counts them."""
        return re.split(r"\r\n|\r|\n", self.source.module.code)


def _flows_of(file: FileFlows, node: cst.CSTNode) -> Iterator[Flow]:
    match node:
        case cst.Assign(targets=targets, value=value):
            bound = frozenset[Place]().union(*(file.bound_by(each.target) for each in targets))
            yield Flow(node, file.read_by(value), bound)
        case (
            cst.AnnAssign(target=target, value=cst.CSTNode() as value)
            | cst.AugAssign(target=target, value=value)
            | cst.NamedExpr(target=target, value=value)
            | cst.For(target=target, iter=value)
            | cst.CompFor(target=target, iter=value)
            | cst.WithItem(item=value, asname=cst.AsName(name=target))
        ):
            yield Flow(node, file.read_by(value), file.bound_by(target))
        case (
            cst.Return(value=cst.CSTNode() as value)
            | cst.Yield(value=cst.BaseExpression() as value)
            | cst.From(item=value)
        ):
            function = file.function(node)
            if function is not None:
                name = function.name.value
                called = frozenset({CALLED} if name in CALLS else ())
                yield Flow(node, file.read_by(value), called | {file.place(function.name)})
        case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value=method)), args=args) if (
            method in CHANGES
        ):
            given = frozenset[Place]().union(*(file.read_by(each.value) for each in args))
            yield Flow(node, given, file.bound_by(held))
        case cst.ImportFrom(names=[*aliases]):
            for alias in aliases:
                if alias.asname is not None:
                    bound = frozenset({(GLOBAL, str(alias.evaluated_alias))})
                    yield Flow(node, frozenset({(GLOBAL, alias.evaluated_name)}), bound)


@lru_cache(maxsize=MOST_READ)
def flows_in(source: SourceTree) -> FileFlows:
    """Return the flows of a file, read once."""
    return FileFlows(source)


def last_word(value: cst.BaseExpression) -> str:
    """Return the last word of a dotted name, "" of anything else."""
    match value:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""


def _bound_name(alias: cst.ImportAlias) -> str:
    return (alias.evaluated_alias or alias.evaluated_name).partition(".")[0]


def _found(node: cst.CSTNode, kind: type[_Node]) -> list[_Node]:
    visitor = _Nodes(kind)
    node.visit(visitor)
    return [each for each in visitor.nodes if isinstance(each, kind)]


class _Nodes(cst.CSTVisitor):
    def __init__(self, kind: type[cst.CSTNode]) -> None:
        super().__init__()
        self._kind = kind
        self.nodes: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, self._kind):
            self.nodes.append(node)
        return True
