"""kept.append(batch[0]): the row is a view, and a view keeps the whole batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import dotted


class ViewKeepsBase(Rule):
    """Slices of per-iteration arrays that are collected without a copy."""

    code = "LK309"
    summary = "a kept slice of a tensor or array keeps the whole of it"
    help = "append a copy: .clone() of a tensor, .copy() of an array"
    default = False
    severity = "info"

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what loops append to containers made outside them."""
        for call in module.calls:
            loop = module.loop_of(call)
            match call:
                case cst.Call(
                    func=cst.Attribute(value=holder, attr=cst.Name(value="append")),
                    args=[cst.Arg(value=cst.Subscript(value=cst.Name(value=base)) as view)],
                ) if loop is not None and _is_view(view):
                    if _made_in(module, loop.body, base) and not _made_in(
                        module, loop.body, dotted(holder), of_torch=False
                    ):
                        yield self.hit(call, f"the slice keeps all of `{base}`")


def _is_view(subscript: cst.Subscript) -> bool:
    """Indices that are constants or slices give views; computed ones may gather."""
    return all(
        not isinstance(element.slice, cst.Index)
        or isinstance(element.slice.value, (cst.Integer, cst.UnaryOperation, cst.Ellipsis))
        for element in subscript.slice
    )


def _made_in(module: Module, body: cst.CSTNode, name: str, of_torch: bool = True) -> bool:
    for node in shape.own_nodes(body):
        if isinstance(node, cst.Assign) and any(
            name in shape.target_names(target.target) for target in node.targets
        ):
            if not of_torch:
                return True
            value = node.value
            if isinstance(value, cst.Call):
                return module.qualified(value.func).startswith(("torch.", "numpy."))
    return False
