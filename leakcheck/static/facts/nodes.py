"""What one node of the standard library's tree says by itself, without where it stands."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from sys import intern
from typing import Any

from leakcheck.model import Location
from leakcheck.static import syntax
from leakcheck.static.facts.model import Span

_MAKERS = frozenset({"list", "dict", "set", "OrderedDict", "Counter", "defaultdict", "deque"})


def located(path: str, lines: Sequence[str], at: Span) -> Location:
    """Return a span as a reader counts: columns from 1, in characters."""

    def column(line: int, byte: int) -> int:
        text = lines[line - 1] if line <= len(lines) else ""
        return len(text.encode()[:byte].decode(errors="ignore")) + 1

    first, last = column(at.line, at.column), column(at.end_line, at.end_column)
    return Location(path, at.line, first, at.end_line, last)


def span(node: Any) -> Span:
    """Return where a node stands; of a definition, its first line."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return Span(node.lineno, node.col_offset, node.lineno, node.col_offset + len("class"))
    line, end = node.lineno, node.end_lineno
    # one number for both, where both are the same: a twentieth of the memory of all facts
    return Span(line, node.col_offset, line if end == line else end, node.end_col_offset)


def dotted(node: ast.AST) -> str:
    """Spell a chain of names, "self.meter.update"; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return intern(".".join(reversed(parts)))  # facts spell the same few chains over and over


def called(node: ast.expr) -> str:
    """Spell what is called as a chain of names: `nets["encoder"]` of a dict as `nets.encoder`."""
    match node:
        case ast.Subscript(value=holder, slice=ast.Constant(value=str(key))) if key.isidentifier():
            spelled = dotted(holder)
            return f"{spelled}.{key}" if spelled else ""
    return dotted(node)


def standing(node: ast.expr) -> tuple[str, ...]:
    """Name the members of a display: `energy` of `(energy, {"forces": -grads})`."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return tuple(name for name in map(dotted, parts) if name)
    return ()


def unpacked(target: ast.expr) -> tuple[str, ...]:
    """Name what a result is unpacked into: `fig`, `""` of `fig, (left, right) = plot()`."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(dotted(part) for part in parts)
    return ()


def never_left(loop: ast.While) -> bool:
    """Whether a `while True` has no break, return or raise of its own."""
    if not isinstance(loop.test, ast.Constant) or not loop.test.value:
        return False
    todo: list[tuple[ast.AST, bool]] = [(each, True) for each in loop.body]
    while todo:
        node, own = todo.pop()
        if isinstance(node, (ast.Return, ast.Raise, ast.Yield)) or (
            own and isinstance(node, ast.Break)
        ):
            return False
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        inner = own and not isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        todo += [(each, inner) for each in ast.iter_child_nodes(node)]
    return True


def sliced(node: ast.expr) -> tuple[str, ...]:
    """Name whose item a chain of methods begins with: `flat` of `flat[a:b].view(shape)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Slice()):
            return (name,)
    return ()


def makes_empty(node: ast.Call, name: str) -> bool:
    """`list()`, `collections.deque()` and `defaultdict(list)`; `deque(maxlen=9)` has a limit."""
    if isinstance(node.func, ast.Attribute) and dotted(node.func.value) != "collections":
        return False
    given = len(node.args) + len(node.keywords)
    return name in _MAKERS and (given == 0 or (name == "defaultdict" and given == 1))


def names_in(node: ast.AST, *, called_too: bool = False) -> tuple[str, ...]:
    """Name what a value may hold: not `pool` in `pool.submit(task)`, but in a closure over it."""
    found: dict[str, None] = {}
    todo = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Name):
            found[each.id] = None
        elif isinstance(each, ast.Call) and not called_too:
            todo += [*each.args, *(keyword.value for keyword in each.keywords)]
        elif not isinstance(each, ast.Constant):
            todo += syntax.below(each)
    return tuple(found)


def bound_pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Pair what is bound with what it is given: two pairs for `kept, told = [], {}`."""
    displays = (ast.Tuple, ast.List)
    if not isinstance(target, displays) or not isinstance(value, displays):
        return [(target, value)]
    if len(target.elts) != len(value.elts):
        return [(target, value)]
    pairs = zip(target.elts, value.elts, strict=True)
    return [pair for left, right in pairs for pair in bound_pairs(left, right)]
