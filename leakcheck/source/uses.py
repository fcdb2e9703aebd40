"""Every use of a place: its role, under which condition, how often it is come to, and where."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from leakcheck.source.acts import Act, Role, act_of, is_gathered
from leakcheck.source.calls import (
    DEEPEST,
    NO_STACKS,
    UNSEEN,
    Calls,
    Reach,
    Stacks,
    taken_back,
)
from leakcheck.source.dispatch import Dispatch
from leakcheck.source.guards import MOST_HELD, NONE, Guard, Guards, strongest
from leakcheck.source.mentions import Mention, may_own, mentions_of
from leakcheck.source.places import Held, Place
from leakcheck.source.seeds import makers_of_owner, seeds_of
from leakcheck.source.tree import (
    COMPREHENSIONS,
    File,
    ProgramTexts,
    Visits,
    is_around,
    name_of,
    pairs_of,
    parameters,
)
from leakcheck.source.words import words

RELIEVES: frozenset[Role] = frozenset(["take", "replace", "cut", "ring", "escape"])
_NOT_SEEN: frozenset[Reach] = frozenset(["elsewhere", "never called"])
_MAY_COME: frozenset[Reach] = frozenset(["each step", "when a loop turns", "elsewhere"])
_SAYS_NO_END = ("none", "same", "other")  # kinds of conditions
_CHANCES = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a place.

    `sure`: something is gone whenever its line runs; `detached`: what is left has no graph; `ran`:
    how often that line was seen to run, and `asked` the condition around it; `by_key`: it takes one
    entry, the one of a key that varies; `after`: all of it is asked for after a loop that ends;
    `gathers`: and joined or saved; `barred`: it is behind a condition that never comes to hold;
    `took`: it was seen to take something out of the very container that grows.
    """

    role: Role
    guard: Guard
    reach: Reach
    path: str
    line: int
    code: str
    sure: bool = False
    detached: bool = False
    ran: int = 0
    asked: int = 0
    by_key: bool = False
    after: bool = False
    gathers: bool = False
    barred: bool = False
    took: bool = False


def uses_of(
    program: ProgramTexts, held: Held, visits: Visits = UNSEEN, stacks: Stacks = NO_STACKS
) -> tuple[Use, ...]:
    """Return every use of what is held: of the lines that were seen to add, then of the others.

    `visits`: how often each line ran while it grew; of methods, on the object that has it;
    `stacks`: which calls were seen to lead to the lines that add.
    """
    makers = makers_of_owner(program, held)
    owners = (name.removeprefix(".") for name, _ in held.owners)
    calls = Calls(program, held.adds, held.classes, makers, visits, owners, stacks)
    mentions = mentions_of(program, held)
    guards = Guards(program, frozenset(each.node for each in mentions), calls)
    reader = _Reader(program, held, visits, calls, guards, stacks)
    found = [reader.used(each, act_of(program, held, each)) for each in mentions]
    if not any(use.role == "add" for use in found):
        found += reader.unnamed()
    found += [*reader.ends(), *reader.through_owner()]
    seen = frozenset(held.adds)
    return tuple(sorted(dict.fromkeys(found), key=lambda use: _order(use, seen)))


def _order(use: Use, seen: frozenset[tuple[str, int]]) -> tuple[bool, str, int, str]:
    return (use.path, use.line) not in seen, use.path, use.line, use.role


def with_numbers(
    uses: Iterable[Use], number_of: Callable[[str, str], int | None]
) -> tuple[Use, ...]:
    """Return the uses with the numbers that live objects know: of a path and an expression there.

    What a live object says counts for more than what the files do.
    """
    return tuple(_numbered(use, number_of) for use in uses)


def _numbered(use: Use, number_of: Callable[[str, str], int | None]) -> Use:
    live = number_of(use.guard.path, use.guard.limit) if use.guard.limit else None
    return use if live is None else replace(use, guard=replace(use.guard, n=live))


