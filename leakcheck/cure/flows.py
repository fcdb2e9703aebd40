"""What is computed from what in one file, by the last words of names, and in which statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from leakcheck.cure.reads import bound_names, last_part
from leakcheck.cure.sites import SourceTree
from leakcheck.source.words import words

LEARNS = words("functions", "goes_back")
# methods that put in or take out, and read nothing where their result is not asked for
CHANGES = frozenset[str]().union(
    *(words("methods", each) for each in ("add", "take", "take_if_there", "clear"))
)
_NO_VALUES = frozenset({"torch", "autograd", "self", "True", "False", "None", *LEARNS})
_STATEMENTS = (cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.BaseCompoundStatement)


@dataclass(frozen=True, eq=False)
class Flows:
    """The flows of values of one file; a name stands for all of that name."""

    source: SourceTree

    def derived(self, names: set[str]) -> set[str]:
        """Return names and those of what is computed from them, in this file."""
        while True:
            found = set[str]().union(*(bound for _, read, bound in self.flows if read & names))
            if names.issuperset(found):
                return names
            names = names | found

    @cached_property
    def flows(self) -> list[tuple[cst.CSTNode, set[str], set[str]]]:
        """What is computed from what: parts of the source with the names they read and bind."""
        kinds = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)
        nodes = [
            each
            for kind in (*kinds, cst.WithItem, cst.Return, cst.Call)
            for each in self.source.all(kind)
        ]
        found = ((each, *self.flow(each)) for each in nodes)
        return [(node, read, bound) for node, read, bound in found if bound]

    def flow(self, node: cst.CSTNode) -> tuple[set[str], set[str]]:
        """Return the names that a part of the source reads, and those that get what it makes."""
        match node:
            case cst.Assign(targets=targets, value=value):
                bound = set[str]().union(*(self._held_by(each.target) for each in targets))
                return self.names_in(value), bound
            case cst.AnnAssign(target=target, value=cst.CSTNode() as value):
                return self.names_in(value), self._held_by(target)
            case (
                cst.AugAssign(target=target, value=value)
                | cst.NamedExpr(target=target, value=value)
            ):
                return self.names_in(value), self._held_by(target)
            case cst.For(target=target, iter=value) | cst.CompFor(target=target, iter=value):
                return self.names_in(value), self._held_by(target)
            case cst.WithItem(item=value, asname=cst.AsName(name=target)):
                return self.names_in(value), self._held_by(target)
            case cst.Return(value=cst.CSTNode() as value):
                function = self.function(node)
                return self.names_in(value), {function.name.value} if function else set()
            case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value=method)), args=args):
                given = set[str]().union(*(self.names_in(each.value) for each in args))
                return given, self._held_by(held) if method in CHANGES else set()
        return set(), set()

    def _held_by(self, target: cst.BaseExpression) -> set[str]:
        """Return the last words of the names that a target binds, or puts something into."""
        if isinstance(target, cst.Subscript):
            return self._held_by(target.value)
        return {last_part(name) for name in bound_names(target, self.source)}

    @cached_property
    def bound(self) -> dict[cst.CSTNode, set[str]]:
        """The names that get what each statement makes, without those of the statements in it."""
        found: dict[cst.CSTNode, set[str]] = {}
        for node, _, bound in self.flows:
            found.setdefault(self.statement(node), set()).update(bound)
        return found

    def names_in(self, node: cst.CSTNode) -> set[str]:
        """Return the names in a part of the source, without the module torch."""
        return {each.value for each in mentions(node)} - _NO_VALUES

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

    def values_in(self, value: cst.BaseExpression) -> set[str]:
        """Return the names of what a call goes back through: of `scaler.scale(loss)` the loss."""
        match value:
            case cst.Call(func=function, args=args):
                given = set[str]().union(
                    *(self.values_in(each.value) for each in args if each.keyword is None)
                )
                owner = function.value if isinstance(function, cst.Attribute) else None
                return given or (self.values_in(owner) if owner is not None else given)
            case cst.BinaryOperation(left=left, right=right):
                return self.values_in(left) | self.values_in(right)
        return self.names_in(value)


def mentions(node: cst.CSTNode) -> list[cst.Name]:
    """Return the names in a part of the source."""
    found = _Names()
    node.visit(found)
    return found.nodes


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[cst.Name] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.nodes.append(node)
