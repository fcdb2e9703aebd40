"""The common base of the rules that report where autograd graphs pile up."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import libcst as cst

from leakcheck.model import Confidence, Edit, Evidence, EvidenceRole, Fix
from leakcheck.static.cuts import TITLES, Cut, takes_method
from leakcheck.static.flow.analysis import analysis_of
from leakcheck.static.flow.bearing import asks_for_gradients, becomes_much
from leakcheck.static.flow.graphs import graph_leaks
from leakcheck.static.flow.prospects import prospects
from leakcheck.static.rule import Hit, Rule

if TYPE_CHECKING:
    from leakcheck.static.flow.graphs import GraphLeak
    from leakcheck.static.flow.records import GraphLeakKind
    from leakcheck.static.module import Module

# what must be in a file for graphs.py to find a leak of the kind in it
_PLACES: dict[GraphLeakKind, tuple[str, ...]] = {
    "accumulator": ("on_self", "trains", "runs_on", "late"),
    "collection": ("on_self", "trains", "late"),
    "meter": ("on_self", "trains", "feeds"),
    "epoch-long": ("trains",),
    "in-place": ("in_loop",),
    "statistics": ("on_self",),
    "carried": ("on_self", "trains", "evaluates", "samples"),
    "evaluation": ("evaluates", "catches"),
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
        for leak in graph_leaks(module):
            if leak.leak == self.leak:
                fix = self.fix(module, leak)
                yield self.hit(
                    leak.node,
                    self.message(module, leak),
                    severity="warning" if leak.relieved else None,
                    confidence=_confidence(module, leak),
                    fix=fix,
                    evidence=_evidence(module, leak),
                )

    @abstractmethod
    def message(self, module: Module, leak: GraphLeak) -> str:
        """Say what grows, in one line."""

    def fix(self, module: Module, leak: GraphLeak) -> Fix | None:
        """Offer edits that remove the leak; None where only advice is safe."""
        return None


def _confidence(module: Module, leak: GraphLeak) -> Confidence:
    """Say how sure it is that graphs pile up, and that they become many."""
    if leak.leak in ("accumulator", "collection") and not becomes_much(leak.flow, leak.growth):
        return "low"
    if leak.leak == "in-place" and not asks_for_gradients(module):
        return "low"
    return "medium" if leak.feed is not None and leak.feed.guessed else "high"


def cut(module: Module, node: cst.BaseExpression | None, by: Cut, safety: str) -> Fix | None:
    """Edit an expression to end its graph: `loss.item()`, `(a + b).detach()`."""
    if node is None:
        return None
    edits: tuple[Edit, ...] = (module.insert_after(node, f".{by}()"),)
    if not takes_method(node):
        edits = (module.insert_before(node, "("), module.insert_after(node, f").{by}()"))
    return Fix(TITLES[by], edits, "unsafe" if safety == "unsafe" else "safe")


def _evidence(module: Module, leak: GraphLeak) -> tuple[Evidence, ...]:
    """Return the places of a leak: the call that makes the graph, the one handed it, the keeper.

    They stand in the order of the flow; there are none where one function shows all by itself.
    """
    handed = leak.feed.call if leak.feed is not None else leak.node
    across = handed is not leak.growth.node
    if not across and not leak.growth.per_call:
        return ()
    found = [*_makers(module, leak)]
    if across:
        found.append(_place(module, handed, "handed"))
    home = _home(module, leak.growth.node)
    if home is not None:
        place = home.location(leak.growth.node)
        found.append(Evidence(place, "kept", leak.growth.target))
    return tuple(found) if len({each.location for each in found}) > 1 else ()


def _makers(module: Module, leak: GraphLeak) -> Iterator[Evidence]:
    """Yield the first call of this file that the value was computed from."""
    value = leak.feed.argument if leak.feed is not None else leak.growth.added
    origins = value.contents.origins
    for call in module.calls:
        if id(call) in origins:
            yield _place(module, call, "graph")
            return


def _place(module: Module, node: cst.CSTNode, role: EvidenceRole) -> Evidence:
    called = node.func if isinstance(node, cst.Call) else node
    return Evidence(module.location(node), role, analysis_of(module).code(called))


def _home(module: Module, node: cst.CSTNode) -> Module | None:
    """Return the parsed module that a node is in."""
    others = module.project.parsed if module.project is not None else ()
    return next((each for each in (module, *others) if each.parent(node) is not None), None)