@dataclass(frozen=True, slots=True)
class _Reader:
    """What is asked about, in which program, and who calls what there."""

    program: ProgramTexts
    held: Held
    visits: Visits
    calls: Calls
    guards: Guards
    stacks: Stacks

    def used(self, mention: Mention, act: Act) -> Use:
        """Return the use that an act is."""
        file, node = mention.file, mention.node
        statement = file.statement(node)
        at = (file.path, statement.lineno)
        if act.role == "replace" and at in self.held.adds:
            act = _while_adding(act, statement)
        own = self.guards.of(mention) if act.role != "read" else NONE
        if own.kind == "none" and act.role != "read":
            own = self._guard_of_calls(mention, file, node)
        if own.kind in _SAYS_NO_END and not own.ceases:
            own = strongest((own, self._guard_of_stack(mention, at)))
        found = strongest((act.guard, own))
        if self.held.inner and mention.whole and (found.n or 0) <= MOST_HELD:
            # its length is not that of an element
            found = replace(found, n=None, limit="")
        reach = self._reach(mention, act)
        ran = self.visits.get(at, 0)
        barred = act.role in RELIEVES and not ran and self.guards.bars(mention)
        after = act.whole and self.calls.come_to_an_end() and self._is_used_after(file, node)
        return Use(
            act.role,
            found,
            reach,
            *at,
            _first_line(statement),
            self._is_sure(mention, act) and _is_alone(file, node, statement),
            act.detached,
            ran,
            self.visits.get((found.path, found.line), 0),
            act.by_key,
            after,
            after and (act.gathers or self._is_gathered_by_callers(file, node)),
            barred,
        )

    def _is_used_after(self, file: File, node: ast.expr) -> bool:
        """Say whether it comes after the loop; what is returned must not be dropped by callers."""
        if not self.calls.is_after(file, node):
            return False
        function = file.function(node)
        if function is None or not _is_returned(file, node):
            return True
        calls = self.calls.callers(file, function)
        return not calls or not all(_is_dropped(f, call) for f, call in calls)

    def _is_gathered_by_callers(self, file: File, node: ast.expr) -> bool:
        """Say whether a caller joins or saves what is returned: `history = train(model)`."""
        function = file.function(node)
        if function is None or not _is_returned(file, node):
            return False
        calls = ((f, f.above.get(called)) for f, called in self.calls.callers(file, function))
        return any(
            is_gathered(f, each)
            for f, call in calls
            if call is not None
            for each in (call, *_read_again(f, call))
        )

    def _reach(self, mention: Mention, act: Act) -> Reach:
        """Say how often a use is come to: what sets a local, as often as its function is called."""
        file, node, place = mention.file, mention.node, mention.place
        reach, function = self.calls.reach(file, node), file.function(node)
        if reach != "elsewhere" or act.role != "replace" or file.loops(node) or function is None:
            return reach
        own = place.kind == "variable" and place.line == function.lineno
        return self.calls.reach_of_call(file, function) if own else reach

    def _is_sure(self, mention: Mention, act: Act) -> bool:
        """Say whether something is taken from what grows: of many elements, another may be meant.

        `del kept[:-200]` takes nothing from fewer.
        """
        return act.sure and act.guard.kind != "above" and (mention.whole or not self.held.inner)

    def unnamed(self) -> Iterator[Use]:
        """Yield the lines that were seen to add, if they do so in a way that names no place."""
        for path, line in self.held.adds:
            file = self.program.file(path)
            nodes = [node for node in file.at(line) if isinstance(node, ast.expr)]
            if nodes:
                place = Place("variable", self.held.name, path)
                yield self.used(Mention(file, nodes[0], place), Act("add"))

    def ends(self) -> Iterator[Use]:
        """Yield the end of the function that a local is of: what it held is gone with the call."""
        local = [(self.held.name, self.held.function)] if self.held.kind == "local" else []
        paths = [self.held.path] if self.held.path else [path for path, _ in self.held.adds]
        for name, function_name in (*local, *self.held.owners):
            for file in map(self.program.file, dict.fromkeys(paths)):
                for function in file.functions(function_name):
                    if name not in parameters(function) or name == "self":
                        on_new = name == "self"
                        reach = self.calls.reach_of_call(file, function, on_new=on_new)
                        code = f"def {function.name}(...)"
                        yield Use("replace", NONE, reach, file.path, function.lineno, code)

    def through_owner(self) -> Iterator[Use]:
        """Yield what sets an attribute through its object: `self.__init__()`, `vars(self)`.

        A name that is computed may be any attribute's: it counts where the program comes there.
        """
        names = ("__init__", "setattr", "getattr", "update", "vars")
        places = [each for each in seeds_of(self.program, self.held) if each.name == self.held.name]
        for name in names if self.held.kind == "attribute" else ():
            for file in self.program.files(name, self.held.homes):
                for call in file.calls(name):
                    owner = _set_by(file, call, name, self.held.name)
                    if owner is not None and may_own(self.program, file, owner, places[0]):
                        code = _first_line(file.statement(call))
                        reach = self.calls.reach(file, call)
                        if reach not in _NOT_SEEN or not _is_computed(call, name):
                            yield Use("replace", NONE, reach, file.path, call.lineno, code)

    def _guard_of_calls(self, mention: Mention, file: File, node: ast.AST, depth: int = 0) -> Guard:
        """Return the condition around every call of the function that a use is in, or that ran."""
        function = file.function(node)
        if function is None or function.name in words("names", "constructors") or depth >= DEEPEST:
            return NONE
        calls = self.calls.callers(file, function)
        ran = [(f, call) for f, call in calls if self.visits.get((f.path, call.lineno), 0) > 0]
        sure = [(f, call) for f, call in calls if self.calls.is_sure(f, call)]
        meant = ran or sure or calls
        found = [self._guard_of_call(mention, f, call, depth) for f, call in meant]
        if found and all(each.kind != "none" for each in found):
            return strongest(found)
        back = taken_back(self.program, calls)
        return strongest(self.guards.around(f, call, mention) for f, call in back)

    def _guard_of_stack(self, mention: Mention, at: tuple[str, int]) -> Guard:
        """Return the condition around a call that was seen to lead to a line, or what it goes by.

        What calls the loop itself still runs, and is asked nothing again.
        """
        dispatch = Dispatch(self.program, self._may_come)
        for path, line, called in self.stacks.get(at, ()):
            file = self.program.file(path)
            call = next((each for each in file.at(line) if isinstance(each, ast.Call)), None)
            if call is None:
                continue
            if not self.visits.get((path, line)) or self.calls.goes_on(file, call.func):
                break
            around = self.guards.around(file, call, mention)
            found = strongest((around, dispatch.guard(file, line, called)))
            if found.ceases:
                return found
        return NONE

    def _may_come(self, file: File, node: ast.AST) -> bool:
        return self.calls.reach(file, node) in _MAY_COME

    def _guard_of_call(self, mention: Mention, file: File, call: ast.expr, depth: int) -> Guard:
        goes_on = self.calls.goes_on(file, call)
        own = self.guards.around(file, call, mention, goes_on=goes_on)
        return own if own.kind != "none" else self._guard_of_calls(mention, file, call, depth + 1)


