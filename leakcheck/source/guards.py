"""What does the condition around a use say of the place? `if len(kept) > n:`, `if not kept:`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from leakcheck.source import numbers
from leakcheck.source.conditions import Condition, conditions, in_full
from leakcheck.source.constants import Constants, Running
from leakcheck.source.counters import (
    counts,
    goes_down,
    goes_up,
    only_moves,
    turn_of,
)
from leakcheck.source.lasting import asks_what_lasts
from leakcheck.source.mentions import Mention
from leakcheck.source.owners import receiver_of
from leakcheck.source.tree import (
    FUNCTIONS,
    LOOPS,
    File,
    ProgramTexts,
    asks_for_main,
    name_of,
    same,
)
from leakcheck.source.words import words

GuardKind = Literal[
    "none",
    "below",  # a length is less than n
    "above",  # it is n or more
    "every",  # at each n-th
    "missing",  # the place itself is empty, unset or not there
    "new",  # it is not there yet: a key, a value that was looked for
    "first",  # an order of other sizes, or one step of many: it may cease to hold
    "flag",  # a name, or a question to an object that lasts
    "same",  # it holds at each step, or at none: nothing sets what is asked for
    "other",  # another question
]
DEEPEST = 8  # conditions that are asked for by names within one another
MOST_HELD = 100_000_000  # elements: of the smallest tensors 50 GB, so that no machine comes to it
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
Sign = type[ast.cmpop]
Places = frozenset[ast.expr]
Said = tuple[GuardKind, ast.expr | None]  # a kind, and the expression of its n
_NOTHING: Said = ("none", None)
_MIRRORED: dict[Sign, Sign] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_OPPOSITE: dict[Sign, Sign] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_RANK: tuple[GuardKind, ...] = (
    "below",
    "above",
    "every",
    "missing",
    "new",
    "first",
    "flag",
    "same",
    "other",
)
_BY_VALUE = ("new", "first", "flag", "other")
_WEAK = ("new", "missing", "first", "flag", "other")


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition: its kind, the number in it if it can be read, and its text and line.

    `limit`: the expression that stands for the number, for whoever can ask live objects, and
    `counter` what is compared with it, if that is not the place's own length; `only`: nothing else
    is asked; `part_ceases`: what is asked beside it, or a part of it, may cease to hold for good;
    `of_self`: it asks the object whose method it is in, and there may be others.
    """

    kind: GuardKind = "none"
    n: int | None = None
    limit: str = ""
    test: str = ""
    path: str = ""
    line: int = 0
    only: bool = True
    counter: str = ""
    part_ceases: bool = False
    of_self: bool = False

    @property
    def ceases(self) -> bool:
        """Whether it may cease to hold for good: it is new only once, or an order of others."""
        return self.part_ceases or self.kind in ("missing", "new", "first", "flag")


NONE = Guard()


@dataclass(frozen=True, slots=True)
class Guards:
    """Reads the guards of one place.

    `places`: all expressions that stand for it.
    """

    program: ProgramTexts
    places: Places
    running: Running

    def of(self, mention: Mention) -> Guard:
        """Return the strongest condition around an expression, in its own function."""
        room = _Subject(self, mention.file, mention).room()
        around = self.around(mention.file, mention.node, mention)
        return strongest((around, room, _of_function(mention)))

    def around(
        self, file: File, node: ast.AST, mention: Mention, *, goes_on: bool = False
    ) -> Guard:
        """Return the strongest condition around another node, such as a call that leads there.

        `goes_on`: that call still runs, so that what was asked before it is not asked again.
        """
        return strongest(self._each(file, node, mention, goes_on=goes_on))

    def bars(self, mention: Mention) -> bool:
        """Say whether a condition was asked that is the same at each step, or holds no more.

        What did not run behind it never will.
        """
        file, subject = mention.file, _Subject(self, mention.file, mention)
        return any(
            self.running.ran(file, getattr(each.node, "lineno", 0)) and subject.never_holds(each)
            for each in conditions(file, mention.node)
        )

    def _each(
        self, file: File, node: ast.AST, mention: Mention, *, goes_on: bool = False
    ) -> Iterator[Guard]:
        subject = _Subject(self, file, mention, goes_on)
        return (subject.classified(one) for one in conditions(file, node))


