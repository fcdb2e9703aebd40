"""What a program does before all else: the imports that the processes of its trials may share.

Read from its text: the statements that import installed modules or set the environment, in their
order, up to the first that may do anything else. The user's own files are never loaded, their
beginnings are read the same way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

ImportedTexts = Callable[[str], "list[str]"]  # of the user's own files that an import loads
# what imports another module later: the first optimizer that a program makes does (0.9 s)
_LATER = {"torch": "torch._dynamo"}
_NEVER_EARLIER = ("environ", "putenv", "dynamo")  # a text with one of these may change how it loads


@dataclass(frozen=True, slots=True)
class Imported:
    """An installed module that is imported."""

    name: str


@dataclass(frozen=True, slots=True)
class SetInEnvironment:
    """A variable of the environment that is set, `default` where it is not set before."""

    name: str
    value: str
    default: bool


BeginningAct = Imported | SetInEnvironment


def beginning(text: str, own: ImportedTexts) -> list[BeginningAct]:
    """Return what a script with this text does first; `own` tells which imports are the user's."""
    reader = _BeginningReader(own)
    acts = list(reader.acts(text))
    loaded = {each.name.partition(".")[0] for each in acts if isinstance(each, Imported)}
    makes_optimizer = any("optim" in each for each in reader.texts)
    untouched = not any(name in each for each in reader.texts for name in _NEVER_EARLIER)
    if makes_optimizer and untouched:
        acts += [Imported(_LATER[name]) for name in sorted(loaded & _LATER.keys())]
    return acts


@dataclass(slots=True)
class _BeginningReader:
    own: ImportedTexts
    texts: list[str] = field(default_factory=list)
    over: bool = False
    seen: set[str] = field(default_factory=set)

    def acts(self, text: str) -> Iterator[BeginningAct]:
        self.texts.append(text)
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError):
            body, self.over = [], True
        for statement in body:
            yield from self._of(statement)
            if self.over:
                return

    def _of(self, statement: ast.stmt) -> Iterator[BeginningAct]:
        match statement:
            case ast.Import(names=names):
                for alias in names:
                    yield from self._imported(alias.name)
            case ast.ImportFrom(module=str(name), level=0):
                yield from self._imported(name)
            case _:
                if set_here := _set_in_environment(statement):
                    yield set_here
                elif not _only_defines(statement):
                    self.over = True

    def _imported(self, name: str) -> Iterator[BeginningAct]:
        if self.over or name in self.seen:
            return
        self.seen.add(name)
        own = self.own(name)
        if not own:
            yield Imported(name)
        for text in own:
            if not self.over:
                yield from self.acts(text)


def _only_defines(statement: ast.stmt) -> bool:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Pass():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(value=ast.Constant()) | ast.AnnAssign(value=ast.Constant() | None):
            return True
    return False


def _set_in_environment(statement: ast.stmt) -> SetInEnvironment | None:
    match statement:
        case ast.Assign(
            targets=[ast.Subscript(value=environ, slice=ast.Constant(value=str(name)))],
            value=ast.Constant(value=str(value)),
        ) if ast.unparse(environ) == "os.environ":
            return SetInEnvironment(name, value, default=False)
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=environ, attr="setdefault"),
                args=[ast.Constant(value=str(name)), ast.Constant(value=str(value))],
            )
        ) if ast.unparse(environ) == "os.environ":
            return SetInEnvironment(name, value, default=True)
    return None
