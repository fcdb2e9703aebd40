"""What is computed from what in one file, in whatever order its lines run.

A flow leads from the slots that an expression reads to those that get what it makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import libcst as cst

from leakcheck.cure.reads import last_word
from leakcheck.cure.sites import MOST_READ, SourceTree
from leakcheck.cure.slots import CALLED, CHANGES, LEARNS, FileSlots, Slot, Slots
from leakcheck.source.words import words

_PUTS_INTO_FIRST = words("functions", "heap_add") | words("functions", "heap_swap") | {"setattr"}


@dataclass(frozen=True, slots=True, eq=False)
class ValueFlow:
    """One part of the source that reads some slots and binds others."""

    node: cst.CSTNode
    reads: Slots
    binds: Slots


@dataclass(frozen=True, eq=False)
class FileFlows(FileSlots):
    """The flows within one file."""

    @cached_property
    def flows(self) -> list[ValueFlow]:
        """What is computed from what here, but for what calls hand to parameters."""
        kinds = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor)
        more = (cst.WithItem, cst.Return, cst.Yield, cst.From, cst.Call)
        nodes = (each for kind in (*kinds, *more) for each in self.all(kind))
        found = (flow for each in nodes for flow in _flows_of(self, each))
        return [each for each in found if each.binds and each.reads]

    @cached_property
    def filled(self) -> Slots:
        """The slots that something is put into, as by `x[i] = v`, `x.a = v` or `x.append(v)`."""
        calls = (each.binds for each in self.flows if isinstance(each.node, cst.Call))
        targets = (each.target for each in self.all(cst.AssignTarget))
        parts = (each for each in targets if isinstance(each, (cst.Subscript, cst.Attribute)))
        return frozenset[Slot]().union(*calls, *map(self.bound_by, parts))

    def learned_by(self, value: cst.BaseExpression) -> Slots:
        """Return the slots that a call goes back through, as of `scaler.scale(loss)` the loss."""
        match value:
            case cst.Call(func=function, args=args):
                given = frozenset[Slot]().union(*(self.learned_by(each.value) for each in args))
                if isinstance(function, cst.Name):
                    is_own = self.is_of_object(value)
                    return given | self.read_by(function) | {CALLED} if is_own else given
                is_last = given and last_word(function) not in LEARNS
                owner = function.value if isinstance(function, cst.Attribute) else function
                return given if is_last else given | self.learned_by(owner)
        return self.read_by(value)


def _flows_of(file: FileFlows, node: cst.CSTNode) -> Iterator[ValueFlow]:
    match node:
        case cst.Assign(targets=targets, value=value):
            bound = frozenset[Slot]().union(*(file.bound_by(each.target) for each in targets))
            yield ValueFlow(node, file.read_by(value), bound)
        case (
            cst.AnnAssign(target=target, value=cst.CSTNode() as value)
            | cst.AugAssign(target=target, value=value)
            | cst.NamedExpr(target=target, value=value)
            | cst.For(target=target, iter=value)
            | cst.CompFor(target=target, iter=value)
            | cst.WithItem(item=value, asname=cst.AsName(name=target))
        ):
            yield ValueFlow(node, file.read_by(value), file.bound_by(target))
        case (
            cst.Return(value=cst.CSTNode() as value)
            | cst.Yield(value=cst.BaseExpression() as value)
            | cst.From(item=value)
        ):
            yield ValueFlow(node, file.read_by(value), file.result_of(file.function(node)))
        case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value=method)), args=args) if (
            method in CHANGES or (method[-1] == "_" != method[-2:-1])  # as torch names what it does
        ):
            given = frozenset[Slot]().union(*(file.read_by(each.value) for each in args))
            yield ValueFlow(node, given, file.bound_by(held))
        case cst.Call(func=function, args=[first, *rest]) if (
            last_word(function) in _PUTS_INTO_FIRST
        ):
            given = frozenset[Slot]().union(*(file.read_by(each.value) for each in rest))
            yield ValueFlow(node, given, file.bound_by(first.value))


@lru_cache(maxsize=MOST_READ)
def flows_in(source: SourceTree) -> FileFlows:
    """Return the flows of a file, read once."""
    return FileFlows(source)