def strongest(guards: Iterable[Guard]) -> Guard:
    """Return the guard that says most: a length, before a key, before a flag."""
    found = list(dict.fromkeys(each for each in guards if each.kind != "none"))
    best = min(found, key=lambda each: _RANK.index(each.kind), default=NONE)
    ceases = any(each.ceases for each in found)
    return replace(best, only=best.only and len(found) < 2, part_ceases=ceases)


def guard(
    program: ProgramTexts,
    file: File,
    kind: GuardKind,
    limit: ast.expr | None,
    test: ast.AST,
    line: int,
) -> Guard:
    """Return a guard with its number, if the files say which it is."""
    told = "" if limit is None else ast.unparse(limit)
    number = numbers.of(program, file, limit)
    return Guard(kind, number, told, ast.unparse(test), file.path, line)


def _is_receiver(file: File, node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and receiver_of(file, node) != ""


def _of_function(mention: Mention) -> Guard:
    """Return the guard of a method that Python calls for what is not there: `__missing__`."""
    function = mention.file.function(mention.node)
    if function is None or function.name not in words("names", "fills"):
        return NONE
    return Guard("new", None, "", f"def {function.name}", mention.file.path, function.lineno)


@dataclass(frozen=True, slots=True)
class _Subject:
    """What conditions are asked about: a mention of the place, in one file of the program."""

    guards: Guards
    file: File
    mention: Mention
    goes_on: bool = False  # what the conditions are around

    @property
    def program(self) -> ProgramTexts:
        """The whole program."""
        return self.guards.program

    def classified(self, condition: Condition) -> Guard:
        """Return what a condition says about the place, and whether a part of it may cease."""
        found, parts = self._classified(condition), _parts_of(condition)
        if found.kind == "none" or len(parts) < 2:
            return found
        return replace(found, part_ceases=any(self._classified(each).ceases for each in parts))

    def _classified(self, condition: Condition) -> Guard:
        kind, limit = self._said(condition.test, condition.holds, condition)
        if kind == "none":
            return NONE
        running = self.guards.running
        counter = self._counter(condition.test) if kind in ("below", "above") else ""
        of_others = kind in _WEAK or bool(counter)  # no length of the place
        if of_others and condition.left and running.lasts(self.file, condition.left):
            return NONE  # no more steps come where it does not hold
        line = getattr(condition.node, "lineno", 0)
        asked_once = self.goes_on or (condition.outside and not running.ran(self.file, line))
        if kind in _WEAK and asked_once:
            kind = "other"  # it held when the loop began; in the loop it ends nothing
        elif kind in _BY_VALUE and self._stays(condition.test):
            kind = "same"
        elif kind == "other" and self._asks_what_lasts(condition):
            kind = "flag"
        found = guard(self.program, self.file, kind, limit, condition.test, line)
        several = isinstance(in_full(self.program, self.file, condition.test), ast.BoolOp)
        of_self = any(_is_receiver(self.file, each) for each in ast.walk(condition.test))
        return replace(found, only=not several, counter=counter, of_self=of_self)

    def never_holds(self, condition: Condition) -> bool:
        """Say whether a condition that did not hold never will: nothing moves it there."""
        each = _parts_of(condition)
        return self.classified(condition).kind == "same" or any(map(self._moves_away, each))

    def _moves_away(self, condition: Condition) -> bool:
        """Say whether what is to be greater only falls, or what is to be less only rises."""
        match condition.test:
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _MIRRORED:
                holds = type(sign) if condition.holds else _OPPOSITE[type(sign)]
                less, greater = (left, right) if holds in (ast.Lt, ast.LtE) else (right, left)
                falls = self._stays(less) and only_moves(self.program, greater, ast.Sub)
                rises = self._stays(greater) and only_moves(self.program, less, ast.Add)
                return falls or rises
        return False

    def _counter(self, test: ast.expr) -> str:
        """Return what is compared where that is no length of the place: a count, `len(other)`."""
        asked = in_full(self.program, self.file, test)
        function = self.file.function(self.mention.node)
        for part in ast.walk(asked):
            match part:
                case ast.Call(func=ast.Name(id="len"), args=[ast.Name() | ast.Attribute() as held]):
                    inside = isinstance(held, ast.Name) and held.id == "self"
                    return "" if inside or self._is_place(held) else ast.unparse(part)
        parts = [part for part in ast.walk(asked) if isinstance(part, ast.Attribute)]
        counted = (part for part in parts if counts(self.file, part, function))
        return next((ast.unparse(part) for part in counted), "")

    def _said(self, test: ast.expr, holds: bool, at: Condition, depth: int = 0) -> Said:
        if depth > DEEPEST:
            return "other", None  # `keeps = keeps and step < n` asks for itself
        asked = test if self._is_place(test) else in_full(self.program, self.file, test)
        match asked:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self._said(inner, not holds, at, depth + 1)
            case ast.BoolOp(op=sign, values=parts):
                found = [self._said(each, holds, at, depth + 1) for each in parts]
                return _of_parts(found, every=isinstance(sign, ast.And) == holds)
            case ast.Compare() if asks_for_main(asked):
                return _NOTHING
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                known = type(sign) if holds else _OPPOSITE[type(sign)]
                return self._compared(left, known, right, at)
            case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[]) if method in words(
                "methods", "holds_for"
            ):
                compared = isinstance(in_full(self.program, self.file, inner), ast.Compare)
                return self._said(inner, holds, at, depth + 1) if compared else ("other", None)
            case ast.Call():
                return self._asked(asked, holds), None
            case ast.Name() | ast.Attribute() if self._is_place(asked):
                return ("none" if holds else "missing"), None
            case ast.Name() | ast.Attribute():
                return "flag", None
        return "other", None

    def _compared(self, left: ast.expr, sign: Sign, right: ast.expr, at: Condition) -> Said:
        divided = divisor(left) or divisor(right)
        if divided is not None:
            return "every", divided
        if sign is ast.In and self._is_place(right) and self._takes():
            return _NOTHING  # `if old in kept: del kept[old]`
        if sign in (ast.In, ast.NotIn) and goes_up(self.file, left):
            return ("first" if sign is ast.In else "other"), None  # a counter passes them all
        if sign in (ast.In, ast.NotIn):
            new = sign is ast.NotIn and not self._keeps(right)
            return ("new" if new else "other"), None
        if isinstance(right, ast.Constant) and right.value is None:
            if self._is_place(left):  # that it is there holds for good
                return ("missing" if sign in (ast.Is, ast.Eq) else "none"), None
            return ("new" if sign in (ast.Is, ast.Eq) else "other"), None
        if self._is_length(right, at) or not self._measures(left, at):
            left, right, sign = right, left, _MIRRORED.get(sign, sign)
        if self._measures(left, at) and not goes_down(self.file, left):
            return self._length(sign, right)
        if any(isinstance(s, ast.Call) and name_of(s.func) == "len" for s in (left, right)):
            return "other", None  # the length of a batch, or of what nothing is added to here
        if self._holds_from(left, sign, right):
            return "other", None  # that never ceases to hold
        constant = next((s for s in (left, right) if isinstance(s, ast.Constant)), None)
        if sign in ORDERED or (sign is ast.Eq and constant is not None):
            return "first", constant
        return "other", None

    def _length(self, sign: Sign, limit: ast.expr) -> Said:
        """Say what a length is, by what it is compared with: a counter may turn, or go up."""
        if isinstance(limit, ast.Constant) and not limit.value:
            return ("missing" if sign in (ast.Eq, ast.Lt, ast.LtE) else "none"), None
        turn = turn_of(self.file, limit)
        if turn is None and counts(self.file, limit):
            return _NOTHING  # `if self.at >= len(kept)`: a place that goes up for ever
        below = sign in (ast.Lt, ast.LtE, ast.NotEq) or (sign is ast.Eq and turn is not None)
        return ("below" if below else "above"), turn or limit

    def _asked(self, call: ast.Call, holds: bool) -> GuardKind:
        """Say what a question is: `kept.full()`, `hasattr(self, "rows")`, `kept.get(key)`."""
        match call:
            case ast.Call(func=ast.Attribute(value=held, attr="full")) if self._is_place(held):
                return "above" if holds else "below"
            case ast.Call(func=ast.Name(id="hasattr")):
                return "other" if holds else "missing"
            case ast.Call(func=ast.Name(id="len"), args=[held]) if self._is_place(held):
                return "none" if holds else "missing"
            case ast.Call(func=ast.Attribute(value=held, attr="get")) if self._is_place(held):
                return "other" if holds else "new"
        return "other"

    def _is_place(self, node: ast.expr) -> bool:
        return (node.value if isinstance(node, ast.Subscript) else node) in self.guards.places

    def _keeps(self, held: ast.expr) -> bool:
        """Say whether something never has more elements: it is spelt out, or nothing adds to it."""
        if isinstance(held, (ast.Tuple, ast.List, ast.Set)):
            return all(isinstance(each, ast.Constant) for each in held.elts)
        if not isinstance(held, (ast.Name, ast.Attribute)) or self._is_place(held):
            return False
        named = [each for each in self.file.named(name_of(held)) if isinstance(each, ast.expr)]
        made = [value for each in named for value in self.file.given(each)]
        parts = (part for value in made for part in ast.walk(value) if isinstance(part, ast.expr))
        changes = any(map(self._is_place, parts)) or any(map(self._may_gain, named))
        return bool(made) and not changes

    def _may_gain(self, held: ast.expr) -> bool:
        """Say whether something is added where a container is named, or it is handed on there."""
        match self.file.above.get(held):
            case ast.Attribute(attr=method):
                return method in words("methods", "add")
            case ast.Call(func=called):
                return name_of(called) not in words("functions", "measures")
            case ast.Subscript(ctx=ast.Store()) | ast.AugAssign() | ast.keyword() | ast.Return():
                return True
        return False

    def _holds_from(self, left: ast.expr, sign: Sign, right: ast.expr) -> bool:
        """Say whether a comparison begins to hold at some step: `step >= self.config.warmup`."""
        greater = right if sign in (ast.Lt, ast.LtE) else left
        return sign in ORDERED and goes_up(self.file, greater)

    def _asks_what_lasts(self, condition: Condition) -> bool:
        match in_full(self.program, self.file, condition.test):
            case ast.BoolOp():
                return False
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                holds = type(sign) if condition.holds else _OPPOSITE[type(sign)]
                if self._holds_from(left, holds, right):
                    return False
        return asks_what_lasts(self.program, self.file, condition.test)

    def _stays(self, test: ast.expr) -> bool:
        return Constants(self.program, self.guards.running).has(self.file, test)

    def _takes(self) -> bool:
        """Say whether the mention is of what is taken away."""
        above = self.file.above.get(self.mention.node)
        deleted = isinstance(getattr(above, "ctx", None), ast.Del)
        asked = above.attr if isinstance(above, ast.Attribute) else ""
        return deleted or asked in words("methods", "take") | words("methods", "take_if_there")

    def _measures(self, node: ast.expr, at: Condition) -> bool:
        """Say whether an expression is a length, or an attribute that counts what is added."""
        function = self.file.function(self.mention.node)
        counter = isinstance(node, ast.Attribute) and counts(self.file, node, function)
        return counter or self._is_length(node, at)

    def _is_length(self, node: ast.expr, at: Condition) -> bool:
        """Say whether an expression is the length of the place, or of one beside it."""
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[held]):
                inside = isinstance(held, ast.Name) and held.id == "self"
                return inside or self._is_place(held) or self._is_beside(held, at)
            case ast.Call(func=ast.Attribute(value=held, attr=method), args=[]):
                return method in words("methods", "length") and self._is_place(held)
        return False

    def _is_beside(self, other: ast.expr, at: Condition) -> bool:
        """Say whether what is measured is added to, or taken from, where the place is."""
        added = words("methods", "add")
        mine = self.file.above.get(self.mention.node)
        adds = isinstance(mine, ast.Attribute) and mine.attr in added
        wanted = added if adds else words("methods", "take") | words("methods", "clear")
        return any(
            node.func.attr in wanted and same(node.func.value, other)
            for part in at.block
            for node in ast.walk(part)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        )

    def room(self) -> Guard:
        """Return the guard of an addition of no more than there is room for: n - len(kept)."""
        file, node = self.file, self.mention.node
        headers = (each.iter for each in file.around(node) if isinstance(each, ast.For))
        for bound in (b for part in (file.statement(node), *headers) for b in _bounds(part)):
            for part in ast.walk(bound):
                limit = self._missing_to(part)
                if limit is not None:
                    line = file.statement(node).lineno
                    return guard(self.program, file, "below", limit, bound, line)
        return NONE

    def _missing_to(self, node: ast.AST) -> ast.expr | None:
        """Return n of `n - len(kept)`, or of a variable that is given that."""
        match node:
            case ast.BinOp(left=limit, op=ast.Sub(), right=ast.Call() as length):
                whole = Condition(length, True, node)
                goes_up = turn_of(self.file, limit) is None and counts(self.file, limit)
                return limit if self._is_length(length, whole) and not goes_up else None
            case ast.Name(id=name):
                pairs = (pair for each in self.file.named(name) for pair in self.file.given(each))
                parts = (part for value in pairs for part in ast.walk(value))
                found = (self._missing_to(part) for part in parts if isinstance(part, ast.BinOp))
                return next((each for each in found if each is not None), None)
        return None


