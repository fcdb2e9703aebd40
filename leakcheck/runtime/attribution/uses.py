"""Where is a name used, and what is around each use?"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from leakcheck.runtime.attribution.emptying import has_own
from leakcheck.runtime.attribution.names import FUNCTIONS, LOOPS, is_around

_TAKING = """
clean clear close compact consume cull cut delattr delete difference discard drain drop evict expire
flush forget gc heappop intersection limit pop prune purge release remove reset retire shrink sweep
thin trim truncate
"""
_WORDS = frozenset(_TAKING.split())
Kinds = tuple[type[ast.expr], ...]  # variables, attributes or both


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a name, and what is `above` each node."""

    node: ast.Name | ast.Attribute
    name: str
    above: Mapping[ast.AST, ast.AST]

    @property
    def context(self) -> ast.expr_context:
        """Whether it is read, set or deleted."""
        return self.node.ctx

    @property
    def statement(self) -> ast.stmt:
        """The statement that it is in."""
        return next(node for node in self.around() if isinstance(node, ast.stmt))

    @property
    def is_in_loop(self) -> bool:
        """Whether a loop of the same file takes turns around it."""
        return any(isinstance(node, LOOPS) for node in self.around())

    def is_after_loop(self, line: int) -> bool:
        """Whether it comes once, before or after the loop that a line is in: `rows.clear()`."""
        around = list(self.around())
        function = next((node for node in around if isinstance(node, FUNCTIONS)), None)
        if self.is_in_loop or (function is not None and not is_around(function, line)):
            return False
        loops = (node for node in ast.walk(function or around[-1]) if isinstance(node, LOOPS))
        return any(is_around(loop, line) for loop in loops)

    def around(self) -> Iterator[ast.AST]:
        """Yield what is around it, the nearest first."""
        node = self.above.get(self.node)
        while node is not None:
            yield node
            node = self.above.get(node)


def uses_in(scope: ast.AST, name: str, kinds: Kinds) -> Iterator[Use]:
    """Yield the uses in statements of a name, but for variables that are a function's own."""
    above = {part: node for node in ast.walk(scope) for part in ast.iter_child_nodes(node)}
    for node in above:
        match node:
            case ast.Name(id=named) | ast.Attribute(attr=named) if named == name:
                use = Use(node, name, above)
                if isinstance(node, kinds) and not _is_own(use, scope):
                    yield use


def _is_own(use: Use, scope: ast.AST) -> bool:
    functions = (each for each in use.around() if isinstance(each, FUNCTIONS))
    others = (each for each in functions if each is not scope)
    return isinstance(use.node, ast.Name) and any(has_own(each, use.name) for each in others)


def is_said_to_take(function: str) -> bool:
    """Say whether the name of a function says that it takes something away: `drop_oldest`."""
    return not _WORDS.isdisjoint(function.lower().split("_"))
