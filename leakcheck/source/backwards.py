"""Is a graph gathered for a backward that is yet to come? `log_probs.append(x)` of an episode.

Where another optimizer steps meanwhile, as a critic's does, each of its steps adds to the graph.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence

from leakcheck.model import Place, Suspect
from leakcheck.source.tree import ADDS, FUNCTIONS, File, Visits, name_below, own_nodes
from leakcheck.source.words import words

CREATES = "create_graph"  # backward ties the parameters to their gradients, in C++


def backward_at(suspect: Suspect, visits: Visits, file_of: Callable[[str], File]) -> Place | None:
    """Return a backward that takes what holds a graph, by the source, and has not run yet.

    `visits`: how often each line ran while it grew. Not that of `h = cell(x, h)`, which runs on
    each step, nor one for a sum that is only printed, nor that of an epoch's sum where no other
    backward runs meanwhile (the rule epoch-long-graph).
    """
    held = suspect.holder
    if held.kind not in ("local", "global", "attribute"):
        return None
    files = [file_of(path) for path in dict.fromkeys(place.path for place in suspect.locations)]
    lines = {(file.path, call.lineno) for file in files for call in _backwards(file)}
    ran = {line for line in lines if visits.get(line, 0)}
    taken = [(file.path, call) for file in files for call in _taken_by(file.tree, held.name)]
    if not taken or not ran or any((path, call.lineno) in ran for path, call in taken):
        return None
    path, call = taken[0]
    return Place(path, call.lineno, ast.unparse(call))


def creating_graph(files: Iterable[File]) -> list[tuple[str, int]]:
    """Return the lines where a backward is called with `create_graph`.

    The Nodes do not tell them where backward runs in a thread of its own, as on a device: each
    thread numbers the Nodes that it makes by itself.
    """
    found = {
        (file.path, node.lineno)
        for file in files
        for node in _backwards(file)
        for given in node.keywords
        if given.arg == CREATES and not _is_false(given.value) and name_below(node.func) != "grad"
    }
    return sorted(found)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _backwards(file: File) -> Iterator[ast.Call]:
    return (call for name in words("functions", "goes_back") for call in file.calls(name))


def _taken_by(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a backward of something, or of what is made of it."""
    goes_back = words("functions", "goes_back")
    for scope in (tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))):
        nodes = [node for node in own_nodes(scope) if isinstance(node, (ast.stmt, ast.Call))]
        made = _made_of(nodes, name)
        for node in nodes:
            if isinstance(node, ast.Call) and name_below(node.func) in goes_back:
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
                made |= {name_below(part) for part in parts} - {"", "self"}
    return made


def _names_in(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield name_below(node)
