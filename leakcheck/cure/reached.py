"""Which lines of the program a trial came to: asked for beforehand, and noted as they run.

`if __leakcheck_unreached__[3]: __leakcheck_reached__(3)` stands before each statement that is asked
for, put there as the file is loaded. It costs one look into a list, and to torch.compile it is a
constant. Functions that something else compiles, and the methods of modules in a file that uses
TorchScript, are left as they are: of their lines nothing is known, and none counts as unreached.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Callable, Collection, Mapping

from leakcheck.runtime.clock import ticks

_UNREACHED, _REACHED = "__leakcheck_unreached__", "__leakcheck_reached__"
_BLOCKS = ("body", "orelse", "finalbody")
_SCRIPTS = frozenset({"script", "script_method"})
_COMPILERS = frozenset({"compile", "jit", "njit", "script", "trace", "vectorize"})
Lines = Mapping[str, Collection[int]]  # of files by their paths


class Reached:
    """Notes which of the lines that are asked for are run, and which files are loaded.

    `asked`: by real paths.
    """

    def __init__(self, asked: Lines) -> None:
        self._asked = asked
        self._places: list[tuple[str, int]] = []  # by number
        self._left: list[bool] = []  # by number: no class of ours, as torch.compile reads it
        self._unknown: set[tuple[str, int]] = set()
        self._loaded: dict[str, None] = {}
        names = {_UNREACHED: self._left, _REACHED: _noting(self._left)}
        ticks.names.update(names)  # to torch.compile a list is no constant where it is a builtin
        for name, value in names.items():
            setattr(builtins, name, value)
        ticks.rewrites.append(self._rewrite)

    def loaded(self) -> tuple[str, ...]:
        """Return the program's own files that were loaded, as they were called."""
        return tuple(self._loaded)

    def unreached(self) -> list[tuple[str, int]]:
        """Return the lines that were asked for and did not run."""
        marks = [*zip(self._places, self._left, strict=True)]
        left = {
            place for place, is_left in marks if is_left
        }  # one part of `if late: f()` is enough
        known = {place for place, _ in marks} | self._unknown
        asked = {(path, line) for path, lines in self._asked.items() for line in lines}
        return sorted(left | (asked - known))

    def _rewrite(self, tree: ast.Module, path: str) -> None:
        self._loaded[path] = None
        real = os.path.realpath(path)
        lines = frozenset(self._asked.get(real, ()))
        if lines:
            _Marking(self, real, lines, tree).visit(tree)

    def number(self, place: tuple[str, int]) -> int:
        """Return a number for a place that is about to be marked."""
        self._places.append(place)
        self._left.append(True)
        return len(self._left) - 1

    def leave(self, place: tuple[str, int]) -> None:
        """Note that nothing will be known of a place."""
        self._unknown.add(place)


def _noting(left: list[bool]) -> Callable[[int], None]:
    def note(number: int) -> None:
        left[number] = False

    note._dynamo_marked_constant = True  # type: ignore[attr-defined]  # no graph break
    return note


class _Marking(ast.NodeTransformer):
    """Puts a mark before each statement on one of some lines."""

    def __init__(
        self, reached: Reached, path: str, lines: frozenset[int], tree: ast.Module
    ) -> None:
        self._reached, self._path, self._lines = reached, path, lines
        self._scripts = any(
            isinstance(node, ast.Attribute)
            and node.attr in _SCRIPTS
            and ast.unparse(node.value).endswith("jit")
            for node in ast.walk(tree)
        )
        self._compiled = frozenset(_handed_to_compilers(tree))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if ticks.is_compiled(node) or node.name in self._compiled:
            return self._left_alone(node)
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if (self._scripts and node.bases) or node.name in self._compiled:
            return self._left_alone(node)
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [each for one in block for each in self._marked(one)])
        return node

    def _marked(self, statement: ast.stmt) -> list[ast.stmt]:
        line = statement.lineno
        if line not in self._lines or _must_be_first(statement):
            return [statement]
        number = self._reached.number((self._path, line))
        mark = ast.parse(f"if {_UNREACHED}[{number}]: {_REACHED}({number})").body[0]
        for part in ast.walk(mark):
            if "end_lineno" in part._attributes:
                part.lineno = part.end_lineno = line  # type: ignore[attr-defined]
                part.col_offset = part.end_col_offset = statement.col_offset  # type: ignore[attr-defined]
        return [mark, statement]

    def _left_alone(self, node: ast.AST) -> ast.AST:
        for part in ast.walk(node):
            if isinstance(part, ast.stmt):
                self._reached.leave((self._path, part.lineno))
        return node


def _must_be_first(statement: ast.stmt) -> bool:
    """Say whether nothing may stand before it: a docstring, or what is from the future."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _handed_to_compilers(tree: ast.Module) -> list[str]:
    """Return the names of what is given to a function such as `torch.compile`."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    compiled = (call for call in calls if _COMPILERS & {*ast.unparse(call.func).split(".")})
    return [
        part.id
        for call in compiled
        for given in call.args
        for part in ast.walk(given)
        if isinstance(part, ast.Name)
    ]
