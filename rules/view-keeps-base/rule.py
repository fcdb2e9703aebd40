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
    words = ("append(",)
    needs_torch = True

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at what loops append to containers made outside them."""
        for call in module.calls:
            loop = module.loop_of(call)
            match call:
                case cst.Call(
                    func=cst.Attribute(value=holder, attr=cst.Name(value="append")),
                    args=[cst.Arg(value=cst.Subscript(value=cst.Name(value=base)) as view)],
                ) if loop is not None and _is_view(view):
                    if _all_kept(loop.body, base) or _in_forward(module, call):
                        continue
                    several = len(view.slice) > 1  # only arrays are indexed like this
                    if _made_in(module, loop.body, base, of_array=several) and not _made_in(
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


def _made_in(
    module: Module, body: cst.CSTNode, name: str, of_torch: bool = True, of_array: bool = False
) -> bool:
    for node in shape.own_nodes(body):
        if isinstance(node, cst.Assign) and any(
            name in shape.target_names(target.target) for target in node.targets
        ):
            if not of_torch:
                return True
            value = node.value
            if isinstance(value, cst.Call):
                known = module.qualified(value.func).startswith(("torch.", "numpy."))
                return known or of_array
    return False


def _all_kept(body: cst.CSTNode, base: str) -> bool:
    """Several parts of it are appended, so it is kept as a whole on purpose."""
    parts = [
        node
        for node in shape.own_nodes(body)
        if isinstance(node, cst.Call)
        and shape.last_name(node) == "append"
        and any(shape.mentions(arg.value, base) for arg in node.args)
    ]
    return len(parts) > 1


def _in_forward(module: Module, node: cst.CSTNode) -> bool:
    """A module's method collects for its own result, which is gone after the step."""
    return shape.has_base(module, module.class_of(node), "module-classes")
