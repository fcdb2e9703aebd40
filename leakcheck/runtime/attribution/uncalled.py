"""Methods that would empty what grows, and that no line of the program calls: `meter.reset()`.

A name is looked for in every file of the user's that is loaded. A method counts as uncalled only
where nothing else could call it by that name: no library, no `getattr(x, name)`, no decorator.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from importlib.machinery import PathFinder

from leakcheck.model import Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import FUNCTIONS, functions_in, name_of
from leakcheck.runtime.introspection import frames

# libraries call `flush`, `close` and `on_epoch_end` of what they are given, and none of these
_EMPTYING = """
clean cleanup clear cull discard drain drop empty evict expire forget prune purge reset shrink trim
truncate
"""
_WORDS = frozenset(_EMPTYING.split())
Function = ast.FunctionDef | ast.AsyncFunctionDef
_ADVICE = (
    "call .{method}() when what is kept has been used: nothing does; or keep numbers (.item())"
)
MOST_FILES = 32  # of the program's own: each may have to be parsed
_MAKERS = ("__init__", "__post_init__")
_PLAIN_BASES = ("object", "Module")  # torch calls no method of a module's own but those it knows
_BY_NAME = ("getattr", "attrgetter", "methodcaller")
_BY_TEXT = ("eval", "exec", "getmembers")


def uncalled_lines(path: str) -> frozenset[int]:
    """Return the lines of a file's methods that empty, and that nobody calls but constructors."""
    return frozenset(
        line
        for each in _uncalled(path, len(sys.modules))
        for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)
    )


def to_be_called(suspect: Suspect) -> Suspect:
    """Return a suspect with the fix to call what would empty it, if that is so."""
    held = suspect.holder
    if held.kind != "attribute" or suspect.kind not in ("tensor", "object"):
        return suspect
    for path in dict.fromkeys(place.path for place in suspect.locations):
        for method in _uncalled(path, len(sys.modules)):
            if any(_names(node, held.name) for node in ast.walk(method)):
                return replace(suspect, fix=_ADVICE.format(method=method.name))
    return suspect


@lru_cache(maxsize=16)
def _uncalled(path: str, modules: int) -> tuple[Function, ...]:
    """Return the methods; `modules`: how many are loaded, as each may call one."""
    at = os.path.realpath(path)
    files = {os.path.realpath(each) for each in frames.own_files_with("")}
    if at not in files:  # a notebook's cell: the next ones are not written yet
        return ()
    # who calls what another file defines, a test need not load
    if len(files) > MOST_FILES or not at.endswith(running_test()):
        return ()
    methods = [
        method
        for kind in ast.walk(parsed(path))
        if isinstance(kind, ast.ClassDef) and _is_plain(kind)
        for method in kind.body
        if isinstance(method, FUNCTIONS) and _may_be_uncalled(method) and not _is_extended(kind)
    ]
    by_name = (each for word in (*_BY_NAME, *_BY_TEXT) for each in frames.own_files_with(word))
    if not methods or any(map(_calls_by_name, dict.fromkeys(by_name))):
        return ()
    if any(map(_loads_later, frames.own_files_with("import"))):
        return ()
    return tuple(each for each in methods if not _is_called(each, at))


def running_test() -> str:
    """Return the file of the test that runs, below pytest's root; "" outside of tests."""
    if "pytest" not in sys.modules:  # a process that a test started has the variable too
        return ""
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]


def _may_be_uncalled(method: Function) -> bool:
    words = method.name.lower().strip("_").split("_")
    return not method.decorator_list and not _WORDS.isdisjoint(words)


def _is_plain(kind: ast.ClassDef) -> bool:
    """Say whether a class has no base whose methods a library calls."""
    named = all(name_of(base) in _PLAIN_BASES for base in kind.bases)
    decorators = (each.func if isinstance(each, ast.Call) else each for each in kind.decorator_list)
    return named and not kind.keywords and all(name_of(each) == "dataclass" for each in decorators)


def _is_extended(kind: ast.ClassDef) -> bool:
    """Say whether another class has this one, or one of its name, as a base."""
    trees = map(parsed, frames.own_files_with(kind.name))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return any(name_of(base) == kind.name for node in nodes for base in node.bases)


def _is_called(method: Function, at: str) -> bool:
    """Say whether a line names a method, but for its own, and `self.reset()` in a constructor."""
    for path in frames.own_files_with(method.name):
        tree = parsed(path)
        if not tree.body:  # it could not be read
            return True
        passed_over = set(map(id, _called_by_makers(tree)))
        for each in functions_in(tree) if os.path.realpath(path) == at else ():
            if each.lineno == method.lineno:  # `self.kept.clear()` in `clear`
                passed_over |= set(map(id, ast.walk(each)))
        nodes = (node for node in ast.walk(tree) if id(node) not in passed_over)
        if any(_names(node, method.name) for node in nodes):
            return True
    return False


def _called_by_makers(tree: ast.Module) -> Iterator[ast.expr]:
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS) and function.name in _MAKERS:
            for statement in function.body:
                match statement:
                    case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name("self")) as of)):
                        yield of


def _names(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Attribute(attr=named) | ast.Name(id=named) | ast.alias(name=named):
            return named == name
        case ast.Constant(value=str(text)):
            return name in text.split(".")
    return False


def _loads_later(path: str) -> bool:
    """Say whether a function of a file imports a module of the user's that is not loaded yet."""
    functions = (node for node in ast.walk(parsed(path)) if isinstance(node, FUNCTIONS))
    for node in (node for function in functions for node in ast.walk(function)):
        match node:
            case ast.ImportFrom(level=level) if level:
                return True
            case ast.ImportFrom(module=str(name)):
                names = [name]
            case ast.Import(names=aliases):
                names = [each.name for each in aliases]
            case _:
                continue
        if any(name not in sys.modules and _is_own(name) for name in names):
            return True
    return False


def _is_own(module: str) -> bool:
    """Say whether a module, by the package that it is in, is the user's; nothing is imported."""
    spec = PathFinder.find_spec(module.partition(".")[0])
    folders = spec.submodule_search_locations if spec is not None else None
    at = spec.origin or next(iter(folders or ()), None) if spec is not None else None
    return at is not None and frames.is_own(at)


def _calls_by_name(path: str) -> bool:
    """Say whether a file gets attributes of objects by names that only a run tells."""
    tree = parsed(path)
    imported = {
        (each.asname or each.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for each in node.names
    }
    return not tree.body or any(_is_by_name(node, imported) for node in ast.walk(tree))


def _is_by_name(node: ast.AST, modules: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = name_of(node.func)
    if called in _BY_TEXT:  # `model.eval()` is none
        return isinstance(node.func, ast.Name) or called == "getmembers"
    if called not in _BY_NAME:
        return False
    owner, *names = node.args if called == "getattr" else (None, *node.args)
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    if isinstance(owner, ast.Name) and owner.id in modules:  # getattr(torch.optim, args.optimizer)
        return False
    return not all(isinstance(each, ast.Constant) for each in names[:1])
