"""How often does a statement run, beside the lines that add? Who calls it, in which loop?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice, pairwise
from typing import Literal

from leakcheck.source.conditions import names_of_errors
from leakcheck.source.endings import ends_by_itself
from leakcheck.source.owners import Makers, is_another, kinds_of
from leakcheck.source.tree import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    File,
    Function,
    Loop,
    ProgramTexts,
    Visits,
    asks_for_main,
    is_around,
    is_property,
    name_of,
    root_of,
)
from leakcheck.source.words import parts_of, says, words

Reach = Literal[
    "each step",  # where it is added to, under whatever condition
    "when a loop turns",  # that is around the one that adds
    "elsewhere",  # in another function, that somebody may call
    "once",  # before or after the loop that adds, or as an object is made
    "only in an except handler",
    "never called",
]
OFTEN: tuple[Reach, ...] = (
    "each step",
    "when a loop turns",
    "elsewhere",
    "once",
    "only in an except handler",
    "never called",
)
DEEPEST = 3  # functions that call each other
MOST_CALLS = 64  # of one function: `update` and `forward` are called by everybody
_BORDERS = frozenset(["end", "start", "begin", "finish", "reset"])  # on_epoch_end
UNSEEN: Visits = {}
# of each line that was seen to add: the lines that called its function, and so on, and which
# functions those called
Stacks = Mapping[tuple[str, int], tuple[tuple[str, int, str], ...]]
NO_STACKS: Stacks = {}
Call = tuple[File, ast.expr]  # the name of what is called, or handed on to be called


class Calls:
    """The program's calls, seen from the lines that add: these and the calls that lead there."""

    def __init__(
        self,
        program: ProgramTexts,
        adds: Iterable[tuple[str, int]],
        classes: tuple[str, ...] = (),
        makers: Makers = None,
        visits: Visits = UNSEEN,
        owners: Iterable[str] = (),
        stacks: Stacks = NO_STACKS,
    ) -> None:
        """Follow the calls that lead to the lines that add.

        `makers` make the object of these `classes` whose methods count: not another's. `visits`:
        how often each line ran while it grew; `owners`: the names of what leads to that object;
        `stacks`: which calls were seen to lead there.
        """
        self._owners = frozenset(owners)
        self._program, self._classes, self._makers = program, classes, makers
        self._visits = visits
        self._adds: dict[str, set[int]] = {}
        self._callers: dict[Function, list[Call]] = {}
        self._reaches: dict[tuple[Function, int], Reach] = {}
        self._around_loop = set[tuple[str, int]]()  # calls that lead to a loop with what adds
        self._handed_on = set[tuple[str, int]]()  # where what adds is handed on: a hook
        lines = list(adds)
        self._handed_on.update(at for at in lines if self._is_in_lambda(*at))
        for _ in range(DEEPEST):
            for path, line in lines:
                self._adds.setdefault(path, set()).add(line)
            lines = [each for at in lines for each in self._leading_to(*at)]
        for at, callers in stacks.items():
            leading = [(path, line) for path, line, _ in callers]
            self._note_around_loop(at, leading)
            looped = [each for each in leading if self._is_in_loop(*each)]
            for path, line in looped if self._is_called_by_others(*at) else ():
                self._adds.setdefault(path, set()).add(line)

    def _note_around_loop(self, at: tuple[str, int], callers: list[tuple[str, int]]) -> None:
        """Note which of the calls that were seen lead to a loop: those behind the first in one.

        A line in no loop that added and was not come to is the call of a function, of a library's
        perhaps, that has the loop: that went on from before to the end.
        """
        if not self._visits.get(at) and not self._is_in_loop(*at):
            self._around_loop.add(at)
        for called, caller in pairwise((at, *callers)):
            if called in self._around_loop or self._is_in_loop(*called):
                self._around_loop.add(caller)

    def _is_called_by_others(self, path: str, line: int) -> bool:
        """Say whether what adds was handed on, as a hook, so that its name is called nowhere."""
        file = self._program.file(path)
        node = file.innermost_at(line)
        function = file.function(node) if node is not None else None
        calls = self.callers(file, function) if function is not None else []
        return bool(calls) and not any(_is_called(f, call) for f, call in calls)

    def _is_in_loop(self, path: str, line: int) -> bool:
        file = self._program.file(path)
        node = file.innermost_at(line)
        return node is not None and bool(file.loops(node))

    def _leading_to(self, path: str, line: int) -> Iterator[tuple[str, int]]:
        file = self._program.file(path)
        if (node := file.innermost_at(line)) is None:
            return
        function = file.function(node)
        calls = self.callers(file, function) if function is not None else []
        leading = [(f.path, call.lineno) for f, call in calls]
        if file.loops(node) or (path, line) in self._around_loop:
            self._around_loop.update(leading)
        for (f, call), at in zip(calls, leading, strict=True):
            if (path, line) in self._handed_on or not _is_called(f, call):
                self._handed_on.add(at)
        yield from leading

    def _is_in_lambda(self, path: str, line: int) -> bool:
        """Say whether a line adds in a lambda, whose callers no name leads to."""
        file = self._program.file(path)
        lambdas = (node for node in file.at(line) if isinstance(node, ast.Lambda))
        return any(not file.loops(node) for node in lambdas)

    def callers(self, file: File, function: Function, *, itself: bool = False) -> list[Call]:
        """Return the calls of a function, and where it is handed on; `itself`: by itself too."""
        if function not in self._callers:
            self._callers[function] = list(islice(self._found(file, function), MOST_CALLS))
        found = self._callers[function]
        return found if itself else [(f, call) for f, call in found if f.function(call) != function]

    def _found(self, file: File, function: Function) -> Iterator[Call]:
        kind = file.above.get(function)
        owner = kind.name if isinstance(kind, ast.ClassDef) else ""
        name = owner if owner and function.name == "__init__" else function.name
        for each in ("__call__", "forward") if name == "__call__" else (name,):
            for other in self._program.files(each, [file.path]):
                nodes = other.loads(each)
                yield from (
                    (other, node) for node in nodes if self._may_mean(other, node, file, function)
                )

    def _may_mean(self, at: File, called: ast.expr, file: File, function: Function) -> bool:
        """Say whether a name is that of a function, of a class, or of a method of a class.

        Not where another object, or one of another class, is asked for the method.
        """
        kind = file.above.get(function)
        if isinstance(kind, ast.ClassDef) and name_of(called) != kind.name:
            return isinstance(called, ast.Attribute) and self._may_have(at, called.value, kind.name)
        if not isinstance(called, ast.Name):
            return name_of(root_of(called)) in at.imports
        own = at is file and at.scope(called) is (file.function(function) or file.tree)
        return own or called.id in at.imports or "*" in at.imports

    def _may_have(self, file: File, owner: ast.expr, kind: str) -> bool:
        """Say whether an object may be of a class, and the one with what grows if it is."""
        if kind in self._classes and is_another(self._program, file, owner, self._makers):
            return False
        kinds = kinds_of(self._program, file, owner)
        return kinds is None or any(kind in self._program.family(each) for each in kinds)

    def is_sure(self, file: File, called: ast.expr) -> bool:
        """Say whether a call is known to be of this function: `self.flush()`, not `out.flush()`."""
        owner = called.value if isinstance(called, ast.Attribute) else None
        return owner is None or kinds_of(self._program, file, owner) is not None

    def reach(self, file: File, node: ast.AST, depth: int = 0) -> Reach:
        """Say how often a node is reached."""
        if self._is_after_failure(file, node):
            return "only in an except handler"
        function = file.function(node)
        here = self._lines_in(file, function)
        around = file.loops(node)
        shared = next((each for each in around if any(is_around(each, at) for at in here)), None)
        handed = all((file.path, at) in self._handed_on for at in here)
        if shared is not None:
            return "when a loop turns" if handed else _in_loop(shared, here)
        if any(isinstance(each, ast.Lambda) for each in file.around(node)):
            return "elsewhere"  # by whoever has the function: its line says nothing
        here = set() if handed else here
        if here and (self._loops_of(file, here) or self._is_around(file, here)):
            return self._beside_the_loop(file, function)
        if here:
            return "each step"
        if function is None:
            return self._in_module(file, node)
        return self._of_function(file, function, depth)

    def come_to_an_end(self) -> bool:
        """Say whether each loop around a line that adds ends by itself."""
        running = [each for loops in self._running.values() for each in loops]
        loops = self._adding or running
        return bool(loops) and all(ends_by_itself(file, loop) for file, loop in loops)

    @cached_property
    def _adding(self) -> list[tuple[File, Loop]]:
        """The loops around the lines that add, and around calls that lead there."""
        adding = ((self._program.file(path), lines) for path, lines in self._adds.items())
        return [(file, loop) for file, lines in adding for loop in self._loops_of(file, lines)]

    @cached_property
    def _running(self) -> dict[Function | None, list[tuple[File, Loop]]]:
        """The loops that ran while it grew, by their function: who calls a hook is not seen."""
        found: dict[Function | None, list[tuple[File, Loop]]] = {}
        for path in {path for path, _ in self._visits}:
            file = self._program.file(path)
            loops = [node for node in ast.walk(file.tree) if isinstance(node, LOOPS)]
            for loop in loops:
                inside = range(loop.body[0].lineno, (loop.end_lineno or loop.lineno) + 1)
                if any(self._visits.get((path, line), 0) > 1 for line in inside):
                    found.setdefault(file.function(loop), []).append((file, loop))
        return found

    def is_after(self, file: File, node: ast.AST, depth: int = 0) -> bool:
        """Say whether a node is reached after the loops that add, by its place or by its callers.

        Only the place in the text is asked for: not whether it runs at all.
        """
        if self._is_after_failure(file, node):
            return False
        function = file.function(node)
        if (last := self._last_of_loops(file, function)) is not None:
            return getattr(node, "lineno", 0) > last and not self._comes_again(file, function)
        if function is None or depth >= DEEPEST:
            return False
        calls = [*self.callers(file, function), *self._delegated(function)]
        asked = is_property(function)
        return any(
            (asked or _is_called(f, call)) and self.is_after(f, call, depth + 1)
            for f, call in calls
        )

    def _delegated(self, function: Function) -> Iterator[Call]:
        """Yield calls of a method by its name on an object that leads to the one meant.

        `metrics.compute()` of a collection calls that of each metric in it.
        """
        for file in self._program.files(function.name):
            for call in file.calls(function.name):
                called = call.func
                if isinstance(called, ast.Attribute) and name_of(called.value) in self._owners:
                    yield file, called

    def _comes_again(self, file: File, function: Function | None) -> bool:
        """Say whether a function is called in a loop: each call adds to what the last one left."""
        calls = self._calls_up(file, function, on_new=False) if function is not None else []
        return any(f.loops(call) or _is_for_each(f, call) for f, call in calls)

    def goes_on(self, file: File, called: ast.expr) -> bool:
        """Say whether a call that leads to the loop which adds did not end while that was watched.

        A line with a lambda runs whenever that is called, wherever the call on it stands.
        """
        at = (file.path, called.lineno)
        ran = self.ran(file, called.lineno)
        other = any(isinstance(node, ast.Lambda) for node in file.at(called.lineno))
        return bool(self._visits) and at in self._around_loop and (not ran or other)

    def lasts(self, file: File, loop: Loop) -> bool:
        """Say whether a loop began before and had not ended when the watching of lines was over.

        Nothing before it in its function ran, and nobody called that function.
        """
        function = file.function(loop)
        body = file.tree.body if function is None else function.body
        inside = range(loop.lineno, (loop.end_lineno or loop.lineno) + 1)
        if not self._ran(file, inside, function):
            return False
        if self._ran(file, range(body[0].lineno, loop.lineno), function):
            return False
        return function is None or self._is_under_way(file, function)

    def _ran(self, file: File, lines: Iterable[int], function: Function | None) -> bool:
        """Say whether one of these lines ran that is a function's own, or the module's."""
        ran = (file.innermost_at(at) for at in lines if self._visits.get((file.path, at)))
        return any(node is not None and file.function(node) is function for node in ran)

    def ran(self, file: File, line: int) -> bool:
        """Say whether a line ran while lines were watched."""
        return self._visits.get((file.path, line), 0) > 0

    def comes_again(self, file: File, function: Function) -> bool:
        """Say whether a function may be called another time: elsewhere, or by whom it is given."""
        calls = self.callers(file, function, itself=True)
        given = any(not _is_called(f, call) for f, call in calls)
        return given or len(calls) > 1 or self._comes_again(file, function)

    def _is_under_way(self, file: File, function: Function) -> bool:
        """Say whether a function is called somewhere, and was by none of its callers."""
        calls = self.callers(file, function, itself=True)
        return bool(calls) and all(self.goes_on(f, call) for f, call in calls)

    def _last_of_loops(self, file: File, function: Function | None) -> int | None:
        """Return the last line of the loops of a scope that add, and of calls that lead to one."""
        here = self._lines_in(file, function)
        loops = self._loops_of(file, here)
        if not loops and (self._handed_on or not self._adding):
            loops = [each for at, each in self._running.get(function, ()) if at is file]
        around = (file.innermost_at(at) for at in here if (file.path, at) in self._around_loop)
        ends = [getattr(each, "end_lineno", None) for each in (*loops, *around)]
        return max((end for end in ends if end is not None), default=None)

    def reach_of_call(self, file: File, function: Function, *, on_new: bool = False) -> Reach:
        """Say how often a call of a function ends, and with it what its locals hold.

        `on_new`: only calls on an object that nobody else has count: `Fold(k).run()`.
        """
        calls = self._calls_up(file, function, on_new=on_new)
        if any(f.loops(call) or _is_for_each(f, call) for f, call in calls):
            return "when a loop turns"
        if _are_beside(calls) or any(f.function(call) is function for f, call in calls):
            return "elsewhere"
        once = bool(calls) or on_new or self._is_all_of_it(file, function)
        return "once" if once else "elsewhere"

    def _is_known(self, file: File, function: Function) -> bool:
        """Say whether only lines that are known call what empties: no library, and no base."""
        if not self._program.complete or function.decorator_list:
            return False
        kind = file.above.get(function)
        plain = not isinstance(kind, ast.ClassDef) or self._is_plain(kind)
        return says(function.name, "empties") and plain

    def _calls_up(self, file: File, function: Function, *, on_new: bool) -> list[Call]:
        """Return the calls of a function, of the functions that call it, and of those."""
        found: list[Call] = []
        waiting = [(file, function)]
        for _ in range(DEEPEST):
            calls = [each for f, g in waiting for each in self.callers(f, g, itself=True)]
            if not found and on_new:
                calls = [(f, call) for f, call in calls if _is_on_new(call)]
            waiting = [(f, g) for f, call in calls if (g := f.function(call)) is not None]
            found += calls
        return found

    def _of_function(self, file: File, function: Function, depth: int) -> Reach:
        if function.name in words("names", "constructors") | words("names", "ends"):
            return "once"
        if (function, depth) not in self._reaches:
            self._reaches[function, depth] = self._by_callers(file, function, depth)
        return self._reaches[function, depth]

    def _by_callers(self, file: File, function: Function, depth: int) -> Reach:
        calls = self.callers(file, function) if depth < DEEPEST else []
        found = {self._of_call(f, call, depth) for f, call in calls if not _is_in_maker(f, call)}
        if found:
            return next(each for each in OFTEN if each in found)
        if self._is_known(file, function):
            naming = list(self._naming(file, function))
            if all(self._is_once(f, call) for f, call in naming):
                return "once" if naming else "never called"
        turns = says(function.name, "turns") and not parts_of(function.name).isdisjoint(_BORDERS)
        return "when a loop turns" if turns else "elsewhere"

    def _of_call(self, file: File, called: ast.expr, depth: int) -> Reach:
        """Say how often a call is reached; what is handed on may be called at any time."""
        return self.reach(file, called, depth + 1) if _is_called(file, called) else "elsewhere"

    def _beside_the_loop(self, file: File, function: Function | None) -> Reach:
        """Say how often code beside the loop that adds is reached: at each call of the function."""
        if function is None or function.name in words("names", "constructors"):
            return "once"
        return self.reach_of_call(file, function)

    def _is_all_of_it(self, file: File, function: Function) -> bool:
        """Say whether a function runs once, by its name or as the loop of the epochs is in it."""
        loops = self._loops_of(file, self._lines_in(file, function))
        named = says(function.name, "sets_up") or function.name.startswith("test")
        return named or len(loops) > 1

    def _in_module(self, file: File, node: ast.AST) -> Reach:
        """Say how often a statement outside of functions runs: where no loop is seen, who knows."""
        around = (each for each in file.around(node) if isinstance(each, ast.If))
        asked = any(not asks_for_main(each.test) for each in around)
        loops = (loop for f, loop in self._running.get(None, ()) if f is file)
        is_over = any(loop.lineno > getattr(node, "lineno", 0) for loop in loops)
        again = asked and not is_over and not self._adding and file.path in self._adds
        return "elsewhere" if again or file.loops(node) else "once"

    def _loops_of(self, file: File, lines: set[int]) -> list[Loop]:
        """Return the loops around some lines, and those that they are the heads of."""
        nodes = [node for line in lines if (node := file.innermost_at(line)) is not None]
        heads = [node for node in nodes if isinstance(node, LOOPS)]
        return heads + [loop for node in nodes for loop in file.loops(node)]

    def _is_around(self, file: File, lines: set[int]) -> bool:
        """Say whether all of these lines call what has the loop."""
        return all((file.path, line) in self._around_loop for line in lines)

    def _lines_in(self, file: File, function: Function | None) -> set[int]:
        """Return the lines of a scope itself that add or lead there."""
        nodes = ((at, file.innermost_at(at)) for at in self._adds.get(file.path, ()))
        return {at for at, node in nodes if node is not None and file.function(node) is function}

    def _is_plain(self, kind: ast.ClassDef) -> bool:
        """Say whether a class has no base, and no class below it, whose methods others call."""
        named = all(name_of(base) in words("names", "plain_bases") for base in kind.bases)
        decorators = (getattr(each, "func", each) for each in kind.decorator_list)
        plain = named and not kind.keywords and all(name_of(d) == "dataclass" for d in decorators)
        others = (k for f in self._program.files(kind.name) for k in f.classes.values())
        return plain and not any(name_of(b) == kind.name for k in others for b in k.bases)

    def _naming(self, file: File, function: Function) -> Iterator[tuple[File, ast.Call]]:
        """Yield the calls that may come to a function by a name that they get as a text."""
        by_name, by_text = words("functions", "by_name"), words("functions", "by_text")
        kind = file.above.get(function)
        owner = kind.name if isinstance(kind, ast.ClassDef) else ""
        for name in by_name | by_text:
            for other in self._program.files(name):
                for call in other.calls(name):
                    if name in by_text and _is_by_text(call):
                        yield other, call
                    elif name in by_name and _is_by_name(other, call, function.name):
                        asked = call.args[0] if name == "getattr" and owner and call.args else None
                        if asked is None or self._may_have(other, asked, owner):
                            yield other, call

    def _is_once(self, file: File, call: ast.Call) -> bool:
        """Say whether a text is run once: `exec(open("settings.py").read())`.

        What `eval` and `getattr` give may be called later.
        """
        function = file.function(call)
        alone = function is None or self.reach_of_call(file, function) == "once"
        return name_of(call.func) == "exec" and alone and not file.loops(call)

    def _is_after_failure(self, file: File, node: ast.AST) -> bool:
        """Say whether a node is in a handler of what goes wrong, but for one that adds there."""
        for each in file.around(node):
            if isinstance(each, FUNCTIONS):
                return False
            if isinstance(each, ast.ExceptHandler):
                adds = any(is_around(each, line) for line in self._adds.get(file.path, ()))
                usual = names_of_errors(each.type) & words("names", "control")
                if not adds and not usual:
                    return True
        return False


