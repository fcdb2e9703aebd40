"""How a graph is cut: the rows that the fixes of rules and the edits that `fix` tries share."""

from __future__ import annotations

from typing import Literal

import libcst as cst

Cut = Literal["item", "detach", "graph"]
TITLES: dict[Cut, str] = {
    "item": "keep the number: .item()",  # waits for the device at every step
    "detach": "keep the value without its graph: .detach()",
    "graph": "let backward free the graph",
}
GRAPH_ARGUMENTS = ("retain_graph", "create_graph")


def takes_method(value: cst.BaseExpression) -> bool:
    """Say whether a method can be called on an expression as it is written, without brackets."""
    simple = isinstance(value, (cst.Name, cst.Attribute, cst.Subscript, cst.Call))
    return simple or bool(getattr(value, "lpar", ()))
