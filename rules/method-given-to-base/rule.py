"""super().__init__(self.method): the base class will most likely store it, which closes a cycle."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import hooks
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule


class MethodGivenToBase(Rule):
    """Bound methods and closures over `self` passed to the base class's constructor."""

    code = "LK209"
    summary = "a bound method is given to the base class, whose constructor may store it on self"
    help = "override a method of the base class instead, or pass a weakref.WeakMethod"
    severity = "info"
    words = ("super",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at the arguments of each call of a base constructor."""
        if "torch" not in module.source:
            return
        for call in module.calls:
            match call.func:
                case cst.Attribute(
                    value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")
                ):
                    if any(hooks.holds_self(module, arg.value, call) for arg in call.args):
                        yield self.hit(
                            call,
                            "if the base class stores it, the object holds itself",
                            confidence="medium",
                        )
