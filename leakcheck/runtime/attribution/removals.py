"""Might the program take something away from what grows, in a way that tells no limit?

By its source: every use of its name is looked at, and what is not known to read it or to add to it
may be a limit that nobody thought of. `kept = prune(kept)`, `done, kept = wait(kept)`,
`weakref.finalize(x, kept.pop, key)`.
"""

from __future__ import annotations

import ast
import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.additions import is_given_less, returns_all
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.emptying import ORDERED
from leakcheck.runtime.attribution.library import deleted_by_sql, emptied_by_owner
from leakcheck.runtime.attribution.names import (
    FUNCTIONS,
    LOOPS,
    REMOVES,
    TAKES,
    functions_in,
    handed_to,
    is_around,
    is_inner,
    name_of,
    names_of,
    owners_of,
)
from leakcheck.runtime.attribution.uncalled import uncalled_lines
from leakcheck.runtime.attribution.uses import Kinds, Use, is_said_to_take, uses_in
from leakcheck.runtime.introspection import frames

Visits = Mapping[tuple[str, int], int]  # how often each line ran while it grew
MOST_FILES = 16  # of the program's, in which a name is looked for
DEEPEST = 3  # functions that hand it on to each other
_TAKES_ONE = ("pop", "popleft", "popitem", "remove", *TAKES)  # or raises, if there is none
_PLAIN = (list, dict, set, deque)  # whose own methods need no look
_SWAPS = ("heapreplace", "heappushpop")
_CHANCES = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.GeneratorExp)
_LEAVES = (ast.Break, ast.Raise, ast.Return)
_HEADED = (ast.If, *LOOPS, ast.With, ast.Try)


def removed_at(suspects: Sequence[Suspect], visits: Visits) -> Place | None:
    """Return a statement that may take away from what grows, if each suspect has one.

    Not for a graph, which nobody means to keep. What takes one element or raises, and ran while it
    grew, has not kept up.
    """
    found = [_removed_at(one, visits) if one.kind != "graph" else None for one in suspects]
    return found[0] if found and None not in found else None


def _removed_at(suspect: Suspect, visits: Visits) -> Place | None:
    for place in suspect.locations:
        search = _Search(place.path, place.line, visits, is_inner(suspect))
        of_links = ((name, parsed(place.path)) for name in _links_of(suspect))
        for name, within in (*names_of(suspect, place), *of_links):
            for scope in _scopes(suspect, within):
                found = search.removal_in(scope, name, _kinds(suspect, name, within))
                if found is not None:
                    return _told(place.path, found)
        for name, within in owners_of(suspect, parsed(place.path)):
            for use in uses_in(within, name, (ast.Name, ast.Attribute)):
                again = isinstance(use.context, ast.Store) and use.is_in_loop
                if again and is_given_less(use.statement, use.node):
                    return _told(place.path, use.statement)
    by_library = emptied_by_owner(suspect) or deleted_by_sql(suspect)
    return by_library or _removed_elsewhere(suspect, visits)


def _removed_elsewhere(suspect: Suspect, visits: Visits) -> Place | None:
    """Look for what is taken out of an attribute or a module's global in the other files.

    There it is known by its name alone: `p.data = p.data - step` is of something else.
    """
    own = [name] if (name := suspect.holder.named.name) and suspect.holder.kind != "local" else []
    here = {os.path.realpath(place.path) for place in suspect.locations}
    for name in (*own, *_links_of(suspect)):
        for path in islice(frames.own_files_with(name), MOST_FILES):
            if os.path.realpath(path) not in here:
                search = _Search(frames.shown(path), 0, visits, is_inner(suspect))
                found = search.removal_in(parsed(path), name, (ast.Attribute,), by_name=True)
                if found is not None:
                    return _told(search.path, found)
    return None


def _told(path: str, statement: ast.stmt) -> Place:
    return Place(path, statement.lineno, ast.unparse(statement).partition("\n")[0])


def _links_of(suspect: Suspect) -> tuple[str, ...]:
    """Return the attributes that lead to what grows where no container was seen to.

    Those of a linked list, or the one with a list that is made anew on each step.
    """
    links = suspect.trace.links if suspect.trace else ()
    edges = [link.edge for link in links]
    if all(edge.startswith(".") for edge in edges):
        return tuple(edge[1:] for edge in edges)
    if any(link.suspect and link.edge.startswith("[") for link in links):
        return ()
    return tuple(
        edge[1:] for edge, inside in pairwise(edges) if edge[0] == "." and inside[0] == "["
    )


