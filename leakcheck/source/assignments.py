"""Where a holder is made: `losses = []`, `self.sum = 0`, `def log(seen=[])`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain

from leakcheck.source.left import is_moved
from leakcheck.source.tree import FUNCTIONS, File, name_of, own_nodes
from leakcheck.source.words import words


def of_name(file: File, function: str, name: str, kind: str = "") -> int | None:
    """Return the first line that gives `name` its value in `function`, "" for the module.

    `kind`: the class of that value, if it is known: of two branches one calls it.
    """
    nodes = list(_of_name(file, function, name))
    calls = (node for node in nodes if kind and _calls(getattr(node, "value", None), kind))
    node = next(chain(calls, nodes), None)
    return None if node is None else _line(node)


def _calls(value: ast.expr | None, kind: str) -> bool:
    """Say whether a value is made by a class of this name, whatever is then done with it."""
    parts = ast.walk(value) if value is not None else ()
    return any(isinstance(part, ast.Call) and name_of(part.func) == kind for part in parts)


def last_of_name(file: File, function: str, name: str) -> int | None:
    """Return the last line that gives `name` a value in `function`, if it is not the only one."""
    return _last(_of_name(file, function, name))


def last_of_owner(file: File, function: str, name: str) -> int | None:
    """Return the same for an object that holds what grows: `model = model.eval()` gives none."""
    nodes = _of_name(file, function, name)
    return _last(node for node in nodes if not is_moved(getattr(node, "value", None)))


def last_from_outside(file: File, function: str, dotted: str) -> int | None:
    """Return the last line in `function` that gives a value to an object's: `model.last = out`."""
    bodies = file.functions(function) if function else [file.tree]
    nodes = (node for body in bodies for node in own_nodes(body))
    return max(_of_dotted(nodes, dotted), default=None)


def _last(nodes: Iterable[ast.AST]) -> int | None:
    lines = [_line(node) for node in nodes]
    return max(lines) if len(lines) > 1 else None


def _of_dotted(nodes: Iterable[ast.AST], dotted: str) -> Iterator[int]:
    for node in nodes:
        if any(ast.unparse(target) == dotted for target in _targets(node)):
            yield _line(node)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _of_name(file: File, function: str, name: str) -> Iterator[ast.AST]:
    for body in file.functions(function) if function else [file.tree]:
        for node in own_nodes(body):
            if any(_targets_name(target, name) for target in _targets(node)):
                yield node


def of_attribute(file: File, class_name: str, attribute: str) -> int | None:
    """Return the first line in a class that gives `self.attribute` or `attribute` its value."""
    return next(_of_attribute(file, class_name, attribute), None)


def last_of_attribute(
    file: File, class_name: str, attribute: str, *, registered: bool = False
) -> int | None:
    """Return the last line that gives an attribute a value, if it may do so again and again.

    Not the only one, if that makes it: in a constructor or the body of the class, unless it is
    `registered`, as a buffer is.

    Lines of the class, and those anywhere in the file that name the class: `Stats.sum = ...`.
    """
    again = registered or attribute not in _made_once(file, class_name)
    lines = [
        *_of_attribute(file, class_name, attribute),
        *_of_dotted(ast.walk(file.tree), f"{class_name}.{attribute}"),
    ]
    return max(lines) if len(lines) > (not again) else None


def _made_once(file: File, class_name: str) -> frozenset[str]:
    """Return the attributes that a class gives a value in its body or as an object is made."""
    found: set[str] = set()
    for part in (part for kind in _classes(file, class_name) for part in kind.body):
        method = getattr(part, "name", "")
        if not isinstance(part, FUNCTIONS) or method in words("names", "constructors"):
            targets = (target for each in ast.walk(part) for target in _targets(each))
            found.update(name_of(each) for target in targets for each in _parts(target))
    return frozenset(found)


def _of_attribute(file: File, class_name: str, attribute: str) -> Iterator[int]:
    for part in (part for kind in _classes(file, class_name) for part in ast.walk(kind)):
        if any(_targets_attribute(target, attribute) for target in _targets(part)):
            yield _line(part)


def _classes(file: File, name: str) -> list[ast.ClassDef]:
    return [node for node in file.named(name) if isinstance(node, ast.ClassDef)]


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        return [node.target]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [item.optional_vars for item in node.items if item.optional_vars]
    return []


def _targets_name(target: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in _parts(target))


def _targets_attribute(target: ast.expr, name: str) -> bool:
    return any(
        part.id == name if isinstance(part, ast.Name) else getattr(part, "attr", "") == name
        for part in _parts(target)
    )


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _parts(element)
    else:
        yield target
