"""Registry.instances.append(self) in a constructor: the class keeps all its instances."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.queries import growth
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class InstanceRegistry(Rule):
    """Containers of a class or module that every new instance files itself in."""

    code = "LK307"
    summary = "every instance files itself in a list of its class and never leaves it"
    help = "use weakref.WeakSet, or take the instance out when it is done"
    words = ("append(self)", "add(self)")
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each append of self inside a constructor."""
        if "torch" not in module.source:
            return
        for call in module.calls:
            method = shape.method_of(module, call)
            if method is None or method.name.value != "__init__" or not _adds_self(call):
                continue
            assert isinstance(call.func, cst.Attribute)
            name = _class_level(module, call, call.func.value)
            # what a container holds is never finalized
            if name and not growth.bounded(module, name, but_in="__del__"):
                yield self.hit(call, f"`{name}` keeps every instance that was ever made")


def _adds_self(call: cst.Call) -> bool:
    match call:
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="append" | "add")),
            args=[cst.Arg(value=cst.Name(value="self"))],
        ):
            return True
    return False


def _class_level(module: Module, call: cst.Call, holder: cst.BaseExpression) -> str:
    """The name of a container that is made at class or module level; empty when it is not."""
    while isinstance(holder, cst.Subscript):
        holder = holder.value
    spelled = dotted(holder)
    if spelled in growth.module_containers(module):
        return spelled
    owner = module.class_of(call)
    word = spelled.rpartition(".")[2]
    if owner is None or "." not in spelled or word not in growth.class_containers(module, owner):
        return ""
    made = growth.class_containers(module, owner)[word]
    return word if module.function_of(made) is None else ""
