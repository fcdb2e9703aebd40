"""Where a leak is in the source: the statements on a line and the loops around them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import libcst as cst
from libcst.metadata import (
    CodeRange,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    Scope,
    ScopeProvider,
)

from leakcheck.model import Holder, Suspect

if TYPE_CHECKING:
    from leakcheck.static.module import LoopNode

MOST_READ = 80  # files that are kept parsed
_Node = TypeVar("_Node", bound=cst.CSTNode)
_SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.Module)


@dataclass(frozen=True, slots=True, eq=False)
class SourceTree:
    """One file as a tree that knows places and parents."""

    module: cst.Module
    ranges: Mapping[cst.CSTNode, CodeRange]
    parents: Mapping[cst.CSTNode, cst.CSTNode]
    wrapper: MetadataWrapper

    @property
    def scopes(self) -> Mapping[cst.CSTNode, Scope | None]:
        """The scope of each node: computed once, when it is asked for."""
        return self.wrapper.resolve(ScopeProvider)

    def all(self, kind: type[_Node]) -> list[_Node]:
        """Return the nodes of a kind, in the order of the text."""
        found = [node for node in self.ranges if isinstance(node, kind)]
        return sorted(found, key=self.start)

    def small_statements(self) -> list[cst.BaseSmallStatement]:
        """Return the statements that fit on a line, in the order of the text."""
        found = [node for node in self.ranges if isinstance(node, cst.BaseSmallStatement)]
        return sorted(found, key=self.start)

    def start(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the line and the column where a node begins."""
        place = self.ranges[node].start
        return place.line, place.column

    def text(self, node: cst.CSTNode) -> str:
        """Return a node as it is written."""
        return self.module.code_for_node(node)

    def replaced(self, old: cst.CSTNode, new: cst.CSTNode) -> str:
        """Return the text with one node in another's place; all else stays as it is written."""
        changed = self.module.deep_replace(old, new)
        assert isinstance(changed, cst.Module)
        return changed.code

    def exchanged(self, made: Mapping[cst.CSTNode, cst.CSTNode]) -> str:
        """Return the text with several nodes exchanged for others."""
        return self.module.visit(_Exchange(made)).code

    def mapped(
        self, change: Callable[[cst.CSTNode], cst.CSTNode | None], within: cst.CSTNode
    ) -> str:
        """Return the text with each node in `within` that `change` answers for replaced."""
        changed = within.visit(_Change(change))
        assert isinstance(changed, cst.CSTNode)
        return self.replaced(within, changed)

    def statement(self, text: str) -> cst.SimpleStatementLine:
        """Parse one simple statement as this file is written."""
        parsed = cst.parse_statement(text, config=self.module.config_for_parsing)
        assert isinstance(parsed, cst.SimpleStatementLine)
        return parsed

    def name_of(self, imported: str) -> str:
        """Return what a module that is imported is called here, "" when it is not."""
        for each in self.all(cst.Import):
            for alias in each.names:
                if alias.evaluated_name == imported:
                    return alias.evaluated_alias or imported
        return ""

    def spelled(self, name: cst.CSTNode) -> cst.CSTNode:
        """Return `self.name` for the name in it: the attribute that ends so, else the name."""
        outer = self.parents.get(name)
        return outer if isinstance(outer, cst.Attribute) and outer.attr is name else name

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around one, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node


@dataclass(frozen=True, slots=True, eq=False)
class LeakSite:
    """A line at which a leak is made or held, in its source."""

    source: SourceTree
    line: int
    suspect: Suspect

    @property
    def holder(self) -> Holder:
        """The nearest to the leak that the source has a name for."""
        return self.suspect.holder.named

    def parts(self) -> list[cst.BaseSmallStatement]:
        """Return the simple statements on the line, one or several with `;` between them."""
        return [each for each in self.source.small_statements() if self._is_on_line(each)]

    def lines(self) -> list[cst.SimpleStatementLine]:
        """Return the statement lines on the line: one, or none in `for x in y: z`."""
        every = self.source.all(cst.SimpleStatementLine)
        return [each for each in every if self._is_on_line(each)]

    def loops(self) -> list[LoopNode]:
        """Return the loops around the line in its own function, the innermost first."""
        found: list[LoopNode] = []
        for part in self.parts()[:1]:
            for outer in self.source.around(part):
                if isinstance(outer, _SCOPES):
                    break
                if isinstance(outer, (cst.For, cst.While)):
                    found.append(outer)
        return found

    def function(self) -> cst.FunctionDef | None:
        """Return the innermost function that the line is in."""
        for part in self.parts()[:1]:
            for outer in self.source.around(part):
                if isinstance(outer, cst.FunctionDef):
                    return outer
        return None

    def parameters(self) -> list[str]:
        """Return the names of the parameters of the function that the line is in."""
        function = self.function()
        return [each.name.value for each in function.params.params] if function else []

    def text(self, node: cst.CSTNode) -> str:
        """Return a node as it is written."""
        return self.source.text(node)

    def _is_on_line(self, node: cst.CSTNode) -> bool:
        place = self.source.ranges[node]
        return place.start.line <= self.line <= place.end.line


def imported_files(source: SourceTree, path: str) -> Iterator[str]:
    """Yield where the modules that a file imports may be: beside it, or below this folder."""
    beside = os.path.dirname(path)
    for each in source.all(cst.Import):
        for alias in each.names:
            yield from _files_of(alias.evaluated_name, (beside, ""))
    for made in source.all(cst.ImportFrom):
        above = [beside, *[os.pardir] * (len(made.relative) - 1)]
        folders = (os.path.join(*above),) if made.relative else (beside, "")
        module = source.text(made.module) if made.module is not None else ""
        yield from _files_of(module, folders)
        for alias in made.names if not isinstance(made.names, cst.ImportStar) else ():
            yield from _files_of(f"{module}.{alias.evaluated_name}".strip("."), folders)


def _files_of(module: str, folders: Sequence[str]) -> Iterator[str]:
    parts = os.path.join(*module.split("."))
    for folder in folders if module else ():
        for name in (f"{parts}.py", os.path.join(parts, "__init__.py")):
            yield os.path.normpath(os.path.join(folder, name))


@lru_cache(maxsize=MOST_READ)  # the program's own files, each asked about for every edit
def read(text: str) -> SourceTree | None:
    """Parse a file; None when it cannot be."""
    try:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        ranges = wrapper.resolve(PositionProvider)
        parents = wrapper.resolve(ParentNodeProvider)
    except (cst.ParserSyntaxError, RecursionError):
        return None
    return SourceTree(wrapper.module, ranges, parents, wrapper)


class _Exchange(cst.CSTTransformer):
    def __init__(self, made: Mapping[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._made = made

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        return self._made.get(original_node, updated_node)


class _Change(cst.CSTTransformer):
    def __init__(self, change: Callable[[cst.CSTNode], cst.CSTNode | None]) -> None:
        super().__init__()
        self._change = change

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        return self._change(updated_node) or updated_node
