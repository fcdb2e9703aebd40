"""The common base of the rules that report where autograd graphs pile up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import libcst as cst

from leakcheck.model import Edit, Fix
from leakcheck.static.chain import chain
from leakcheck.static.prospects import prospects
from leakcheck.static.rule import Hit, Rule

if TYPE_CHECKING:
    from leakcheck.static.graphs import GraphLeak, GraphLeakKind
    from leakcheck.static.module import Module

# what must be in a file for graphs.py to find a leak of the kind in it
_PLACES: dict[GraphLeakKind, tuple[str, ...]] = {
    "accumulator": ("on_self", "trains", "over_data", "endless", "late"),
    "collection": ("on_self", "trains", "late"),
    "meter": ("on_self", "trains", "feeds"),
    "epoch-long": ("trains",),
    "in-place": ("in_loop",),
    "statistics": ("on_self",),
    "carried": ("on_self", "trains", "over_data"),
    "evaluation": ("over_data",),
}
TITLES = {
    ".item()": "add loss.item(): a plain number (waits for the device at every step)",
    ".detach()": "keep a detached copy: the value without its graph",
}


class GraphRule(Rule):
    """A rule about one kind of graph leak; says what the place keeps and how to cut it."""

    leak: ClassVar[GraphLeakKind]
    needs_torch: ClassVar[bool] = True
    words: ClassVar[tuple[str, ...]] = (
        "backward", "requires_grad", ".eval(", "train_step", "compute_loss",
    )  # fmt: skip

    def concerns(self, outline: ast.Module) -> bool:
        """Whether this kind of leak has a place in the file at all."""
        found, places = prospects(outline), _PLACES.get(self.leak)
        return places is None or any(getattr(found, place) for place in places)

    def check(self, module: Module) -> Iterator[Hit]:
        """Yield the module's leaks of this kind."""
        for leak in module.graph_leaks:
            if leak.leak == self.leak:
                fix = self.fix(module, leak)
                guessed = leak.feed is not None and leak.feed.guessed
                yield self.hit(
                    leak.node,
                    self.message(module, leak),
                    confidence="medium" if guessed else "high",
                    fix=fix,
                    evidence=chain(module, leak),
                )

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
