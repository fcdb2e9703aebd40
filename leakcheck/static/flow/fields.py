"""Objects that are but named slots: namedtuples, NamedTuples and dataclasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.flow.values import NONE, Ids, Value, join_all

if TYPE_CHECKING:
    from leakcheck.static.flow.arguments import Arguments
    from leakcheck.static.flow.classes import ClassInfo
    from leakcheck.static.module import Module

_TUPLE_BASES = frozenset({"typing.NamedTuple"})
_DATACLASS = frozenset({"dataclasses.dataclass"})


def tuple_fields(module: Module) -> dict[str, list[str]]:
    """Map the module's `Name = namedtuple("Name", [...])` to their fields."""
    found: dict[str, list[str]] = {}
    for call in module.calls_of("collections.namedtuple"):
        above = module.parent(call)
        listed = syntax.argument(call, "field_names", 1)
        if listed is not None and isinstance(above, cst.Assign):
            name = syntax.dotted(above.targets[0].target)
            found[name] = _names_in(listed.value)
    return found


def class_fields(info: ClassInfo) -> list[str]:
    """Name the fields of a dataclass or NamedTuple; empty for other classes."""
    module = info.analysis.module
    marks = (mark.decorator for mark in info.node.decorators)
    calls = (mark.func if isinstance(mark, cst.Call) else mark for mark in marks)
    is_dataclass = any(module.qualified(call) in _DATACLASS for call in calls)
    if not is_dataclass and not _TUPLE_BASES & set(module.bases(info.node)):
        return []
    found = []
    for line in info.node.body.body:
        match line:
            case cst.SimpleStatementLine(body=[cst.AnnAssign(target=cst.Name(value=name)), *_]):
                found.append(name)
    return found


def filled(
    fields: list[str], arguments: Arguments, born: Ids, owner: ClassInfo | None = None
) -> Value:
    """Return a new object with its fields set; one of them may be any argument after `*args`."""
    made = Value(NONE, "object" if owner is not None else "tuple", born=born, ref=owner)
    if arguments.spread:
        return made.with_slot(..., join_all(value.contents for value in arguments.all))
    for place, (name, value) in enumerate(zip(fields, arguments.positional, strict=False)):
        made = made.with_slot(name, value).with_slot(place, value)
    for name, value in arguments.named.items():
        if name in fields:
            made = made.with_slot(name, value).with_slot(fields.index(name), value)
    return made


def _names_in(node: cst.BaseExpression) -> list[str]:
    if isinstance(node, (cst.List, cst.Tuple)):
        names = [syntax.constant(element.value) for element in node.elements]
        return [name for name in names if isinstance(name, str)]
    spelled = syntax.constant(node)
    return spelled.replace(",", " ").split() if isinstance(spelled, str) else []
