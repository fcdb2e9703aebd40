"""Which lines of the program a trial came to: asked for beforehand, and noted as they run.

`if __leakcheck_unreached__[3]: __leakcheck_reached__(3)` stands before each statement that is asked
for, put there as the file is loaded, and `__leakcheck_unreached__[4] and __leakcheck_reached__(4)
or` before the parts of it that are not always run: an arm of a condition, what follows `and`, the
body of a lambda or a comprehension. It costs one look into a list, and to torch.compile it is a
constant. Functions that something else compiles, and the methods of modules in a file that uses
TorchScript, are left as they are: of their lines nothing is known, and none counts as unreached.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from leakcheck.experiments import SourceSpan
from leakcheck.runtime.clock import ticks

_UNREACHED, _REACHED = "__leakcheck_unreached__", "__leakcheck_reached__"
_BLOCKS = ("body", "orelse", "finalbody")
_SCRIPTS = frozenset({"script", "script_method"})
_COMPILERS = frozenset({"compile", "jit", "njit", "script", "trace", "vectorize"})
Lines = Mapping[str, Collection[int]]  # of files by their paths
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Reached:
    """Notes which of the lines that are asked for are run, and which files are loaded.

    `asked`: by real paths.
    """

    def __init__(self, asked: Lines) -> None:
        self._asked = asked
        self._places: list[SourceSpan] = []  # by number
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

    def unreached(self) -> list[SourceSpan]:
        """Return what was asked for and did not run: statements, by where they begin, and parts."""
        left = {place for place, is_left in zip(self._places, self._left, strict=True) if is_left}
        known = {(place.path, place.line) for place in self._places} | self._unknown
        asked = {(path, line) for path, lines in self._asked.items() for line in lines}
        return sorted(
            left.union(SourceSpan(*each, 0, each[1], sys.maxsize) for each in asked - known)
        )

    def _rewrite(self, tree: ast.Module, path: str) -> None:
        self._loaded[path] = None
        real = os.path.realpath(path)
        lines = frozenset(self._asked.get(real, ()))
        if lines:
            _Marking(self, real, lines, tree).visit(tree)

    def number(self, place: SourceSpan) -> int:
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
        line, column = statement.lineno, statement.col_offset
        if line not in self._lines or _must_be_first(statement):
            return [statement]
        number = self._reached.number(SourceSpan(self._path, line, column, line, column + 1))
        mark = ast.parse(f"if {_UNREACHED}[{number}]: {_REACHED}({number})").body[0]
        parts = _MarkingParts(self._reached, self._path)
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            parts.in_header(statement)
        return [_placed(mark, statement), statement]

    def _left_alone(self, node: ast.AST) -> ast.AST:
        for part in ast.walk(node):
            if isinstance(part, ast.stmt):
                self._reached.leave((self._path, part.lineno))
        return node


class _MarkingParts(ast.NodeTransformer):
    """Puts a mark before each part of an expression that is not always run."""

    def __init__(self, reached: Reached, path: str) -> None:
        self._reached, self._path = reached, path
        self._text: ast.JoinedStr | None = None

    def in_header(self, statement: ast.stmt) -> None:
        """Mark the parts of a statement, but not those of the statements in it."""
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr) and name != "annotation":
                setattr(statement, name, self.visit(value))
            elif isinstance(value, list):
                each_one = [self.visit(one) if isinstance(one, ast.expr) else one for one in value]
                setattr(statement, name, each_one)
            for one in value if isinstance(value, list) else ():
                if isinstance(one, ast.withitem):
                    one.context_expr = self.visit(one.context_expr)
                elif isinstance(one, ast.match_case) and one.guard is not None:
                    one.guard = self._noted(self.visit(one.guard))
        if isinstance(statement, ast.Assert) and statement.msg is not None:
            statement.msg = self._noted(statement.msg)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Before 3.12 what is in an f-string has no place of its own, but that of all of it."""
        outer, self._text = self._text, None if sys.version_info >= (3, 12) else node
        self.generic_visit(node)
        self._text = outer
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Mark both arms."""
        self.generic_visit(node)
        node.body, node.orelse = self._noted(node.body), self._noted(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Mark all but what comes first."""
        self.generic_visit(node)
        node.values[1:] = map(self._noted, node.values[1:])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Mark what is compared only if what comes before it holds."""
        self.generic_visit(node)
        node.comparators[1:] = map(self._noted, node.comparators[1:])
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Mark the body."""
        self.generic_visit(node)
        node.body = self._noted(node.body)
        return node

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> ast.AST:
        """Mark what is made of each element, and conditions: there may be no element."""
        self.generic_visit(node)
        node.elt = self._noted(node.elt)
        return self._with_generators(node)

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        """Mark key and value, and conditions."""
        self.generic_visit(node)
        node.key, node.value = self._noted(node.key), self._noted(node.value)
        return self._with_generators(node)

    def _with_generators(self, node: _Comprehension) -> ast.AST:
        for at, each in enumerate(node.generators):
            each.ifs = [*map(self._noted, each.ifs)]
            if at:
                each.iter = self._noted(each.iter)
        return node

    def _noted(self, value: ast.expr) -> ast.expr:
        at = self._text or value
        ends = at.end_lineno or at.lineno, at.end_col_offset or at.col_offset
        number = self._reached.number(SourceSpan(self._path, at.lineno, at.col_offset, *ends))
        text = f"{_UNREACHED}[{number}] and {_REACHED}({number}) or None"
        made = ast.parse(text, mode="eval").body
        assert isinstance(made, ast.BoolOp)
        _placed(made, value)
        made.values[-1] = value
        return made


_Made = TypeVar("_Made", bound=ast.AST)


def _placed(made: _Made, like: ast.expr | ast.stmt) -> _Made:
    """Put all of what was made on the line on which something is."""
    for part in ast.walk(made):
        if "end_lineno" in part._attributes:
            part.lineno = part.end_lineno = like.lineno  # type: ignore[attr-defined]
            part.col_offset = part.end_col_offset = like.col_offset  # type: ignore[attr-defined]
    return made


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
