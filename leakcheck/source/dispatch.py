"""May a line come to call something else? `self.observe = self._done`, `callbacks.remove(cb)`.

What adds is then called no more, and no condition says so. Asked of the calls that were seen to
lead to a line that adds: which function a name, an entry or an attribute stands for is measured.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from leakcheck.source.guards import NONE, Guard
from leakcheck.source.tree import COMPREHENSIONS, File, ProgramTexts, name_of, root_of
from leakcheck.source.words import words

Node = tuple[File, ast.expr]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Reads what the calls on a line go by; `may_come`: whether a node may yet be reached."""

    program: ProgramTexts
    may_come: Callable[[File, ast.AST], bool]

    def guard(self, file: File, line: int, function: str) -> Guard:
        """Return a guard of kind "flag" if the call of a function on a line may be of another."""
        by_call = (each for call in _calls_at(file, line) for each in self._changes(file, call))
        changes = chain(by_call, self._of_function(function))
        change = next((each for each in changes if self.may_come(*each)), None)
        if change is None:
            return NONE
        other, node = change
        statement = other.statement(node)
        told = ast.unparse(statement).partition("\n")[0]
        return Guard("flag", test=told, path=other.path, line=statement.lineno)

    def _changes(self, file: File, call: ast.Call) -> Iterator[Node]:
        for part in ast.walk(call.func):
            if isinstance(part, ast.Attribute) and name_of(root_of(part)) not in file.imports:
                yield from self._set_anew(part.attr)
        match call.func:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
                loops = (each for each in file.loops(call) if isinstance(each, ast.For))
                over = (each.iter for each in loops if name in map(name_of, ast.walk(each.target)))
                yield from (node for each in over for node in self._taken_from(file, each))
            case ast.Subscript(value=container):
                yield from self._taken_from(file, container)

    def _set_anew(self, attribute: str) -> Iterator[Node]:
        """Yield where an attribute gets a value, beside another one that it has at first."""
        stores = self.program.attribute_stores(attribute)
        made = [(f, s) for f, s in stores if f.is_in_constructor(s)]
        later = [(f, s) for f, s in stores if not f.is_in_constructor(s)]
        given = [(value, at) for at in stores for value in at[0].given(at[1]) or [at[1]]]
        values = {_told(value) for value, at in given if not (at in made and _is_none(value))}
        if len(values) > 1:
            yield from later

    def _of_function(self, function: str) -> Iterator[Node]:
        """Yield where an attribute that a function was given to gets another value."""
        for file in self.program.files(f"def {function}"):
            for name in file.loads(function):
                statement = file.statement(name)
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                for target in targets:
                    if isinstance(target, ast.Attribute) and _is_handed(file, name):
                        anew = self._set_anew(target.attr)
                        yield from (each for each in anew if each[1] is not target)

    def _taken_from(self, file: File, container: ast.expr) -> Iterator[Node]:
        """Yield where something is taken out of what is gone over, or it is filtered."""
        held = _container(container)
        if isinstance(held, ast.Attribute):
            yield from self._set_anew(held.attr)
            files = list(self.program.files(held.attr))
        elif isinstance(held, ast.Name):
            yield from ((file, each) for each in file.stores(held) if _is_filtered(file, each))
            files = [file]
        else:
            return
        for other in files:
            yield from ((other, each) for each in other.loads(name_of(held)) if _loses(other, each))


def _loses(file: File, container: ast.expr) -> bool:
    """Say whether something is taken out of a container where it is named."""
    match file.above.get(container):
        case ast.Attribute(attr=method):
            takes = words("methods", "take") | words("methods", "take_if_there")
            return method in takes | words("methods", "clear")
        case ast.Subscript(ctx=ast.Del()):
            return True
    return False


def _calls_at(file: File, line: int) -> Iterator[ast.Call]:
    return (node for node in file.at(line) if isinstance(node, ast.Call))


def _told(value: ast.expr) -> object:
    """Return what is equal for equal values: what is computed may be another each time."""
    same = isinstance(value, (ast.Constant, ast.Name, ast.Attribute))
    return ast.dump(value) if same and not _is_store(value) else id(value)


def _is_store(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _is_none(value: ast.expr) -> bool:
    """Say whether a value is nothing yet: what a constructor leaves out for later."""
    return isinstance(value, ast.Constant) and value.value is None


def _is_handed(file: File, name: ast.expr) -> bool:
    """Say whether a function is a value itself, or an argument: it is not called there."""
    above = file.above.get(name)
    return not (isinstance(above, ast.Call) and above.func is name)


def _container(node: ast.expr) -> ast.expr:
    """Return what `list(self.callbacks)`, `handlers.values()` and `enumerate(hooks)` go over."""
    match node:
        case ast.Call(func=ast.Name(), args=[inner, *_]):
            return _container(inner)
        case ast.Call(func=ast.Attribute(value=inner), args=[]):
            return _container(inner)
    return node


def _is_filtered(file: File, store: ast.expr) -> bool:
    """Say whether a variable gets some of what it had: `cbs = [cb for cb in cbs if cb.on]`."""
    return any(
        name_of(part) == name_of(store)
        for value in file.given(store)
        if isinstance(value, COMPREHENSIONS)
        for part in ast.walk(value)
    )
