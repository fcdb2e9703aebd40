"""Is what is added taken out of a pool that only shrinks? `kept.append((pool[i], label))`.

By the source: where a program makes the pool anew without what it took, `pool = [x for x in pool
if x not in taken]`, no container is seen to become shorter. Where it takes the place of what it
adds, `free.remove(i); kept.append(x[i])`, what the pool loses is not what is gained.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from leakcheck.source.tree import ADDS, LOOPS, File, is_around, name_below
from leakcheck.source.words import words


def pool_at(file: File, line: int) -> str:
    """Return the name of the pool whose elements a line adds to something, "" if there is none."""
    added = _added_at(line, file.tree)
    pools = (pool for part in added for pool in _sources(part, file.tree))
    shrinking = (pool for pool in pools if _only_shrinks(pool, file))
    beside = (pool for pool in _taken_beside(line, file) if _is_never_filled(pool, file))
    return next((ast.unparse(pool) for pool in (*shrinking, *beside)), "")


def _added_at(line: int, tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what a line adds to something, and the parts of it."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Call, ast.AugAssign, ast.Assign)) and is_around(node, line):
            match node:
                case ast.Call(func=ast.Attribute(attr=method), args=given) if method in ADDS:
                    yield from (part for each in given for part in _parts(each))
                case ast.AugAssign(op=ast.Add() | ast.BitOr(), value=value):
                    yield from _parts(value)
                case ast.Assign(targets=[ast.Subscript()], value=value):
                    yield from _parts(value)


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            yield from (inner for part in parts for inner in _parts(part))
        case ast.Dict(values=parts):
            yield from (inner for part in parts for inner in _parts(part))
        case ast.GeneratorExp(elt=part) | ast.ListComp(elt=part) | ast.SetComp(elt=part):
            yield from _parts(part)
        case ast.Starred(value=part):
            yield from _parts(part)
        case _:
            yield value


def _sources(part: ast.expr, tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what an element may be taken from: `pool[i]`, `for x in pool:`, `x = pool[i]`."""
    if isinstance(part, ast.Name):
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == part.id:
                    yield from _indexed(value)
                case ast.For() | ast.comprehension():
                    if part.id in {name_below(each) for each in _parts(node.target)}:
                        yield from _listed(node.iter)
    else:
        yield from _indexed(part)


def _indexed(value: ast.expr) -> Iterator[ast.expr]:
    match value:
        case ast.Subscript(value=ast.Name() | ast.Attribute() as pool, slice=key):
            if not isinstance(key, ast.Slice):
                yield pool


def _listed(over: ast.expr) -> Iterator[ast.expr]:
    match over:
        case ast.Name() | ast.Attribute():
            yield over
        case ast.Call(func=ast.Name(id="enumerate" | "reversed" | "list"), args=[inner, *_]):
            yield from _listed(inner)


def _taken_beside(line: int, file: File) -> Iterator[ast.expr]:
    """Yield what gives up, each time that a line adds, the place of what that adds."""
    statement = file.innermost_at(line)
    block = _block_of(statement, file) if isinstance(statement, ast.stmt) else []
    for part in _added_at(line, file.tree):
        names = {name_below(each) for each in ast.walk(part) if isinstance(each, ast.Name)}
        for beside in block:
            taken = _taken_by(beside)
            if taken is not None and any(name_below(each) in names for each in taken[1]):
                yield taken[0]


def _block_of(statement: ast.stmt, file: File) -> list[ast.stmt]:
    """Return the statements that run as often as one does: those of its block."""
    above = file.above.get(statement)
    blocks = (getattr(above, name, None) for name in ("body", "orelse", "finalbody"))
    return next((each for each in blocks if isinstance(each, list) and statement in each), [])


def _taken_by(statement: ast.stmt) -> tuple[ast.expr, list[ast.expr]] | None:
    """Return what a statement takes one element out of, and the names that stand for that one."""
    take = words("methods", "take")
    match statement:
        case ast.Assign(
            targets=[target], value=ast.Call(func=ast.Attribute(value=pool, attr=method))
        ):
            named = list(_parts(target))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=pool, attr=method), args=[one])):
            named = [one]
        case ast.Delete(targets=[ast.Subscript(value=pool, slice=one)]):
            method, named = "pop", [one]
        case _:
            return None
    known = isinstance(pool, (ast.Name, ast.Attribute)) and method in take
    return (pool, [each for each in named if isinstance(each, ast.Name)]) if known else None


def _is_never_filled(pool: ast.expr, file: File) -> bool:
    """Say whether it is made once, before any loop or with its object, and nothing adds to it."""
    made = False
    for node in _alike(pool, file):
        above = file.above[node]
        if _adds(above):
            return False
        if isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store):
            return False
        if isinstance(node.ctx, ast.Store) and not _is_cut(file.statement(node), name_below(pool)):
            function = file.function(node)
            constructed = function is None or function.name in words("names", "constructors")
            if file.loops(node) or not (constructed or isinstance(node, ast.Name)):
                return False
            made = True
    return made


def _adds(above: ast.AST) -> bool:
    """Say whether what stands around a container is a method that adds to it."""
    return isinstance(above, ast.Attribute) and above.attr in ADDS


def _only_shrinks(pool: ast.expr, file: File) -> bool:
    """Say whether a loop makes it anew with less, and nothing is added to it there."""
    less = False
    for node in _alike(pool, file):
        if _adds(file.above[node]):
            return False
        in_loop = any(isinstance(each, LOOPS) for each in file.around(node))
        if isinstance(node.ctx, ast.Store) and in_loop:
            if not _is_cut(file.statement(node), name_below(pool)):
                return False
            less = True
    return less


def _alike(pool: ast.expr, file: File) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the uses of a variable of the same scope, or of attributes of its name."""
    for node in file.named(name_below(pool)):
        if isinstance(node, ast.Name) and isinstance(pool, ast.Name):
            if file.scope(node) is file.scope(pool):
                yield node
        elif isinstance(node, ast.Attribute) and isinstance(pool, ast.Attribute):
            yield node


def _is_cut(statement: ast.stmt, name: str) -> bool:
    """Say whether an assignment leaves some of what there was, and adds nothing."""
    match statement:
        case ast.AugAssign(op=sign):
            return isinstance(sign, ast.Sub)
        case ast.Assign(targets=[ast.Name() | ast.Attribute()], value=value):
            return _is_rest(value, name)
    return False


def _is_rest(value: ast.expr, name: str) -> bool:
    match value:
        case ast.ListComp(generators=[over]) | ast.SetComp(generators=[over]):
            return bool(over.ifs) and _is_all(over.iter, name)
        case ast.DictComp(generators=[over]) | ast.GeneratorExp(generators=[over]):
            return bool(over.ifs) and _is_all(over.iter, name)
        case ast.Subscript(value=whole) | ast.BinOp(left=whole, op=ast.Sub()):
            return _is_all(whole, name)
        case ast.Call(func=ast.Name(id="filter"), args=[_, whole]):
            return _is_all(whole, name)
        case ast.Call(func=ast.Name(id="list" | "set" | "dict" | "tuple"), args=[inner]):
            return _is_rest(inner, name)
        case ast.Call(func=ast.Attribute(value=whole, attr="difference")):
            return _is_all(whole, name)
    return False


def _is_all(value: ast.expr, name: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=whole, attr="items" | "values" | "keys")):
            return _is_all(whole, name)
        case ast.Call(func=ast.Name(id="enumerate" | "list" | "sorted"), args=[whole, *_]):
            return _is_all(whole, name)
        case ast.Name(id=named) | ast.Attribute(attr=named):
            return named == name
    return False