def taken_back(program: ProgramTexts, handed_on: list[Call]) -> Iterator[tuple[File, ast.Call]]:
    """Yield the calls that take a callback back, by its name or by a handle: `handle.remove()`."""
    for file, named in handed_on:
        call = file.above.get(named)
        if isinstance(call, ast.Call) and call.func is not named:
            method = name_of(call.func)
            if says(method, "takes_back"):
                yield file, call
            elif says(method, "hooks"):
                yield from ((file, each) for each in file.calls("remove") if not each.args)


def _is_called(file: File, name: ast.expr) -> bool:
    call = file.above[name]
    return isinstance(call, ast.Call) and call.func is name


def _in_loop(loop: Loop, here: set[int]) -> Reach:
    """Say whether a loop with both a line that adds and a node turns once for many that add."""
    inner = [each for each in ast.walk(loop) if isinstance(each, LOOPS) and each is not loop]
    adding = [at for at in here if is_around(loop, at)]
    deeper = all(any(is_around(each, at) for each in inner) for at in adding)
    return "when a loop turns" if deeper else "each step"


def _is_in_maker(file: File, called: ast.expr) -> bool:
    """Say whether a constructor calls it: what it hands on, or a lambda calls, comes later."""
    if not _is_called(file, called):
        return False
    for each in file.around(called):
        if isinstance(each, ast.Lambda):
            return False
        if isinstance(each, FUNCTIONS):
            return each.name in words("names", "constructors")
    return False


