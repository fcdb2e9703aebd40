"""Attributes that count: with each addition, for ever, or up to n and from the start again."""

from __future__ import annotations

import ast

from leakcheck.source.tree import File, Function, ProgramTexts, name_of, pairs_of, same


def counts(file: File, counter: ast.expr, function: Function | None = None) -> bool:
    """Say whether an attribute is counted up, in a `function` if one is given: `self.size += 1`."""
    if not isinstance(counter, ast.Attribute):
        return False
    for each in _spelt(file, counter):
        above = file.above[each]
        if function is not None and file.function(each) is not function:
            continue
        if isinstance(above, ast.AugAssign) and above.target is each:
            return True
        values = (value for target, value in pairs_of(above) if target is each)
        parts = (part for value in values for part in ast.walk(value))
        if any(isinstance(part, ast.Attribute) and same(part, counter) for part in parts):
            return True
    return False


def only_counts(file: File, counter: ast.expr, program: ProgramTexts | None = None) -> bool:
    """Say whether an attribute goes up for ever: but for a constructor, nothing else sets it.

    Nor does a number that it is given before the loop that counts. `program`: whose other files may
    set it, too.
    """
    if not isinstance(counter, ast.Attribute):
        return False
    if program is not None:
        found = program.attribute_stores(counter.attr)
    else:
        own = (each for each in file.named(counter.attr) if isinstance(each, ast.Attribute))
        found = [(file, each) for each in own if isinstance(each.ctx, ast.Store)]
    stores = [
        (there, each)
        for there, each in found
        if _is_of_kin(there, each, file, counter) and not there.is_in_constructor(each)
    ]
    later = [one for one in stores if not (program and _begins(program, *one, stores))]
    return bool(later) and all(_goes_up(there.above[each], each) for there, each in later)


def _begins(
    program: ProgramTexts,
    file: File,
    store: ast.Attribute,
    stores: list[tuple[File, ast.Attribute]],
) -> bool:
    """Say whether a store sets a number to count from, before the loop that counts: `self.n = 0`.

    It comes again only as that function is called again, which no loop does.
    """
    function = file.function(store)
    inside = [each for there, each in stores if there is file and file.function(each) is function]
    if file.loops(store) or not any(map(file.loops, inside)) or function is None:
        return False
    callers = program.files(f"{function.name}(")
    again = any(there.loops(call) for there in callers for call in there.calls(function.name))
    return not again and any(map(_is_a_number, file.given(store)))


def goes_down(file: File, counter: ast.expr) -> bool:
    """Say whether an attribute only loses, as what is left of a budget: `self.left -= size`."""
    spelt = _spelt(file, counter) if isinstance(counter, ast.Attribute) else []
    above = (file.above[each] for each in spelt if isinstance(each.ctx, ast.Store))
    changes = [each.op for each in above if isinstance(each, ast.AugAssign)]
    return bool(changes) and all(isinstance(each, ast.Sub) for each in changes)


def only_moves(program: ProgramTexts, counter: ast.expr, way: type[ast.operator]) -> bool:
    """Say whether an attribute only gains, or only loses: but for constructors, nothing sets it."""
    named = program.attribute_stores(counter.attr) if isinstance(counter, ast.Attribute) else []
    above = [f.above[each] for f, each in named if not f.is_in_constructor(each)]
    return bool(above) and all(isinstance(getattr(each, "op", None), way) for each in above)


def goes_up(file: File, number: ast.expr) -> bool:
    """Say whether a number only gains while a loop goes on: `for step in range(n)`, `step += 1`."""
    if not isinstance(number, ast.Name):
        return only_counts(file, number)
    stores = file.stores(number)
    begins = [each for each in stores if any(_is_a_number(v) for v in file.given(each))]
    goes_on = [each for each in stores if each not in begins]
    return bool(goes_on) and all(
        _goes_up(file.above[each], each) or _is_counted(file, each) for each in goes_on
    )


def _is_a_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _is_counted(file: File, target: ast.expr) -> bool:
    """Say whether a loop counts with a name: over a range, or as the first of `enumerate`."""
    above = file.above[target]
    loop = file.above[above] if isinstance(above, ast.Tuple) and above.elts[0] is target else above
    if not isinstance(loop, (ast.For, ast.AsyncFor)) or not isinstance(loop.iter, ast.Call):
        return False
    ways = ("enumerate",) if loop is not above else ("range", "count")
    return name_of(loop.iter.func) in ways and len(loop.iter.args) < 3


def turn_of(file: File, counter: ast.expr) -> ast.expr | None:
    """Return n where a counter begins anew: `self.at = (self.at + 1) % n`, `if at >= n: at = 0`."""
    for each in _spelt(file, counter) if isinstance(counter, ast.Attribute) else ():
        match file.above[each]:
            case ast.AugAssign(op=ast.Mod(), target=target, value=n) if target is each:
                return n
            case ast.Assign(value=ast.BinOp(op=ast.Mod(), right=n)):
                return n
            case ast.Compare(left=left, ops=[ast.GtE() | ast.Gt() | ast.Eq()], comparators=[n]):
                branch = file.above[file.above[each]]
                if left is each and _sets_to_zero(branch, counter):
                    return n
    return None


def _is_of_kin(there: File, one: ast.expr, file: File, other: ast.expr) -> bool:
    """Say whether two attributes of `self` may be one object's; of any other object they may."""
    if not (_is_of_self(one) and _is_of_self(other)):
        return True
    kinds = [there.owner(there.function(one)), file.owner(file.function(other))]
    names = [{kind.name, *map(name_of, kind.bases)} for kind in kinds if kind is not None]
    return len(names) < len(kinds) or not names[0].isdisjoint(names[1])


def _is_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and name_of(node.value) == "self"


def _goes_up(store: ast.AST, counter: ast.expr) -> bool:
    match store:
        case ast.AugAssign(op=ast.Add()):
            return True
        case ast.Assign(value=ast.BinOp(left=left, op=ast.Add())):
            return same(left, counter)
    return False


def _spelt(file: File, counter: ast.Attribute) -> list[ast.Attribute]:
    named = file.named(counter.attr)
    return [each for each in named if isinstance(each, ast.Attribute) and same(each, counter)]


def _sets_to_zero(branch: ast.AST, counter: ast.expr) -> bool:
    return isinstance(branch, ast.If) and any(
        same(target, counter) and isinstance(value, ast.Constant) and value.value == 0
        for each in branch.body
        for target, value in pairs_of(each)
    )
