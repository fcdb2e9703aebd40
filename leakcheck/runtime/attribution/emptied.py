"""Does the program empty what grows, each time the loop around the steps turns? By its source.

`self.outputs.clear()` at an epoch's end, `outputs = []` at its beginning, a local of what trains
one epoch: an epoch may take hours, and until it ends all of these look like a leak.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable, Sequence

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.loops import loops_around
from leakcheck.runtime.attribution.names import (
    FUNCTIONS,
    LOOPS,
    functions_in,
    is_around,
    is_item,
    name_of,
)
from leakcheck.runtime.attribution.uncalled import uncalled_lines

_MAKERS = ("__init__", "__post_init__", "__new__", "__init_subclass__")
_CONTAINERS = ("list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter")


def by_program(suspects: Sequence[Suspect]) -> bool:
    """Say whether each of these has a holder that the program empties; a graph is not to wait."""
    return bool(suspects) and all(map(_is_emptied, suspects))


def by_turn(suspects: Sequence[Suspect]) -> bool:
    """Say whether a turn of the loop lets go of what some of these hold: locals get other values.

    What is there after it, is held by something else, or by the others.
    """
    return any(_is_emptied(one) or _is_rebound(one) for one in suspects)


def _is_rebound(suspect: Suspect) -> bool:
    held = suspect.holder
    if held.kind != "local" or not suspect.locations:
        return False
    tree = parsed(suspect.locations[0].path)
    functions = (one for one in functions_in(tree) if one.name == held.function)
    loops = (node for one in functions for node in ast.walk(one) if isinstance(node, LOOPS))
    inside = (node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Assign))
    return any(_sets(node, held.name) for node in inside)


def _sets(node: ast.Assign, name: str) -> bool:
    """Say whether a name gets a value that is not made of its own."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    return bool(names) and all(isinstance(each.ctx, ast.Store) for each in names)


def elsewhere(suspects: Sequence[Suspect]) -> bool:
    """Say whether each of these is emptied though no loop around the steps does so.

    In a loop that another thread runs; or a local of a function that is called again later on.
    """
    if any(one.kind == "graph" for one in suspects):
        return False
    return _emptied_by_another_thread(suspects) or (
        bool(suspects) and all(map(_is_of_one_call, suspects))
    )


def _is_of_one_call(suspect: Suspect) -> bool:
    """Say whether a local is of a function that one block calls twice: `train(300); train(600)`.

    Itself, or through the functions that call it; or of one that calls itself, or is called for
    each element of something: `[train(n) for n in sizes]`, `sum(Fold(k).run() for k in folds)`.
    """
    held, start = suspect.holder, suspect.holder.start
    own = start.function if start.kind == "local" and start.name == "self" else ""
    if not suspect.locations or not (held.kind == "local" or own):
        return False
    tree = parsed(suspect.locations[0].path)
    functions = functions_in(tree)
    if own and held.kind == "attribute":
        if any(_calls_each(node, {own}, _is_called_on_new) for node in ast.walk(tree)):
            return True
        called = {each.name for each in functions if _calls(each, {own}, _is_called_on_new)}
    else:
        called = {held.named.function}
    known = 0
    while known < len(called):  # who calls who calls it
        known = len(called)
        called |= {one.name for one in functions if _calls(one, called)}
    if any(one.name in called and _calls(one, {one.name}) for one in functions):
        return True
    if any(_calls_each(node, called) for node in ast.walk(tree)):
        return True
    defined = (*FUNCTIONS, ast.ClassDef)
    blocks = [[each for each in node.body if not isinstance(each, defined)] for node in functions]
    blocks.append([each for each in tree.body if not isinstance(each, defined)])
    return any(sum(_calls(each, called) for each in block) > 1 for block in blocks)


def _calls(
    node: ast.AST, names: set[str], wanted: Callable[[ast.Call], bool] = lambda call: True
) -> bool:
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(name_of(call.func) in names and wanted(call) for call in calls)


def _calls_each(
    node: ast.AST, names: set[str], wanted: Callable[[ast.Call], bool] = lambda call: True
) -> bool:
    match node:
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _calls(node, names, wanted)
        case ast.Call(func=ast.Name(id="map"), args=[called, *_]):
            return name_of(called) in names
    return False


def _is_called_on_new(call: ast.Call) -> bool:
    """Say whether a method is called on an object that nobody else has: `Fold(k).run()`."""
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)


def _emptied_by_another_thread(suspects: Sequence[Suspect]) -> bool:
    own = threading.get_ident()
    others = [frame for ident, frame in sys._current_frames().items() if ident != own]
    loops = [loop for frame in others for _, loop in loops_around(frame, head=True)]
    names = [one.holder.named.name for one in suspects]
    return bool(loops and names) and all(
        name and any(_empties(node, name) for loop in loops for node in ast.walk(loop))
        for name in names
    )


def _is_emptied(suspect: Suspect) -> bool:
    held = suspect.holder
    if not held.named or not suspect.locations or suspect.kind == "graph":
        return False
    name, adds = held.named.name, suspect.locations[0]
    if held.kind == "local" and held.function:
        named_so = (one for one in functions_in(parsed(adds.path)) if one.name == held.function)
        return any(_is_made_anew(one, name, adds) for one in named_so)
    paths = {place.path for place in suspect.locations}
    return any(_is_emptied_in(parsed(path), name, adds, path) for path in sorted(paths))


def _is_made_anew(function: ast.AST, name: str, adds: Place) -> bool:
    """Say whether a local is emptied in the loop around the steps, or is of a function in it."""
    around = _loops_around(function, adds.line)
    if len(around) == 1:  # that of the steps; the loop around it is a caller's
        return True
    loops = around[:-1] or [node for node in ast.walk(function) if isinstance(node, LOOPS)]
    return any(_empties(node, name) for loop in loops for node in ast.walk(loop))


def _is_emptied_in(tree: ast.Module, name: str, adds: Place, path: str) -> bool:
    never = uncalled_lines(path)
    for scope in (tree, *functions_in(tree)):
        if getattr(scope, "name", "") in _MAKERS or getattr(scope, "lineno", 0) in never:
            continue
        around = _loops_around(scope, adds.line)
        is_tree = scope is tree
        # what stands before the loop with the steps is done once
        parts: Sequence[ast.AST] = around[:-1] if around or is_tree else [scope]
        if any(_empties(node, name) for part in parts for node in ast.walk(part)):
            return True
    return False


def _loops_around(scope: ast.AST, line: int) -> list[ast.AST]:
    """Return the loops around a line, the outermost first."""
    loops = [node for node in ast.walk(scope) if isinstance(node, LOOPS)]
    return [loop for loop in loops if is_around(loop, line)]


def _empties(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr="clear")):
            return not is_item(held) and name_of(held) == name
        case ast.Delete(targets=targets):
            return any(name_of(each) == name for each in targets if not _is_element(each))
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pairs = zip(names, values, strict=False)
            return any(_is_named(each, name) and _is_empty(value) for each, value in pairs)
        case ast.Assign(targets=targets, value=value):
            return _is_empty(value) and any(_is_named(each, name) for each in targets)
    return False


def _is_named(target: ast.expr, name: str) -> bool:
    return not is_item(target) and name_of(target) == name


def _is_element(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice)


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=called):
            return name_of(called) in _CONTAINERS
    return False