def _kinds(suspect: Suspect, name: str, within: ast.AST) -> Kinds:
    """Return whether what grows is a variable of this name there, an attribute, or either."""
    if suspect.holder.kind == "attribute" and isinstance(within, ast.Module):
        return (ast.Attribute,)
    own = suspect.holder.named.name
    return (ast.Name,) if name == own else (ast.Name, ast.Attribute)


def _scopes(suspect: Suspect, within: ast.AST) -> Sequence[ast.AST]:
    """Return where a name means what grows: a local only in its own function."""
    held = suspect.holder
    if held.kind != "local" or held.root is not None or not isinstance(within, ast.Module):
        return (within,)
    return [one for one in functions_in(within) if one.name == held.function] or (within,)


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks at the uses of a name in one file, which grows at the line that `adds`.

    `inner`: an element of what has the name grows.
    """

    path: str
    adds: int
    visits: Visits
    inner: bool

    def removal_in(
        self, scope: ast.AST, name: str, kinds: Kinds, depth: int = 0, *, by_name: bool = False
    ) -> ast.stmt | None:
        """Return the first statement that may take away; `kinds`: names, attributes or both.

        `by_name`: it may be of something else, so that only what removes elements counts.
        """
        for use in uses_in(scope, name, kinds):
            other = by_name and isinstance(use.context, ast.Store) and not _is_chosen(use)
            once = not depth and use.is_after_loop(self.adds)
            never = use.statement.lineno in uncalled_lines(self.path)
            if not (other or once or never) and self._takes(use, use.statement, depth):
                return use.statement
        return None

    def _takes(self, use: Use, statement: ast.stmt, depth: int) -> bool:
        if isinstance(use.context, ast.Store):
            less = is_given_less(statement, use.node)
            return less and not self._is_handed_back(statement, use.name, depth)
        at: ast.AST = use.node
        up = use.above[at]
        while self.inner and _is_item_of(up, at) and isinstance(use.above[up], ast.Attribute):
            at, up = up, use.above[up]
        if _is_item_of(up, at):
            return self._takes_item(up, use, statement)
        match up:
            case ast.Delete():
                return True
            case ast.Attribute(attr=method):
                return self._takes_by(method, up, use, depth)
            case ast.Call(func=ast.Name(id="len")):
                return _leaves_by(up, use)
            case ast.Call() | ast.keyword():
                call = up if isinstance(up, ast.Call) else use.above[up]
                if isinstance(call, ast.Call) and call.func is not at:
                    return self._is_taken_by(call, use, statement, depth)
        return False

    def _takes_item(self, item: ast.AST, use: Use, statement: ast.stmt) -> bool:
        assert isinstance(item, ast.Subscript)
        if isinstance(item.ctx, ast.Del):
            return not self._has_run(item, statement, use)
        if isinstance(item.ctx, ast.Store):
            part = isinstance(item.slice, ast.Slice)
            less = self.inner and is_given_less(statement, use.node)
            return part or less or self._is_otherwise(statement, use)
        return False

    def _is_otherwise(self, statement: ast.stmt, use: Use) -> bool:
        """Say whether a place is taken where else one is added: `else: kept[oldest()] = x`."""
        branches = (each for each in use.around() if isinstance(each, ast.If) and each.orelse)
        branch = next((each for each in branches if is_around(each, self.adds)), None)
        if branch is None:
            return False
        below = branch.orelse[0].lineno
        return (statement.lineno < below) != (self.adds < below)

    def _takes_by(self, method: str, called: ast.AST, use: Use, depth: int) -> bool:
        call = use.above[called]
        if not isinstance(call, ast.Call) or call.func is not called:
            return method in REMOVES  # handed on: done.add_callback(kept.discard)
        if method in TAKES:  # what a dictionary is asked for stays there
            return not call.args and not self._has_run(call, use.statement, use)
        if method in _TAKES_ONE and len(call.args) + len(call.keywords) < 2:
            return not self._has_run(call, use.statement, use)
        if method in REMOVES or is_said_to_take(method):
            return True
        known = depth >= DEEPEST or any(hasattr(kind, method) for kind in _PLAIN)
        functions = () if known else functions_in(parsed(self.path))
        return any(
            self.removal_in(one, "self", (ast.Name,), depth + 1) is not None
            for one in functions
            if one.name == method
        )

    def _is_taken_by(self, call: ast.Call, use: Use, statement: ast.stmt, depth: int) -> bool:
        """Say whether what is called takes away from it, by its source or else by its name."""
        called = name_of(call.func)
        if called in _SWAPS:
            return self._is_otherwise(statement, use)
        paths = [self.path]
        if depth < DEEPEST and not list(handed_to(call, use.name, parsed(self.path))):
            defined = (f"def {called}(", f"class {called}")
            files = (path for words in defined for path in frames.own_files_with(words))
            paths = list(islice(files, MOST_FILES)) if called else []
        known = [
            (replace(self, path=frames.shown(path)), function, given)
            for path in paths
            for function, given in handed_to(call, use.name, parsed(path))
        ]
        if not known or depth >= DEEPEST:
            return is_said_to_take(called) or _is_policy(call, use)
        return any(
            search.is_taken_in(function, given, depth + 1) for search, function, given in known
        )

    def is_taken_in(self, function: ast.AST, given: str, depth: int) -> bool:
        """Say whether a function takes away from a parameter, or a class whose object keeps it."""
        if self.removal_in(function, given, (ast.Name,), depth) is not None:
            return True
        kept = (
            node.targets[0].attr
            for node in (ast.walk(function) if isinstance(function, ast.ClassDef) else ())
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == given
        )
        return any(self.removal_in(function, name, (ast.Attribute,), depth) for name in kept)

    def _is_handed_back(self, statement: ast.stmt, name: str, depth: int) -> bool:
        """Say whether a function of the file returns all of it, or a function that holds it."""
        value = getattr(statement, "value", None)
        if not isinstance(value, ast.Call) or depth >= DEEPEST:
            return False
        known = list(handed_to(value, name, parsed(self.path)))
        return bool(known) and all(
            isinstance(function, FUNCTIONS)
            and returns_all(function, given)
            and self.removal_in(function, given, (ast.Name,), depth + 1) is None
            for function, given in known
        )

    def _has_run(self, node: ast.AST, statement: ast.stmt, use: Use) -> bool:
        """Say whether it surely ran while it grew: not where one line tells of a condition too."""
        outer = use.above.get(statement)
        line = statement.lineno
        if isinstance(outer, _HEADED) and outer.lineno == line:
            return False
        while node is not statement:
            if isinstance(node, _CHANCES):
                return False
            node = use.above[node]
        return self.visits.get((self.path, line), 0) > 0


def _is_chosen(use: Use) -> bool:
    """Say whether a part is put in the place of all: a slice, or those that a condition holds for.

    `p.data = p.data - step` is of something else than `log.data`.
    """
    value = getattr(use.statement, "value", None)
    if (
        isinstance(value, ast.Call)
        and value.args
        and name_of(value.func) in ("list", "set", "dict")
    ):
        value = value.args[0]
    match value:
        case ast.Subscript(slice=ast.Slice()):
            return True
        case ast.ListComp(generators=[over]) | ast.DictComp(generators=[over]):
            return bool(over.ifs)
        case ast.SetComp(generators=[over]) | ast.GeneratorExp(generators=[over]):
            return bool(over.ifs)
        case ast.Call(func=ast.Name(id="filter")):
            return True
    return False


def _is_policy(call: ast.Call, use: Use) -> bool:
    """Say whether a parameter is called for what it does, `policy(rows)`; not `y = model(x)`."""
    if not isinstance(call.func, ast.Name) or not isinstance(use.statement, ast.Expr):
        return False
    if use.statement.value is not call:
        return False
    functions = (each for each in use.around() if isinstance(each, FUNCTIONS))
    given = (one for each in functions for one in (*each.args.args, *each.args.kwonlyargs))
    return any(one.arg == call.func.id for one in given)


def _is_item_of(node: ast.AST, held: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and node.value is held


def _leaves_by(length: ast.AST, use: Use) -> bool:
    """Say whether a length decides that a loop or function ends: `if len(kept) > n: break`."""
    compared = use.above[length]
    if not isinstance(compared, ast.Compare) or not isinstance(compared.ops[0], ORDERED):
        return False
    sides = (compared.left, *compared.comparators)
    if any(isinstance(side, ast.Constant) and side.value in (0, 1) for side in sides):
        return False
    outer = next((each for each in use.around() if isinstance(each, ast.stmt)), None)
    if isinstance(outer, (ast.While, ast.Assert)):
        return True
    return isinstance(outer, ast.If) and any(isinstance(each, _LEAVES) for each in outer.body)
