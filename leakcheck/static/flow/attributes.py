"""What happens to an attribute of self between two calls: read, reset, or differentiated?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from leakcheck.static import syntax
from leakcheck.static.facts.link import Linked, Member
from leakcheck.static.facts.model import Expr
from leakcheck.static.flow.prospects import SETTING_UP
from leakcheck.static.flow.records import GrowingPlace
from leakcheck.static.shape import api

if TYPE_CHECKING:
    from leakcheck.static.flow.classes import ClassInfo
    from leakcheck.static.flow.walk import Flow

_RESETTING = re.compile(r"_?reset")


def attribute_of(growth: GrowingPlace) -> str:
    """Name the attribute of self that grows."""
    return re.split(r"[.\[]", growth.target.removeprefix("self."))[0]


def differentiated(owner: ClassInfo, attribute: str) -> bool:
    """Whether a method of the class, or a caller of one, backwards what the attribute holds."""
    for call, method in owner.answers.items():
        function = owner.methods.get(method)
        evident = any(call in origins for origins in owner.evidence)
        if evident and function is not None and _returns(owner, function, attribute):
            return True
    for function in owner.methods.values():
        flow = owner.analysis.flow(function)
        passes = (*flow.backwards, *flow.differentiations) if flow is not None else ()
        if any(f"self.{attribute}" in p.value.entries for p in passes):
            return True
    return False


def reassigned(flow: Flow, attribute: str, node: cst.CSTNode, *, statistics: bool = False) -> bool:
    """Whether the attribute is given another value, or emptied, between two calls.

    Looks at the class's other methods and those of its bases, set-up aside (and for statistics a
    reset, unless the project resets whatever module has one), and at code outside of it that writes
    `object.attribute`.
    """
    module = flow.module
    resets_too = statistics and not _resets_modules(module.facts)
    own = [flow.owner.node if flow.owner else None]
    if module.parent(node) is not None:  # in a class below the one that hands the value on
        own.append(module.class_of(node))
    statements: list[cst.Assign | cst.Del] = [*module.nodes(cst.Assign), *module.nodes(cst.Del)]
    for statement in statements:
        function = module.function_of(statement)
        if statement is node or function is flow.scope or _grows(flow, function, statement):
            continue
        inside = any(module.class_of(statement) is each for each in own)
        if inside and function is not None and sets_up(function, resets_too=resets_too):
            continue
        for target in _targets(statement):
            if _sets(target, attribute) and (inside or not _is_of_self(target)):
                return True
    if any(_empties(flow, call, attribute) for call in module.calls):
        return True
    return _is_set_by_base(flow, attribute, resets_too=resets_too)


def _is_of_self(target: cst.BaseExpression) -> bool:
    """Whether another class writes an attribute of its own: `self.x`, not `self.cell.x`."""
    while isinstance(target, cst.Subscript):
        target = target.value
    return syntax.dotted(target).rpartition(".")[0] == "self"


def _resets_modules(linked: Linked) -> bool:
    """Whether a function calls `reset` of each part of a model, as before every sequence."""
    return any(
        call.spelled.count(".") == 1 and call.receiver != Expr("name", "self")
        for facts, call in linked.calls_of("reset")
        if any(each.method in api("layers") for each in facts.calls_in(call.function))
    )


def _is_set_by_base(flow: Flow, attribute: str, *, resets_too: bool) -> bool:
    linked = flow.module.facts
    own = linked.facts.class_named(flow.owner.node.name.value) if flow.owner else None
    for base in linked.lineage(Member(linked, own))[1:] if own is not None else ():
        methods = {index: name for name, index in base.facts.methods.items()}
        for use in base.file.facts.uses_by_name.get(attribute, ()):
            name = methods.get(use.function, "")
            written = use.role == "bind" and use.holder == "self" and bool(name)
            if written and not _sets_up(name, resets_too=resets_too):
                return True
    return False


def _grows(flow: Flow, function: cst.FunctionDef | None, statement: cst.CSTNode) -> bool:
    """Whether the statement is itself a place that grows."""
    other = flow.analysis.flow(function) if function is not None else None
    return other is not None and any(id(statement) == key[0] for key in other.growths)


def sets_up(function: cst.FunctionDef, *, resets_too: bool = False) -> bool:
    """Whether a method gives attributes their first values."""
    return _sets_up(function.name.value, resets_too=resets_too)


def _sets_up(name: str, *, resets_too: bool) -> bool:
    return bool(SETTING_UP.match(name) or (resets_too and _RESETTING.match(name)))


def _empties(flow: Flow, call: cst.Call, attribute: str) -> bool:
    """Whether a call empties what the attribute holds, or cuts its graph in another function."""
    match call.func:
        case cst.Attribute(value=cst.Attribute(attr=cst.Name(value=name)), attr=cst.Name(value=m)):
            cuts = m == "detach_" and flow.module.function_of(call) is not flow.scope
            return name == attribute and (cuts or m in ("clear", "pop", "popleft"))
    return False


def _targets(statement: cst.Assign | cst.Del) -> list[cst.BaseExpression]:
    if isinstance(statement, cst.Del):
        return [statement.target]
    return [target.target for target in statement.targets]


def _sets(target: cst.BaseExpression, attribute: str) -> bool:
    if isinstance(target, cst.Tuple):
        return any(_sets(element.value, attribute) for element in target.elements)
    while isinstance(target, cst.Subscript):
        target = target.value
    return isinstance(target, cst.Attribute) and target.attr.value == attribute


def is_buffer(owner: ClassInfo, attribute: str) -> bool:
    """Whether the class registers the attribute as a buffer: state that nothing differentiates."""
    calls = (c for c in owner.analysis.module.calls if syntax.dotted(c.func).endswith("_buffer"))
    mine = (c for c in calls if owner.analysis.module.class_of(c) is owner.node and c.args)
    return any(syntax.constant(call.args[0].value) == attribute for call in mine)


def returned_by_methods(owner: ClassInfo, attribute: str) -> bool:
    """Whether a method other than forward gives back what the attribute holds."""
    others = (function for name, function in owner.methods.items() if name != "forward")
    return any(_returns(owner, function, attribute) for function in others)


def _returns(owner: ClassInfo, function: cst.FunctionDef, attribute: str) -> bool:
    flow = owner.analysis.flow(function)
    returned = flow.returned if flow is not None else []
    return any(f"self.{attribute}" in value.contents.entries for value in returned)