def _is_on_new(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Call)


def _is_for_each(file: File, called: ast.expr) -> bool:
    """Say whether it is called for each of some: `[train(n) for n in sizes]`, by `map`."""
    for each in file.around(called):
        if isinstance(each, ast.stmt):
            return False
        if isinstance(each, COMPREHENSIONS):
            return True
        if isinstance(each, ast.Call) and name_of(each.func) == "map":
            return called in each.args[:1]
    return False


def _are_beside(calls: list[Call]) -> bool:
    """Say whether one block calls twice: `train(300); train(600)`."""
    statements = {id(f.statement(call)): f.above.get(f.statement(call)) for f, call in calls}
    blocks = [id(each) for each in statements.values() if not isinstance(each, ast.If)]
    return len(set(blocks)) < len(blocks)


def _is_by_text(call: ast.Call) -> bool:
    """Say whether a call runs a text or goes over all members; `model.eval()` is none."""
    return isinstance(call.func, ast.Name) or name_of(call.func) == "getmembers"


def _is_by_name(file: File, call: ast.Call, function: str) -> bool:
    """Say whether a call may come to a function: `getattr(x, name)()`, `methodcaller("reset")`."""
    if name_of(call.func) == "getattr" and call.args:
        owner, *which = call.args
    else:
        owner, which = None, call.args
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    if isinstance(owner, ast.Name) and owner.id in file.imports:  # getattr(torch.optim, name)
        return False
    return any(_may_spell(each, function) for each in which[:1])


def _may_spell(name: ast.expr, function: str) -> bool:
    """Say whether a text may be a name: what begins with another word, `f"layer{i}"`, is not."""
    match name:
        case ast.Constant(value=value):
            return bool(value == function)
        case ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]):
            return function.startswith(begin)
        case ast.BinOp(left=ast.Constant(value=str(begin)), op=ast.Add()):
            return function.startswith(begin)
    return True
