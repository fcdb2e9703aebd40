"""The common base of the rules that report where autograd graphs pile up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import libcst as cst

from leakcheck.model import Edit, Fix
from leakcheck.static.rule import Hit, Rule

if TYPE_CHECKING:
    from leakcheck.static.graphs import GraphLeak, Leak
    from leakcheck.static.module import Module

TITLES = {
    ".item()": "add loss.item(): a plain number (waits for the device at every step)",
    ".detach()": "keep a detached copy: the value without its graph",
}


class GraphRule(Rule):
    """A rule about one kind of graph leak; says what the place keeps and how to cut it."""

    leak: ClassVar[Leak]
    needs_torch: ClassVar[bool] = True
    words: ClassVar[tuple[str, ...]] = (
        "backward", "requires_grad", ".eval(", "train_step", "compute_loss",
    )  # fmt: skip

    def concerns(self, outline: ast.Module) -> bool:
        """Whether anything grows in a loop or on self."""
        return grows_somewhere(outline)

    def check(self, module: Module) -> Iterator[Hit]:
        """Yield the module's leaks of this kind."""
        for leak in module.graph_leaks:
            if leak.leak == self.leak:
                fix = self.fix(module, leak)
                yield self.hit(leak.node, self.message(module, leak), fix=fix)

    def message(self, module: Module, leak: GraphLeak) -> str:
        """Say what grows, in one line."""
        raise NotImplementedError

    def fix(self, module: Module, leak: GraphLeak) -> Fix | None:
        """Offer edits that remove the leak; None where only advice is safe."""
        return None


def cut(module: Module, node: cst.BaseExpression | None, by: str, safety: str) -> Fix | None:
    """Edit an expression to end its graph: `loss.item()`, `(a + b).detach()`."""
    if node is None:
        return None
    title = TITLES[by]
    simple = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call)) or bool(
        getattr(node, "lpar", ())
    )
    edits: tuple[Edit, ...] = (module.insert_after(node, by),)
    if not simple:
        edits = (module.insert_before(node, "("), module.insert_after(node, f"){by}"))
    return Fix(title, edits, "unsafe" if safety == "unsafe" else "safe")


def grows_somewhere(outline: ast.Module) -> bool:
    """Whether a loop adds to something, or a method to self: nothing else can pile up."""
    for node in ast.walk(outline):
        if isinstance(node, ast.AugAssign) or _mixes_itself(node):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _GROWING:
            return True
    return False


_GROWING = frozenset(
    {"append", "extend", "insert", "appendleft", "update", "add_", "mul_", "lerp_"}
)


def _mixes_itself(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    if isinstance(node.value, (ast.Call, ast.BinOp)):
        return True
    return any(isinstance(target, ast.Subscript) for target in node.targets)
