"""Does a condition ask what lasts from step to step, so that it may cease to hold some day?

`isinstance(x, int)` asks about the data of this step, and comes to hold again and again. What a
logger, a controller or a nested dictionary of settings answers may be another from some step on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.source.tree import FUNCTIONS, File, ProgramTexts, parameters


def asks_what_lasts(program: ProgramTexts, file: File, test: ast.expr) -> bool:
    """Say whether an answer depends on an object that is there at each step."""
    return any(_lasts(program, file, name) for name in _asked(test))


def _asked(test: ast.AST) -> Iterator[ast.Name]:
    """Yield the names of what is asked; what is a member of something may only be lost again."""
    match test:
        case ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return
        case ast.Call(func=ast.Name(), args=args, keywords=keywords):
            for each in (*args, *keywords):
                yield from _asked(each)
        case ast.Name(ctx=ast.Load()):
            yield test
        case _:
            for part in ast.iter_child_nodes(test):
                yield from _asked(part)


def _lasts(program: ProgramTexts, file: File, name: ast.Name) -> bool:
    scope, loops, stores = file.scope(name), file.loops(name), file.stores(name)
    if loops and any(loops[-1] in file.loops(each) for each in stores):
        return False  # made anew at each turn
    if isinstance(scope, FUNCTIONS):
        given = name.id in parameters(scope)
        of_object = given and isinstance(file.above.get(scope), ast.ClassDef)
        return bool(loops and (given or stores)) or (of_object and name.id == "self")
    if name.id in file.imports:
        asked = file.above.get(name)
        return isinstance(asked, ast.Attribute) and bool(program.attribute_stores(asked.attr))
    return scope is file.tree and bool(stores)
