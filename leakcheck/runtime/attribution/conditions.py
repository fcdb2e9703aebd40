"""Does something grow only where it is new? `if key not in cache: cache[key] = x`, by its source.

It may end when every key was seen once, and no source says when that is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.emptying import ORDERED
from leakcheck.runtime.attribution.names import FUNCTIONS, LOOPS, is_around, name_of
from leakcheck.runtime.introspection import frames

MOSTLY_FOUND = 4  # times as often asked as it gains: what is asked for is there already
MOSTLY_SET = 2  # times as often set as it gains
FEWEST_ASKED = 16
MOST_FILES = 16  # in which a function is looked for that is called
DEEPEST = 3  # functions that call each other
Visits = Mapping[tuple[str, int], int]  # how often each line ran while it grew
Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOKED_UP = (ast.In, ast.NotIn, ast.Is, ast.IsNot)
_BACK = re.compile(r"remove|discard|un(register|subscribe|hook)|disconnect|detach")
_HOOKS = re.compile(r"(register_|add_)\w*(hook|callback|handler)")
_MISSING = ("KeyError", "LookupError", "IndexError", "AttributeError")


def may_end(suspects: Sequence[Suspect], visits: Visits) -> bool:
    """Say whether something grows only under a condition that may hold for a first while.

    `if epoch == 0:`, `if step < 500:`, `if key not in cache:`, `if found is None:`, the `else:` of
    `if key in cache:`, `except KeyError:`, `cache.setdefault(key, x)`, after
    `if key in cache: return`; not `if step % 10 == 0:`, which comes again for ever. Where a
    function adds, around the calls of it that `visits` show to run.
    """
    return any(
        _condition_of(place, visits) is not None
        for suspect in suspects
        for place in suspect.locations[:1]
    )


def mostly_found(suspects: Sequence[Suspect], visits: Visits, steps: int) -> bool:
    """Say whether what grows is asked far more often than it gains: its keys come again.

    `visits`: how often each line ran in so many `steps`.
    """
    return any(
        _is_mostly_found(suspect, place, visits, steps)
        for suspect in suspects
        for place in suspect.locations[:1]
    )


def _is_mostly_found(suspect: Suspect, place: Place, visits: Visits, steps: int) -> bool:
    condition = _condition_of(place, visits)
    adds = visits.get((place.path, place.line), 0)
    gained = (suspect.objects_per_step or 0.0) * steps
    if condition is not None and condition.by_key:
        asked = visits.get((condition.path, condition.line), 0)
        gained = adds if condition.line != place.line else gained
        return asked >= FEWEST_ASKED and asked >= MOSTLY_FOUND * gained
    return adds >= FEWEST_ASKED and adds >= MOSTLY_SET * gained > 0 and _sets_by_key(place)


def _sets_by_key(place: Place) -> bool:
    """Say whether a line is `table[key] = x`: what it sets may be there."""
    return any(
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        for node in ast.walk(parsed(place.path))
        if is_around(node, place.line)
    )


@dataclass(frozen=True, slots=True)
class _Condition:
    """Where it is asked whether something is new; `by_key`: looked up, not compared by size."""

    path: str
    line: int
    by_key: bool = True


def _condition_of(place: Place, visits: Visits, depth: int = 0) -> _Condition | None:
    """Look at the conditions around a line that adds, inside the innermost loop or function.

    And around each call of that function, if there is none in it.
    """
    at, line = place.path, place.line
    around = [node for node in ast.walk(parsed(at)) if is_around(node, line)]
    for node in reversed(around):  # a walk goes from the outside to the inside
        if _sets_default(node):
            return _Condition(at, line)
        if isinstance(node, (*LOOPS, *FUNCTIONS)):
            if isinstance(node, FUNCTIONS) and node.name == "__missing__":
                return _Condition(at, line)
            inside = (each for each in ast.walk(node) if isinstance(each, ast.stmt))
            answers = (each.lineno for each in inside if _answers(each, around[-1]))
            if (answer := next(answers, None)) is not None:
                return _Condition(at, answer)
            return _condition_of_calls(node, visits, depth) if isinstance(node, FUNCTIONS) else None
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            tried = [each.body[0].lineno for each in around if isinstance(each, ast.Try)]
            return _Condition(at, tried[-1]) if name_of(node.type) in _MISSING else None
        if isinstance(node, ast.If) and node.body[0].lineno <= line:
            otherwise = bool(node.orelse) and node.orelse[0].lineno <= line
            if _ends(node.test, otherwise=otherwise):
                compared = [each for each in ast.walk(node.test) if isinstance(each, ast.Compare)]
                by_key = any(isinstance(each.ops[0], _LOOKED_UP) for each in compared)
                return _Condition(at, node.lineno, by_key)
    return None


def _condition_of_calls(function: Function, visits: Visits, depth: int) -> _Condition | None:
    """Return the condition around a call of a function, if there is one around all that ran."""
    if depth >= DEEPEST:
        return None
    files = map(frames.shown, islice(frames.own_files_with(function.name), MOST_FILES))
    calls = [
        (path, node) for path in files for node in ast.walk(parsed(path)) if type(node) is ast.Call
    ]
    named = [
        Place(path, call.lineno, "") for path, call in calls if name_of(call.func) == function.name
    ]
    ran = [call for call in named if visits.get((call.path, call.line), 0) > 0]
    found = [_condition_of(call, visits, depth + 1) for call in ran]
    if not found:
        hooked = any(_is_given(function.name, call, _HOOKS) for _, call in calls)
        back = (
            Place(path, call.lineno, "")
            for path, call in calls
            if _takes_back(call, function.name, hooked=hooked)
        )
        return next(filter(None, (_condition_of(call, visits, DEEPEST) for call in back)), None)
    return found[0] if None not in found else None


def _takes_back(call: ast.Call, function: str, *, hooked: bool) -> bool:
    """Say whether a callback is taken back: `if step == 400: callbacks.remove(record)`.

    If it was `hooked`, by a handle: `handle.remove()`.
    """
    by_handle = hooked and not call.args and name_of(call.func) == "remove"
    return by_handle or _is_given(function, call, _BACK)


def _is_given(function: str, call: ast.Call, methods: re.Pattern[str]) -> bool:
    given = {name_of(each) for each in call.args}
    return function in given and methods.match(name_of(call.func)) is not None


def _answers(node: ast.AST, adding: ast.AST) -> bool:
    """Say whether what was found before is returned, and so is not added again further down.

    `if key in cache: return cache[key]`, `if found is not None: return found`,
    `try: return cache[key]` with `except KeyError: pass`.
    """
    if not isinstance(node, (ast.If, ast.Try)) or not isinstance(adding, ast.stmt):
        return False
    before = (node.end_lineno or 0) < adding.lineno and node.col_offset <= adding.col_offset
    if not before or not isinstance(node.body[-1], (ast.Return, ast.Continue)):
        return False
    if isinstance(node, ast.Try):
        kinds = [each.type for each in node.handlers if each.type is not None]
        return any(name_of(kind) in _MISSING for kind in kinds)
    match node.test:
        case ast.Compare(ops=[ast.In()]) | ast.Call(func=ast.Name(id="hasattr")):
            return True
        case ast.Compare(ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def _sets_default(statement: ast.AST) -> bool:
    """Say whether a statement adds only what is new; `kept.setdefault(key, []).append(x)` more."""
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)):
        return False
    nodes = list(ast.walk(statement))
    set_by = {
        id(node) for node in nodes if isinstance(node, ast.Attribute) and node.attr == "setdefault"
    }
    inside = [node.value for node in nodes if isinstance(node, ast.Attribute)]
    return any(
        isinstance(node, ast.Call) and id(node.func) in set_by and node not in inside
        for node in nodes
    )


def _ends(test: ast.expr, *, otherwise: bool) -> bool:
    if any(isinstance(node, ast.Mod) for node in ast.walk(test)):
        return False
    compared = [node for node in ast.walk(test) if isinstance(node, ast.Compare)]
    once = (ast.NotEq, ast.In, ast.IsNot) if otherwise else (ast.Eq, ast.NotIn, ast.Is)
    if any(isinstance(operator, (*ORDERED, *once)) for node in compared for operator in node.ops):
        return True
    flag = test.operand if isinstance(test, ast.UnaryOp) else test
    asks = isinstance(flag, ast.Call) and name_of(flag.func) == "hasattr"
    return asks or isinstance(flag, (ast.Name, ast.Attribute))
