"""Is a graph gathered for a backward that is yet to come? `log_probs.append(x)` of an episode.

Where another optimizer steps meanwhile, as a critic's does, each of its steps adds to the graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from leakcheck.model import Place, Suspect
from leakcheck.runtime.attribution.assignments import parsed
from leakcheck.runtime.attribution.names import ADDS, name_of
from leakcheck.runtime.introspection.frames import Site
from leakcheck.source.tree import FUNCTIONS, own_nodes
from leakcheck.source.words import words

CREATES = "create_graph"  # backward ties the parameters to their gradients, in C++
Visits = Mapping[tuple[str, int], int]
_CALLS = words("functions", "goes_back")


def backward_at(suspects: Sequence[Suspect], visits: Visits) -> Place | None:
    """Return a backward that takes what holds the graphs, by the source, and has not run yet.

    None unless each graph has one. `visits`: how often each line ran while it grew. Not that of
    `h = cell(x, h)`, which runs on each step, nor one for a sum that is only printed, nor that of
    an epoch's sum where no other backward runs meanwhile (the rule epoch-long-graph).
    """
    found = [_backward_at(one, visits) for one in suspects if one.kind == "graph"]
    return found[0] if found and None not in found else None


def creating_graph(paths: Iterable[str]) -> tuple[Site, ...]:
    """Return the lines of these files where a backward is called with `create_graph`.

    The Nodes do not tell them where backward runs in a thread of its own, as on a device: each
    thread numbers the Nodes that it makes by itself.
    """
    found = {
        Site(path, node.lineno)
        for path in paths
        for node in _backwards(parsed(path))
        for given in node.keywords
        if given.arg == CREATES and not _is_false(given.value) and name_of(node.func) != "grad"
    }
    return tuple(sorted(found))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _backward_at(suspect: Suspect, visits: Visits) -> Place | None:
    held = suspect.holder
    if held.kind not in ("local", "global", "attribute"):
        return None
    paths = dict.fromkeys(place.path for place in suspect.locations)
    backwards = [(path, call) for path in paths for call in _backwards(parsed(path))]
    taken = [
        Place(path, call.lineno, ast.unparse(call))
        for path in paths
        for call in _taken_by(parsed(path), held.name)
    ]
    ran = {(path, call.lineno) for path, call in backwards if visits.get((path, call.lineno), 0)}
    if not taken or not ran or any((place.path, place.line) in ran for place in taken):
        return None
    return taken[0]


def _backwards(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in _CALLS:
            yield node


def _taken_by(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a backward of something, or of what is made of it."""
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))):
        nodes = [node for node in own_nodes(scope) if isinstance(node, (ast.stmt, ast.Call))]
        made = _made_of(nodes, name)
        for node in nodes:
            if isinstance(node, ast.Call) and name_of(node.func) in _CALLS:
                parts = (node.func, *node.args)
                if any(made & set(_names_in(part)) for part in parts):
                    yield node


def _made_of(nodes: Sequence[ast.AST], name: str) -> set[str]:
    """Return a name, and those that are given values made of it."""
    made, known = {name}, 0
    while known < len(made):
        known = len(made)
        for node in nodes:
            targets: list[ast.expr] = []
            match node:
                case ast.Assign(targets=targets, value=value):
                    pass
                case ast.AugAssign(target=target, value=value) | ast.For(target=target, iter=value):
                    targets = [target]
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=target, attr=method)) as value
                ):
                    targets = [target] if method in ADDS else []  # `losses.append(-log_prob * r)`
                case _:
                    continue
            if made & set(_names_in(value)):
                parts = (part for target in targets for part in getattr(target, "elts", [target]))
                made |= {name_of(part) for part in parts} - {"", "self"}
    return made


def _names_in(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield name_of(node)
