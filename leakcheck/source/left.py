"""How much of what there was does a new value have? `kept = kept[-n:]`, `kept = [*kept, x]`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from leakcheck.source import numbers
from leakcheck.source.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    File,
    Function,
    ProgramTexts,
    name_of,
    parameters,
    same,
)
from leakcheck.source.words import words

Left = Literal["all", "some", "none", "unknown"]
DEEPEST = 3  # functions that hand back what they are given
_OF_SETS = (ast.Sub, ast.BitAnd, ast.BitXor)
_ARITHMETIC = (ast.Mult, ast.Div, ast.Pow, ast.MatMult, ast.Mod)


def left_of(
    value: ast.expr, kept: ast.expr, program: ProgramTexts, file: File, depth: int = 0
) -> Left:
    """Return how much of `kept` a value has, a variable or an attribute of whichever object.

    `none`: it does not read it, but for its length.
    """
    known = _Left(kept, program, file, depth)
    return known.of(value)


def joins_more(statement: ast.stmt, program: ProgramTexts, file: File) -> bool:
    """Say whether an assignment keeps all of what there was, and more: `x.keys = cat([x.keys, k])`.

    So does `x.seen = x.seen + new` of sparse tensors; a variable that is added to is a value.
    """
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.BinOp()):
            return False
    return lengthens(statement, program, file)


def lengthens(statement: ast.stmt, program: ProgramTexts, file: File) -> bool:
    """Say whether an assignment gives what was, and more, to a container: `kept = kept + [x]`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    if not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return False
    if isinstance(value, COMPREHENSIONS) or is_moved(value):
        return False  # one for each of what was; the very object
    return not _is_same(value, target) and left_of(value, target, program, file) == "all"


def has_all(method: str) -> bool:
    """Say whether what a method gives has all of what it is asked of."""
    return method in words("methods", "same") | words("methods", "moves")


def is_moved(value: ast.AST | None) -> bool:
    """Say whether it is a method that gives its object, or the same elsewhere: `model.eval()`."""
    match value:
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in words("methods", "moves")
    return False


class _Left:
    def __init__(self, kept: ast.expr, program: ProgramTexts, file: File, depth: int) -> None:
        self._kept, self._program, self._file, self._depth = kept, program, file, depth

    def of(self, value: ast.expr) -> Left:
        if not reads(value, self._kept):
            return "none"
        match value:
            case ast.expr() if _is_same(value, self._kept):
                return "all"
            case ast.Lambda():
                return "all"  # it holds it
            case ast.Starred(value=inner) | ast.Await(value=inner) | ast.NamedExpr(value=inner):
                return self.of(inner)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return self._together(parts)
            case ast.Dict(keys=keys, values=values):
                return self._together(values) if None in keys else "all"
            case ast.IfExp(test=test, body=one, orelse=other):
                missing = _is_missing(test, self._kept)
                if missing is not None:  # the first value: there was nothing to leave out
                    return self.of(other if missing else one)
                return _either(self.of(each) for each in (one, other))
            case ast.BoolOp(values=parts):
                return _either(self.of(each) for each in parts if reads(each, self._kept))
            case ast.BinOp():
                return self._of_sum(value)
            case ast.Subscript():
                return self._of_part(value)
            case ast.Call():
                return self._of_call(value)
            case ast.Attribute(value=ast.Call() as call):  # torch.topk(kept, n).values
                return self._of_call(call)
        return self._of_chosen(value) if isinstance(value, COMPREHENSIONS) else "unknown"

    def _together(self, parts: Iterable[ast.expr]) -> Left:
        """Return what several have together: what one has left out, another may have."""
        found = [self.of(each) for each in parts]
        order: tuple[Left, ...] = ("all", "unknown", "some")
        return next((each for each in order if each in found), "none")

    def _of_sum(self, value: ast.BinOp) -> Left:
        if not isinstance(value.op, _OF_SETS):
            return self._together((value.left, value.right))
        numbers = (isinstance(each, ast.Constant) for each in (value.left, value.right))
        products = (_is_arithmetic(each) for each in (value.left, value.right))
        return "all" if any(numbers) or any(products) else "some"  # of sets, unless of tensors

    def _of_part(self, value: ast.Subscript) -> Left:
        parts = getattr(value.slice, "elts", [value.slice])
        cut = [each for each in parts if isinstance(each, ast.Slice)]
        inner = self.of(value.value)
        if any(_is_of_none(each) for each in cut):
            return "none"
        if inner in ("none", "unknown") or not cut:
            return "unknown" if reads(value, self._kept) else "none"
        return "some" if any(map(self._leaves_out, cut)) else inner

    def _leaves_out(self, part: ast.Slice) -> bool:
        """Say whether a slice has less than all: neither `[:]`, nor `[-keep:]` with 0 to keep."""
        match part:
            case ast.Slice(lower=ast.UnaryOp(op=ast.USub(), operand=last), upper=None, step=None):
                return numbers.of(self._program, self._file, last) != 0
        return bool(part.lower or part.upper or part.step)

    def _of_chosen(self, value: ast.AST) -> Left:
        """Return what a comprehension has: with a condition, or asked for by other keys, some."""
        over = getattr(value, "generators", [])
        if _leaves_out(value, self._kept):
            return "none"
        if len(over) != 1:
            return "unknown"
        if over[0].ifs:
            return "some"
        if reads(over[0].iter, self._kept):
            return self.of(over[0].iter)
        measured = any(_is_same(part, self._kept) for part in ast.walk(over[0].iter))
        return "all" if measured else "some"  # for i in range(len(kept))

    def _of_call(self, call: ast.Call) -> Left:
        called = name_of(call.func)
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        given = [*call.args, *(each.value for each in call.keywords)]
        if held is not None and reads(held, self._kept):
            return self._of_method(called, held, given)
        if called in words("functions", "chooses"):
            return "some"
        if called in words("functions", "copies"):
            limited = called == "deque" and (len(call.args) > 1 or bool(call.keywords))
            return "some" if limited else self._together(given)
        if called in words("functions", "joins") or called.lstrip("_")[:1].isupper():
            return self._together(given)  # one that is made with the one before holds it
        return self._handed_back(call)

    def _of_method(self, called: str, held: ast.expr, given: list[ast.expr]) -> Left:
        if called in words("methods", "less"):
            return "some"
        if has_all(called):
            return self._together((held, *given))
        return "unknown"

    def _handed_back(self, call: ast.Call) -> Left:
        """Return what a function of the program's returns of it: at best all, by every way."""
        if self._depth >= DEEPEST:
            return "unknown"
        found: list[Left] = []
        for other, function, first in self._program.called_by(self._file, call):
            names = parameters(function)[first:]
            for at, value in enumerate(call.args):
                if at < len(names) and reads(value, self._kept):
                    found.append(_returned(function, names[at], self._program, other, self._depth))
        return _either(found) if found else "unknown"


