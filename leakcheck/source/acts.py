"""What does an expression do to the place that it stands for? `kept.pop()`, `kept = kept[-n:]`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Literal

from leakcheck.source import numbers
from leakcheck.source.counters import only_counts
from leakcheck.source.entry_names import is_another_entry
from leakcheck.source.guards import NONE, ORDERED, Guard, divisor, guard
from leakcheck.source.left import Left, has_all, is_empty, left_of
from leakcheck.source.mentions import Mention, is_policy
from leakcheck.source.owners import makers_of
from leakcheck.source.places import Held, Place
from leakcheck.source.tree import File, ProgramTexts, is_around, name_below, name_of, root_of, same
from leakcheck.source.words import says, words

Role = Literal[
    "read",
    "add",
    "take",  # something out of it
    "replace",  # it, by something that has none of it
    "cut",  # it to a part
    "ring",  # a place of it that is there already gets another value
    "escape",  # to code that may do any of these
]
_STACKS = ("stack", "cat", "concat", "hstack", "vstack")
_ROLES: dict[Left, Role] = {"none": "replace", "some": "cut", "unknown": "escape", "all": "add"}


@dataclass(frozen=True, slots=True)
class Act:
    """A role, and the guard that an act has in itself: `rows[i % n] = x`.

    `sure`: something is gone whenever it runs; `detached`: what is left has no graph; `by_key`: one
    entry is taken, the one of a key that varies; `whole`: all of it is asked for, given to a
    function or gone over; `gathers`: it is joined or saved.
    """

    role: Role
    sure: bool = False
    guard: Guard = NONE
    detached: bool = False
    by_key: bool = False
    whole: bool = False
    gathers: bool = False


READ = Act("read")


def act_of(program: ProgramTexts, held: Held, mention: Mention) -> Act:
    """Return what an expression does to what it stands for."""
    file, node = mention.file, mention.node
    act = _act_of(program, held, mention)
    if act.role != "read":
        return act
    return replace(act, whole=_is_whole(file, node), gathers=is_gathered(file, node))


def _is_whole(file: File, node: ast.AST) -> bool:
    """Say whether all of it is asked for: `return kept`, `sorted(kept)`, `for each in kept`."""
    below = node
    for above in file.around(node):
        match above:
            case ast.Call(func=called):
                if called is not below:
                    return name_of(called) not in words("functions", "measures")
            case ast.Attribute(attr=method):
                if not has_all(method):
                    return False
            case ast.For(iter=over) | ast.AsyncFor(iter=over) | ast.comprehension(iter=over):
                return over is below
            case ast.Return() | ast.Yield() | ast.YieldFrom():
                return True
            case ast.Dict() | ast.List() | ast.Tuple() | ast.keyword() | ast.Starred():
                pass
            case _:
                return False
        below = above
    return False


def is_gathered(file: File, node: ast.AST) -> bool:
    """Say whether it is joined or saved, in the first argument: `torch.cat([*kept])`."""
    for above in file.around(node):
        if isinstance(above, (ast.stmt, ast.Subscript)):  # of kept[0] it is one element
            return False
        if isinstance(above, ast.Call) and name_of(above.func) in words("functions", "gathers"):
            return any(part is node for part in ast.walk(above.args[0])) if above.args else False
    return False


def is_stacked(file: File, name: str) -> bool:
    """Say whether one tensor is made of what has a name: numbers would not do."""
    calls = (call for stacks in _STACKS for call in file.calls(stacks) if name and call.args)
    parts = (part for call in calls for part in ast.walk(call.args[0]))
    return any(name_below(part) == name for part in parts if isinstance(part, ast.expr))


def _act_of(program: ProgramTexts, held: Held, mention: Mention) -> Act:
    file, node = mention.file, mention.node
    context = getattr(node, "ctx", None)
    if isinstance(context, ast.Store):
        return _stored(program, mention)
    if isinstance(context, ast.Del):
        return READ if mention.place.alias else Act("replace", True)
    match file.above.get(node):
        case ast.Attribute(attr=method) as asked if mention.place.owner:
            return _of_owner(program, mention, asked, method)
        case ast.Subscript(value=whole) as item if whole is node:
            return _item(program, held, mention, item)
        case ast.Attribute(attr=method) as asked:
            return _method(program, held, mention, asked, method)
        case ast.Call(args=args) as call if node in args:
            return _argument(program, held, mention, call)
        case (ast.keyword() | ast.Starred()) as given:
            around = file.above.get(given)
            if isinstance(around, ast.Call):
                return _argument(program, held, mention, around)
        case (ast.Tuple() | ast.List()) as beside:
            return _mapped(file.above.get(beside))
    return READ


def _mapped(call: ast.AST | None) -> Act:
    """Return what `map(list.clear, (outputs, labels))` does to each."""
    match call:
        case ast.Call(func=ast.Name(id="map"), args=[act, *_]) if says(name_of(act), "takes"):
            return Act("escape")
    return READ


def _stored(program: ProgramTexts, mention: Mention) -> Act:
    """Return what an assignment to it does: `kept = []`, `kept = kept[-n:]`, `kept += rows`."""
    file, node, place = mention.file, mention.node, mention.place
    match file.above[node]:
        case ast.AugAssign(op=sign):
            return Act("cut" if isinstance(sign, (ast.Sub, ast.BitAnd, ast.BitXor)) else "add")
        case ast.Starred():
            return Act("cut")  # head, *kept = kept
    if place.alias:
        return READ
    values = file.given(node)
    if not values:
        return _unpacked(program, mention)
    act = _given(program, mention, values[0])
    made = act.role == "replace" and _is_made(program, file, node, place)
    return READ if made or (place.owner and act.role == "add") else act


def _is_made(program: ProgramTexts, file: File, node: ast.expr, place: Place) -> bool:
    """Say whether it is set for the first time: nothing that grew is let go.

    So is a local as its function begins, and an attribute of an object that was made just before.
    """
    function = file.function(node)
    if isinstance(node, ast.Attribute):
        made = makers_of(program, file, node.value) or frozenset()
        beside = [file.function(each) is function for each in made]
        within = [file.loops(each) == file.loops(node) for each in made]
        return bool(made) and function is not None and all(beside) and all(within)
    of_call = place.kind == "variable" and function is not None and function.lineno == place.line
    return of_call and not place.owner and not file.loops(node)


def _unpacked(program: ProgramTexts, mention: Mention) -> Act:
    """Return what it does to a place to be one of several targets: `done, kept = wait(kept)`."""
    statement = mention.file.statement(mention.node)
    if isinstance(statement, ast.Assign):
        reads = left_of(statement.value, mention.node, program, mention.file) != "none"
        return Act("escape") if reads else Act("replace", True)
    return Act("replace", True) if isinstance(statement, (ast.With, ast.AsyncWith)) else READ


def _given(program: ProgramTexts, mention: Mention, value: ast.expr) -> Act:
    """Return what assigning a value does to a place."""
    cut = _cut_before(program, mention, value)
    value = cut or value
    left = left_of(value, mention.node, program, mention.file)
    left = "some" if cut is not None else left
    detached = any(name_of(part) in words("methods", "detaches") for part in ast.walk(value))
    window = _window(program, mention.file, value) if left == "some" else NONE
    return Act(_ROLES[left], left == "none", window, detached)


def _cut_before(program: ProgramTexts, mention: Mention, value: ast.expr) -> ast.expr | None:
    """Return the part of the place that a variable stands for: `rows = kept[-9:]; kept = rows`."""
    file = mention.file
    if not isinstance(value, ast.Name):
        return None
    given = [v for each in file.stores(value) for v in file.given(each)]
    own = (mention.node, value)  # of the place, or of what the variable was before
    cut = (v for v in given for kept in own if left_of(v, kept, program, file) == "some")
    return next(cut, None)


def _window(program: ProgramTexts, file: File, value: ast.AST) -> Guard:
    """Return the guard that a cut has in itself: to the newest n, the best n, those of an age."""
    line = getattr(value, "lineno", 0)
    for part in ast.walk(value):
        limit = _limit_of(part)
        if limit is not None or _compares(part):
            return guard(program, file, "above", limit, value, line)
    return NONE


def _limit_of(part: ast.AST) -> ast.expr | None:
    """Return n of `[-n:]`, `[:n]`, `[:-n]` for what is deleted, `nlargest(n, kept)`, `maxlen=n`."""
    match part:
        case ast.Slice(lower=ast.UnaryOp(op=ast.USub(), operand=most)):
            return most
        case ast.Slice(lower=None, upper=ast.UnaryOp(op=ast.USub(), operand=most)):
            return most
        case ast.Slice(lower=None, upper=ast.expr() as most):
            return most
        case ast.Call(keywords=[ast.keyword(arg="maxlen", value=most)]):
            return most
        case ast.Call(func=called, args=[first, *_, last]):
            if name_of(called) in words("functions", "chooses_first"):
                return first
            return last if name_of(called) in words("functions", "chooses") | {"deque"} else None
    return None


def _remainder(program: ProgramTexts, file: File, item: ast.Subscript) -> Guard:
    """Return the guard of what is left by `del kept[:-n]` and `del kept[n:]`; not by `[:n]`."""
    match item.slice:
        case ast.Slice(lower=None, upper=ast.UnaryOp(op=ast.USub(), operand=most)):
            return guard(program, file, "above", most, item, item.lineno)
        case ast.Slice(lower=ast.Constant() | ast.Name() | ast.Attribute() as most, upper=None):
            return guard(program, file, "above", most, item, item.lineno)
    return NONE


def _compares(part: ast.AST) -> bool:
    return isinstance(part, ast.Compare) and isinstance(part.ops[0], ORDERED)


def _item(program: ProgramTexts, held: Held, mention: Mention, item: ast.Subscript) -> Act:
    """Return what is done to an element or a part: `del kept[0]`, `kept[step % n] = x`."""
    file, key = mention.file, item.slice
    if _is_of_another(held, mention, key):
        return READ
    part = any(isinstance(each, ast.Slice) for each in getattr(key, "elts", [key]))
    if isinstance(item.ctx, ast.Del):
        own = _remainder(program, file, item) if part else _age(program, file, key)
        if part or own.kind != "none":
            return Act("cut", part, own)
        return Act("take", True, by_key=not isinstance(key, ast.Constant))
    if not isinstance(item.ctx, ast.Store):
        return READ
    values = file.given(item)
    if part:
        return _given(program, mention, values[0]) if values else Act("add")
    turns = _turns(program, file, key)
    if (
        turns.kind != "none"
        or _is_position(program, held, file, item)
        or _is_instead(held, file, item)
    ):
        return Act("ring", False, turns)
    if not mention.place.inner or not values:
        return Act("add")
    if _cut_before(program, mention, values[0]) is not None:
        return _given(program, mention, values[0])
    if left_of(values[0], item, program, file) == "some":  # kept[key] = kept[key][-n:]
        return _given(program, replace(mention, node=item), values[0])
    return Act("replace" if is_empty(values[0]) else "add")


def _is_of_another(held: Held, mention: Mention, key: ast.expr) -> bool:
    """Say whether a key is of another element than the one that grows."""
    return mention.whole and is_another_entry(mention.file, key, held.names)


def _is_position(program: ProgramTexts, held: Held, file: File, item: ast.Subscript) -> bool:
    """Say whether a key is a place that may come again: no attribute that only counts up.

    Of a dictionary an attribute of the object that has it, too: `self.state[request.id]` is none.
    """
    key = item.slice
    if not isinstance(key, ast.Attribute) or only_counts(file, key, program):
        return False
    return not held.keyed or same(root_of(key), root_of(item.value))


def _turns(program: ProgramTexts, file: File, key: ast.expr) -> Guard:
    """Return the guard of a key that comes again: `step % n`, `step & 1023`, `randrange(n)`."""
    limit = divisor(key)
    for part in ast.walk(key) if limit is None else ():
        match part:
            case ast.BinOp(op=ast.BitAnd(), right=mask):
                limit = mask
            case ast.Call(func=called, args=[*_, most]):
                limit = most if name_of(called) in words("functions", "draws") else limit
    return NONE if limit is None else guard(program, file, "below", limit, key, key.lineno)


def _age(program: ProgramTexts, file: File, key: ast.expr) -> Guard:
    """Return the guard of a key that is n older: `del rows[step - n]`; not of a position."""
    if isinstance(key, ast.Name):  # old = step - n
        values = [v for each in file.stores(key) for v in file.given(each)]
        key = values[0] if values else key
    match key:
        case ast.BinOp(left=ast.Name() | ast.Attribute(), op=ast.Sub(), right=n):
            if numbers.of(program, file, n) != 1:
                return guard(program, file, "above", n, key, key.lineno)
    return NONE


def _is_instead(held: Held, file: File, node: ast.AST) -> bool:
    """Say whether it is done where else something is added: `else: kept[oldest()] = x`."""
    lines = [line for path, line in held.adds if path == file.path]
    below = node
    for above in file.around(node):
        if isinstance(above, ast.If) and above.orelse and below is not above.test:
            others = above.orelse if below in above.body else above.body
            if any(is_around(each, line) for each in others for line in lines):
                return True
        below = above
    return False


def _method(
    program: ProgramTexts, held: Held, mention: Mention, asked: ast.Attribute, method: str
) -> Act:
    """Return what a method does: `kept.append(x)`, `kept.pop()`, `kept.prune()`."""
    call = mention.file.above.get(asked)
    takes = words("methods", "take") | words("methods", "clear") | words("methods", "take_if_there")
    if not isinstance(call, ast.Call) or call.func is not asked:
        return Act("escape") if method in takes else READ  # done.add_done_callback(kept.discard)
    if method in words("methods", "executes"):
        return _executed(call)
    if method in words("methods", "add"):
        return _added(mention, call, method)
    if method in words("methods", "take_next"):
        return READ if call.args else Act("take", True)
    if method in takes:
        return _taken(program, held, mention, call, method)
    if method in words("methods", "cut"):
        return Act("cut")
    known = bool(program.called_by(mention.file, call))
    plain = any(hasattr(kind, method) for kind in (list, dict, set))
    return Act("escape") if says(method, "takes") and not (known or plain) else READ


def _taken(program: ProgramTexts, held: Held, mention: Mention, call: ast.Call, method: str) -> Act:
    """Return what `kept.pop(k)`, `kept.pop(k, None)` or `kept.clear()` does; the second may not."""
    given = [*call.args, *(each.value for each in call.keywords)]
    if given and _is_of_another(held, mention, given[0]):
        return READ
    age = _age(program, mention.file, given[0]) if given else NONE
    if age.kind != "none":
        return Act("cut", False, age)
    raises = method in words("methods", "take") and len(given) < 2
    clears = method in words("methods", "clear")
    by_key = not clears and bool(given) and not isinstance(given[0], ast.Constant)
    return Act("take", raises or clears, by_key=by_key)


def _added(mention: Mention, call: ast.Call, method: str) -> Act:
    given = [*call.args, *(each.value for each in call.keywords)]
    if method == "update" and given and all(map(_is_of_empty, given)):
        return Act("replace")  # state.update(rows=[])
    goes_on = isinstance(mention.file.above.get(call), (ast.Attribute, ast.Subscript))
    if method == "setdefault" and not goes_on:
        text, line = ast.unparse(call), call.lineno
        return Act("add", False, Guard("new", None, "", text, mention.file.path, line))
    return Act("add")


def _is_of_empty(value: ast.expr) -> bool:
    """Say whether a value is made empty, or a table of such: `{name: [] for name in names}`."""
    return is_empty(value.value if isinstance(value, ast.DictComp) else value)


def _executed(call: ast.Call) -> Act:
    match call.args:
        case [ast.Constant(value=str(text)), *_]:
            told = " ".join(text.lower().split())
            if any(each in told for each in words("names", "deletes")):
                return Act("escape")
    return READ


def _argument(program: ProgramTexts, held: Held, mention: Mention, call: ast.Call) -> Act:
    """Return what a function does with it: by its source, with uses of its own, or its name."""
    called = name_of(call.func)
    first = call.args[:1] == [mention.node]
    if called in words("functions", "heap_add") and first:
        return Act("add")
    if called in words("functions", "heap_swap"):
        return Act("ring")
    if called in words("functions", "heap_take") and first:
        return Act("take", True)
    if program.called_by(mention.file, call) or _is_given_back(mention, call):
        return READ
    return Act("escape") if says(called, "takes") or is_policy(mention.file, call) else READ


def _is_given_back(mention: Mention, call: ast.Call) -> bool:
    """Say whether its own name gets what the call returns: that assignment is the use."""
    statement = mention.file.statement(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    parts = (part for target in targets for part in ast.walk(target))
    return any(name_of(part) == mention.place.name for part in parts)


def _of_owner(program: ProgramTexts, mention: Mention, asked: ast.Attribute, method: str) -> Act:
    """Return what a method of a library's object may do to what the object has: `stack.close()`."""
    call = mention.file.above.get(asked)
    if not isinstance(call, ast.Call) or call.func is not asked or not says(method, "takes"):
        return READ
    return READ if program.called_by(mention.file, call) else Act("escape")