def _while_adding(act: Act, statement: ast.stmt) -> Act:
    """Return what a line does that was seen to add: it does not replace.

    A comprehension does both: its line runs for each element, and its end replaces what was.
    """
    built = isinstance(getattr(statement, "value", None), COMPREHENSIONS)
    return replace(act, sure=False) if built else replace(act, role="add")


def _is_returned(file: File, node: ast.expr) -> bool:
    """Say whether a value is returned as it is, alone or with others."""
    above = next(each for each in file.around(node) if not isinstance(each, (ast.Tuple, ast.Dict)))
    return isinstance(above, ast.Return)


def _read_again(file: File, call: ast.AST) -> Iterator[ast.expr]:
    """Yield where variables are read that are given what a call returns, one of it or all."""
    for target, value in pairs_of(file.above.get(call, file.tree)):
        given = ast.walk(target) if value is call else ()
        for name in (part for part in given if isinstance(part, ast.Name)):
            reads = (each for each in file.loads(name.id) if isinstance(each, ast.Name))
            yield from (each for each in reads if file.scope(each) is file.scope(name))


def _is_dropped(file: File, called: ast.expr) -> bool:
    """Say whether nothing is done with what a call returns: `gather(model)` as a statement."""
    call = file.above.get(called)
    if not isinstance(call, ast.Call) or call.func is not called:
        return False
    return isinstance(file.above.get(call), ast.Expr)


def _first_line(statement: ast.stmt) -> str:
    return ast.unparse(statement).partition("\n")[0]


def _is_alone(file: File, node: ast.AST, statement: ast.stmt) -> bool:
    """Say whether a node runs whenever its line does: not behind `if` on the same line."""
    if getattr(file.above.get(statement), "lineno", 0) == statement.lineno:
        return False
    inside = (each for each in file.around(node) if not isinstance(each, ast.stmt))
    inside = (each for each in inside if is_around(statement, getattr(each, "lineno", 0)))
    return not any(isinstance(each, _CHANCES) for each in inside)


def _is_computed(call: ast.Call, name: str) -> bool:
    """Say whether a call names the attribute by a variable: `setattr(self, name, [])`."""
    told = call.args[1] if name in ("setattr", "getattr") else None
    return told is not None and not isinstance(told, ast.Constant)


def _set_by(file: File, call: ast.Call, name: str, attribute: str) -> ast.expr | None:
    """Return the object whose attribute a call sets by its name, None for another call."""
    match name, call:
        case "__init__", ast.Call(func=ast.Attribute(value=ast.Name(id="self") as owner)):
            return owner
        case "setattr", ast.Call(args=[owner, told, value]):
            named = _is_computed(call, name) or getattr(told, "value", None) == attribute
            return owner if named and not isinstance(value, ast.Name) else None
        case "getattr", ast.Call(args=[owner, _]) if _is_computed(call, name):
            asked = file.above.get(call)
            clears = isinstance(asked, ast.Attribute) and asked.attr in words("methods", "clear")
            return owner if clears else None
        case "update", ast.Call(func=ast.Attribute(value=namespace), keywords=given):
            named = attribute in [each.arg for each in given]
            return _owner_of(namespace) if named else None
        case "vars", ast.Call(args=[owner]):
            loops = (each for each in file.around(call) if isinstance(each, ast.For))
            loop = next(loops, None)
            cleared = loop is not None and any(_clears(part, loop) for part in ast.walk(loop))
            return owner if cleared else None
    return None


def _owner_of(namespace: ast.expr) -> ast.expr | None:
    """Return the object that a dictionary is of: `vars(self)`, `self.__dict__`."""
    match namespace:
        case ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return owner
        case ast.Attribute(value=owner, attr="__dict__"):
            return owner
    return None


def _clears(node: ast.AST, loop: ast.For) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="clear")):
            return any(name_of(each) == name for each in ast.walk(loop.target))
    return False