def _returned(function: Function, name: str, program: ProgramTexts, file: File, depth: int) -> Left:
    kept = ast.Name(name, ast.Load())
    inner = (node for node in ast.walk(function) if isinstance(node, (*FUNCTIONS, ast.Lambda)))
    if any(node is not function and reads(node, kept) for node in inner):
        return "all"  # a function that holds it
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    told = [
        left_of(each, kept, program, file, depth + 1)
        for each in values
        if each is not None and reads(each, kept)
    ]
    return _either(told) if told and len(told) == len(values) else "unknown"


def reads(value: ast.AST, kept: ast.expr) -> bool:
    """Say whether an expression reads more of `kept` than its length."""
    match value:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute()]):
            return False
        case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
            if _is_same(value, kept):
                return True
    return any(reads(part, kept) for part in ast.iter_child_nodes(value))


def is_empty(value: ast.expr) -> bool:
    """Say whether a value is a container, or nothing, that is made empty: `[]`, `deque()`."""
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Constant(value=nothing):
            return not nothing and not isinstance(nothing, (bool, int))
        case ast.Call(args=[], func=called):
            named = name_of(called) in words("functions", "makes_empty")
            return named or not isinstance(called, ast.Attribute)
        case ast.Call(func=called):
            return name_of(called) == "defaultdict"
    return False


def _is_same(node: ast.AST, kept: ast.expr) -> bool:
    """Say whether both are spelt alike; of attributes only their own name counts."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), *_]):
            return isinstance(kept, ast.Attribute) and kept.attr == name
    if type(node) is not type(kept):
        return False
    return name_of(node) == name_of(kept) if name_of(kept) else same(node, kept)


def _is_missing(test: ast.expr, kept: ast.expr) -> bool | None:
    """Say whether a condition holds where there is nothing yet, or where there is; else None."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            asked = _is_missing(inner, kept)
            return None if asked is None else not asked
        case ast.Compare(left=one, ops=[sign], comparators=[ast.Constant(value=None)]):
            if _is_same(one, kept) and isinstance(sign, (ast.Is, ast.Eq, ast.IsNot, ast.NotEq)):
                return isinstance(sign, (ast.Is, ast.Eq))
        case ast.expr() if _is_same(test, kept):
            return False
    return None


def _is_of_none(part: ast.Slice) -> bool:
    """Say whether it is `[:0]`."""
    last = part.upper
    return part.lower is None and isinstance(last, ast.Constant) and last.value == 0


def _leaves_out(made: ast.AST, kept: ast.expr) -> bool:
    """Say whether a comprehension has nothing of what it goes over: `{k: [] for k in kept}`."""
    if isinstance(made, ast.DictComp):
        return is_empty(made.value)
    if not isinstance(made, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return False
    own = {name_of(part) for each in made.generators for part in ast.walk(each.target)}
    return not reads(made.elt, kept) and own.isdisjoint(map(name_of, ast.walk(made.elt)))


def _is_arithmetic(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC)


def _either(found: Iterable[Left]) -> Left:
    """Return what one of several has, whichever it is: all or a part is at most a part."""
    told = set(found)
    if len(told) == 1:
        return told.pop()
    return "some" if told == {"all", "some"} else "unknown"
