"""Where the values of one file are kept, by the names in it.

A slot is where a value is kept: a variable of one function, a global of any module, or an
attribute of this name on any object; what a function returns is in the slot of its name.
"""

from __future__ import annotations

import builtins
import collections
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import libcst as cst
from libcst.metadata import BuiltinScope, ClassScope, GlobalScope, ImportAssignment

from leakcheck.cure.reads import last_word
from leakcheck.cure.sites import SourceTree
from leakcheck.source.words import words
from leakcheck.static import torch_api

LEARNS = words("functions", "goes_back")
# methods that put in or take out, and read nothing where their result is not asked for
CHANGES = frozenset[str]().union(
    *(words("methods", each) for each in ("add", "take", "take_if_there", "clear"))
)
# what names belong to that are no function's own; what is called by a name that tensors and
# containers have is their method, whatever attribute of that name there is
ATTRIBUTE, METHOD, GLOBAL = ".", ".()", ""
_OF_TENSORS = ("cut", "plain", "values_and_indices", "reshape", "in_place_sums")
_METHODS = frozenset[str]().union(
    *(torch_api.words("methods", each) for each in _OF_TENSORS),
    *map(dir, (list, dict, set, str, collections.deque)),
)
CALLED = (METHOD, "()")  # what is called as a function and is an object: modules of a model
CALLS = ("forward", "__call__")  # what is run then
SELF = ("self", "cls")
_PROPERTIES = words("functions", "properties")
_MAKES_OBJECTS = ("__init__", "__new__", "__post_init__")
_STATEMENTS = (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)
_Node = TypeVar("_Node", bound=cst.CSTNode)
Slot = tuple[object, str]  # what the name belongs to, and the name
Slots = frozenset[Slot]


@dataclass(frozen=True, slots=True)
class ArgumentSlots:
    """The slots that take the arguments of a call."""

    in_order: tuple[Slot, ...]
    by_keyword: tuple[Slot, ...] = ()
    rest: Slot | None = None  # *args
    keywords: Slot | None = None  # **kwargs

    @property
    def all(self) -> Slots:
        """All of them."""
        stars = _some(self.rest) | _some(self.keywords)
        return stars.union(self.in_order, self.by_keyword)

    def taking(self, argument: cst.Arg, at: int) -> Slots:
        """Return the slots that may take an argument of a call, the `at`-th."""
        if argument.star:
            return self.all
        if argument.keyword is not None:
            name = argument.keyword.value
            named = frozenset(each for each in self.all if each[1] == name)
            return named or _some(self.keywords)
        return _some(self.in_order[at] if at < len(self.in_order) else self.rest)


def _some(slot: Slot | None) -> Slots:
    return frozenset() if slot is None else frozenset({slot})


