"""A descriptor or container that does not close when it is dropped, and is never closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.facts.resources import abandoned, acquired
from leakcheck.static.module import Module
from leakcheck.static.names import table
from leakcheck.static.queries import lifetime
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class UnclosedHandle(Rule):
    """os.open, av.open and the like, bound to a local name that nobody closes."""

    code = "LK602"
    summary = "a handle that stays open when it is dropped is never closed"
    help = "use it in a with block, or close it in a finally"
    words = ("os.open", "os.dup", "av.open", "import open", "memfd_create", "av.container")

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each call that opens something."""
        closes = cast("dict[str, list[str]]", table("resource_api")["closes"])
        lost: dict[cst.Assign, str] = {}
        for call in module.calls:
            closers = closes.get(module.qualified(call.func))
            if closers is None:
                continue
            function = module.function_of(call)
            name = lifetime.bound_name(module, call)
            if name and function is not None:
                harmless = ("os.", "fcntl.", "np.", "numpy.", *_READERS)
                if lifetime.fate(module, function, name, closers, harmless) == "left open":
                    yield self.hit(call, f"`{name}` is never closed")
            elif attribute := _own_attribute(module, call):
                for overwrite in _overwritten(module, call, attribute):
                    lost.setdefault(overwrite, attribute)
        for overwrite, attribute in lost.items():
            yield self.hit(overwrite, f"`{attribute}` is overwritten while still open")
        linked = module.facts
        for given in linked.facts.calls:
            if given.qualified in closes or not acquired(linked, given, _CLOSING_THEMSELVES):
                continue
            if abandoned(linked, given, ("close",), _READERS):
                yield self.hit(given.at, f"`{given.bound}` is never closed", confidence="medium")


_CLOSING_THEMSELVES = ("av.open", "av.container.open")  # by a method, not by a function


_READERS = ("len", "print", "iter", "list", "enumerate", "next", "range", "str", "int")


def _own_attribute(module: Module, call: cst.Call) -> str:
    above = module.parent(call)
    if isinstance(above, cst.Assign) and len(above.targets) == 1:
        spelled = dotted(above.targets[0].target)
        return spelled if spelled.startswith("self.") else ""
    return ""


def _overwritten(module: Module, call: cst.Call, attribute: str) -> Iterator[cst.Assign]:
    """`self.fd = -1` in a method that does not close `self.fd` first."""
    owner = module.class_of(call)
    for method in module.methods(owner).values() if owner is not None else ():
        if method.name.value == "__init__":
            continue
        touched = False
        for node in shape.own_nodes(method):
            if isinstance(node, (cst.Call, cst.Return)) and shape.mentions(node, attribute):
                touched = True
            if isinstance(node, cst.Assign) and dotted(node.value) == attribute:
                touched = True  # under another name it may yet be closed
            if isinstance(node, cst.Assign) and not touched and _forgets(node, attribute):
                yield node


def _is_constant(node: cst.Assign) -> bool:
    """`self.fd = INVALID_FD`."""
    return dotted(node.value).isupper()


def _forgets(node: cst.Assign, attribute: str) -> bool:
    nothing = isinstance(node.value, (cst.Integer, cst.UnaryOperation)) or (
        isinstance(node.value, cst.Name) and (node.value.value == "None" or _is_constant(node))
    )
    return nothing and any(dotted(target.target) == attribute for target in node.targets)
