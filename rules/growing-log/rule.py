"""A per-step method appends to a list on self that nothing ever cuts."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class GrowingLog(Rule):
    """Histories of dicts, tensors and objects that are kept for the whole run."""

    code = "LK305"
    summary = "a history gets an entry at every step and is never cut"
    help = "write it out and clear it, or use collections.deque(maxlen=...)"
    default = False
    severity = "info"
    words = ("append(",)

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each append to a container of self in a method that runs at every step."""
        for call in module.calls:
            name = _appended(call)
            method = shape.method_of(module, call)
            owner = module.class_of(call)
            if not name or method is None or owner is None:
                continue
            if not _runs_per_step(method) or name not in growth.class_containers(module, owner):
                continue
            if _heavy(module, method, call.args[0].value) and not growth.bounded(module, name):
                yield self.hit(call, f"`self.{name}` gets an entry each time and is never cut")


def _appended(call: cst.Call) -> str:
    match call:
        case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="append")), args=[_]):
            spelled = dotted(holder)
            if spelled.startswith("self.") and spelled.count(".") == 1:
                return spelled[5:]
    return ""


def _runs_per_step(method: cst.FunctionDef) -> bool:
    name = method.name.value
    return name in shape.api("step-methods") or name in shape.api("log-methods")


def _heavy(module: Module, method: cst.FunctionDef, value: cst.BaseExpression) -> bool:
    """A dict, a tensor, or a local name that is one; a number or a text is not."""
    match value:
        case cst.Dict():
            return bool(value.elements)
        case cst.Call():
            if shape.last_name(value) in ("item", "float", "int", "len", "str", "tolist", "round"):
                return False
            return shape.last_name(value) in ("detach", "clone", "cpu", "deepcopy", "dict", "copy")
        case cst.Name(value=name):
            return any(
                isinstance(node, cst.Assign)
                and isinstance(node.value, (cst.Dict, cst.Call))
                and _names_it(node, name)
                and _heavy(module, method, node.value)
                for node in shape.own_nodes(method)
            ) or _filled_as_dict(method, name)
    return False


def _names_it(assign: cst.Assign, name: str) -> bool:
    return any(name in shape.target_names(target.target) for target in assign.targets)


def _filled_as_dict(method: cst.FunctionDef, name: str) -> bool:
    """`entry = {}` and then `entry["loss"] = ...`."""
    made = slots = False
    for node in shape.own_nodes(method):
        if isinstance(node, cst.Assign):
            made |= _names_it(node, name) and isinstance(node.value, cst.Dict)
            slots |= any(
                isinstance(t.target, cst.Subscript) and dotted(t.target.value) == name
                for t in node.targets
            )
    return made and slots