@dataclass(frozen=True, eq=False)
class FileSlots:
    """The slots that one file names."""

    source: SourceTree

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
        targets = (each.target for each in self.all(cst.AssignTarget))
        rebound = {each.value for each in targets if isinstance(each, cst.Name)}
        return frozenset(map(_bound_name, imports)) - rebound

    @cached_property
    def _own(self) -> frozenset[str]:
        """The names of the functions and classes of this file."""
        functions = {each.name.value for each in self.all(cst.FunctionDef)}
        return frozenset(functions.union(each.name.value for each in self.all(cst.ClassDef)))

    @cached_property
    def handed_on(self) -> frozenset[str]:
        """The names of functions that are values here: in tables, as arguments; no properties."""
        called = {id(each.func) for each in self.all(cst.Call)}
        properties = {each.name.value for each in self.all(cst.FunctionDef) if _is_property(each)}
        words = (*self.all(cst.Name), *self.all(cst.Attribute))
        uses = (each for each in words if id(each) not in called and self._is_read(each))
        return self._own.intersection(map(last_word, uses)) - properties

    def _is_read(self, value: cst.CSTNode) -> bool:
        outer = self.source.parents.get(value)
        is_name = isinstance(outer, (cst.FunctionDef, cst.ClassDef, cst.ImportAlias, cst.Decorator))
        return not is_name and not isinstance(outer, (cst.Attribute, cst.Annotation))

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The names of the attributes that are bound in this file."""
        targets = (each.target for each in self.all(cst.AssignTarget))
        return frozenset(each.attr.value for each in targets if isinstance(each, cst.Attribute))

    @cached_property
    def values(self) -> list[cst.Name]:
        """The names that stand for values, in the order of the text."""
        return [each for each in self.all(cst.Name) if self._is_value(each)]

    def _is_value(self, name: cst.Name) -> bool:
        outer = self.source.parents.get(name)
        if isinstance(outer, cst.Attribute) and outer.attr is name:
            return True
        is_keyword = isinstance(outer, cst.Arg) and outer.keyword is name
        return not (is_keyword or name.value in self.modules or self._is_builtin(name))

    def _is_builtin(self, name: cst.Name) -> bool:
        if not hasattr(builtins, name.value):
            return False
        scope = self.source.scopes.get(name)
        found = scope[name.value] if scope is not None else ()
        return all(isinstance(each.scope, BuiltinScope) for each in found)

    def slot(self, name: cst.Name) -> Slot:
        """Return where a name's value is."""
        if name not in self._slots:
            self._slots[name] = self._slot(name)
        return self._slots[name]

    @cached_property
    def _slots(self) -> dict[cst.Name, Slot]:
        """Those that were asked for already."""
        return {}

    def _slot(self, name: cst.Name) -> Slot:
        outer = self.source.parents.get(name)
        if isinstance(outer, cst.Attribute) and outer.attr is name:
            call = self.source.parents.get(outer)
            is_called = isinstance(call, cst.Call) and call.func is outer
            owner = self._owner(outer.value)
            of_value = is_called and owner == ATTRIBUTE and name.value in _METHODS
            return (METHOD if of_value else owner, name.value)
        scope = self.source.scopes.get(name)
        for each in scope[name.value] if scope is not None else ():
            if isinstance(each, ImportAssignment) and isinstance(each.node, cst.ImportFrom):
                return (GLOBAL, _name_there(each.node, name.value))
            match each.scope:
                case GlobalScope():
                    return (GLOBAL, name.value)
                case ClassScope():
                    return (ATTRIBUTE, name.value)
            return (each.scope, name.value)
        return (GLOBAL, name.value)

    def _owner(self, value: cst.BaseExpression) -> str:
        of_module = isinstance(value, cst.Name) and value.value in self.modules
        return GLOBAL if of_module else ATTRIBUTE

    def read_by(self, node: cst.CSTNode) -> Slots:
        """Return the slots that an expression reads, and those of what the functions return."""
        if node not in self._read:
            names = (each for each in _found(node, cst.Name) if self._is_value(each))
            found = {self.slot(each) for each in names}
            calls = any(self.is_of_object(each) for each in _found(node, cst.Call))
            self._read[node] = frozenset(found | ({CALLED} if calls else set()))
        return self._read[node]

    @cached_property
    def _read(self) -> dict[cst.CSTNode, Slots]:
        """What was asked for already."""
        return {}

    def is_of_object(self, call: cst.Call) -> bool:
        """Whether an object may be called: no function of this file, import or word of Python's."""
        match call.func:
            case cst.Name(value=name):
                is_known = name in self.imported or name in self._own
                return not (is_known or hasattr(builtins, name))
            case cst.Attribute(attr=cst.Name(value=name)):
                return name in self._kept and name not in CHANGES
        return True

    def named(self, value: cst.BaseExpression) -> Slots:
        """Return the slot of a variable, an attribute, or of what an element of is asked for."""
        match value:
            case cst.Name() | cst.Attribute(attr=cst.Name()):
                name = value if isinstance(value, cst.Name) else value.attr
                return frozenset({self.slot(name)})
            case cst.Subscript(value=held):
                return self.named(held)
        return frozenset()

    def bound_by(self, target: cst.CSTNode) -> Slots:
        """Return the slots that a target binds, or puts something into."""
        match target:
            case cst.Name(value=name):
                return frozenset({self.slot(target)} if name not in self.modules else ())
            case cst.Attribute(value=cst.Name(value=owner), attr=attr) if owner in SELF:
                return frozenset({self.slot(attr)})
            case cst.Attribute(value=cst.Name() as owner, attr=attr):
                return frozenset({self.slot(attr), self.slot(owner)})
            case cst.Attribute(value=owner, attr=attr):
                return frozenset({self.slot(attr)}) | self.bound_by(owner)
            case cst.Subscript(value=value) | cst.StarredElement(value=value):
                return self.bound_by(value)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return frozenset[Slot]().union(*(self.bound_by(each.value) for each in elements))
        return frozenset()

    @cached_property
    def parameters(self) -> dict[str, list[ArgumentSlots]]:
        """What takes the arguments of a call, by the name of a function or a class."""
        found: dict[str, list[ArgumentSlots]] = {}
        for each in self.all(cst.FunctionDef):
            name, owner = each.name.value, self.owner(each)
            found.setdefault(name, []).append(self._taken_by(each))
            if name in _MAKES_OBJECTS and owner is not None:
                found.setdefault(owner.name.value, []).append(self._taken_by(each))
        for made in self.all(cst.ClassDef):
            fields = [each.target for each in made.body.body for each in _annotated(each)]
            if fields and made.name.value not in found:  # of a dataclass
                at = tuple((ATTRIBUTE, each) for each in map(last_word, fields))
                found[made.name.value] = [ArgumentSlots(at)]
        return found

    def result_of(self, function: cst.FunctionDef | None) -> Slots:
        """Return the slots of what a function returns: its name, of some methods its object."""
        if function is None:
            return frozenset()
        name, found = function.name.value, {self.slot(function.name)}
        found |= {CALLED} if name in CALLS or name in self.handed_on else set()
        if (owner := self.owner(function)) is not None:
            found |= {(ATTRIBUTE, name)} | (set() if _is_property(function) else {(METHOD, name)})
            found |= {self.slot(owner.name)} if name[:2] == name[-2:] == "__" else set()
        return frozenset(found)

    def owner(self, function: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class around a method."""
        around = self.source.around(function)
        return next((each for each in around if isinstance(each, cst.ClassDef)), None)

    def _taken_by(self, function: cst.FunctionDef) -> ArgumentSlots:
        params = function.params
        every = [*params.posonly_params, *params.params]
        bound = bool(every) and every[0].name.value in SELF
        return ArgumentSlots(
            tuple(self.slot(each.name) for each in every[bound:]),
            tuple(self.slot(each.name) for each in params.kwonly_params),
            self._of_star(params.star_arg),
            self._of_star(params.star_kwarg),
        )

    def _of_star(self, star: object) -> Slot | None:
        return self.slot(star.name) if isinstance(star, cst.Param) else None

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

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file, as Python counts them."""
        return re.split(r"\r\n|\r|\n", self.source.module.code)


def _name_there(node: cst.ImportFrom, name: str) -> str:
    """Return what a name that is imported is called where it comes from."""
    for alias in node.names if not isinstance(node.names, cst.ImportStar) else ():
        if name == (alias.evaluated_alias or alias.evaluated_name):
            return alias.evaluated_name
    return name


def _is_property(function: cst.FunctionDef) -> bool:
    return any(last_word(each.decorator) in _PROPERTIES for each in function.decorators)


def _annotated(statement: cst.BaseStatement | cst.BaseSmallStatement) -> list[cst.AnnAssign]:
    """Return the fields that a line of a class declares."""
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return [each for each in parts if isinstance(each, cst.AnnAssign)]


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
