"""itertools.cycle over a loader keeps a copy of every batch of the first pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.rule import Hit, Rule
from leakcheck.static.syntax import outline_nodes_of


class CycledLoader(Rule):
    """itertools.cycle whose argument is a DataLoader, or plainly a loader by its name."""

    code = "LK501"
    summary = "itertools.cycle keeps every batch of the loader's first pass"
    help = "loop in a generator: while True: yield from loader"
    words = ("cycle",)
    needs_torch = True

    def concerns(self, outline: ast.Module) -> bool:
        """Only a file that imports a `cycle`, or takes it from a module, can matter."""
        imported = (alias.name for alias in outline_nodes_of(outline, ast.alias))
        taken = (node.attr for node in outline_nodes_of(outline, ast.Attribute))
        return "cycle" in imported or "cycle" in taken

    def check(self, module: Module) -> Iterator[Hit]:
        """Look at each call of itertools.cycle."""
        for call in module.calls_of("itertools.cycle"):
            if call.args and shape.loader_like(
                module, call.args[0].value, module.function_of(call)
            ):
                yield self.hit(call, "the whole data set is kept, and replayed in the same order")