def _of_parts(found: list[Said], *, every: bool) -> Said:
    """Return what several conditions say that all hold, or of which only one does."""
    known = [each for each in found if each[0] != "none"]
    if not known:
        return _NOTHING
    strong = min(known, key=lambda each: _RANK.index(each[0]))
    alike = len(known) == len(found) and len({kind for kind, _ in known}) == 1
    return strong if every or alike or strong[0] in _WEAK else ("other", None)


def _parts_of(condition: Condition) -> list[Condition]:
    """Return the conditions that all hold where one does: of `a and b` two."""
    match condition.test, condition.holds:
        case (ast.UnaryOp(op=ast.Not(), operand=inner), holds):
            return _parts_of(replace(condition, test=inner, holds=not holds))
        case (ast.BoolOp(op=ast.And(), values=parts), True) | (
            ast.BoolOp(op=ast.Or(), values=parts),
            False,
        ):
            return [each for part in parts for each in _parts_of(replace(condition, test=part))]
    return [condition]


def divisor(node: ast.expr) -> ast.expr | None:
    """Return n of `step % n`, wherever it stands; not of a text that is put together."""
    for part in ast.walk(node):
        match part:
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                text = isinstance(left, ast.Constant) and isinstance(left.value, (str, bytes))
                return None if text else right
    return None


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    return (part for part in ast.walk(node) if isinstance(part, ast.expr))


def _bounds(node: ast.AST) -> Iterator[ast.AST]:
    """Yield how far slices and counted loops go in a statement that is one line of doing."""
    for part in ast.walk(node) if not isinstance(node, (ast.If, *LOOPS, *FUNCTIONS)) else ():
        match part:
            case ast.Slice(upper=ast.expr() as upper):
                yield upper
            case ast.Call(func=called, args=args) if name_of(called) in words(
                "functions", "counts"
            ):
                yield from args
