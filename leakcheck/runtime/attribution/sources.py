"""The source of the program, as far as it is loaded, asked who uses what grows.

The files are those of the user's modules, and of the libraries' classes that hold what grows: a
replay buffer limits itself there. They are read once a window; no code of the program's runs.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.machinery import PathFinder
from typing import Any

from leakcheck.model import Holder, Place, Suspect
from leakcheck.runtime.attribution import library
from leakcheck.runtime.attribution.live_numbers import limit_of, number_of
from leakcheck.runtime.attribution.trace import is_inner, names_on_way
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.kinds import (
    bases_of,
    defined_in,
    is_of,
    name_of,
    types_named,
)
from leakcheck.runtime.introspection.texts import text_of
from leakcheck.source.calls import NO_STACKS, Stacks
from leakcheck.source.left import joins_more, lengthens
from leakcheck.source.places import Held
from leakcheck.source.registrations import asking, registering, setting
from leakcheck.source.tree import FUNCTIONS, File, Function, ProgramTexts
from leakcheck.source.uses import Use, uses_of, with_numbers

MOST_FILES = 32  # of the program's own, for what nobody calls: each has to be parsed


class Sources:
    """The program's files, and how often each line ran while something grew, by shown path.

    `stacks`: which calls were seen to lead to the lines that add.
    """

    def __init__(self, visits: Mapping[tuple[str, int], int], stacks: Stacks = NO_STACKS) -> None:
        self.visits, self._stacks = visits, stacks
        self._extended: dict[frozenset[str], ProgramTexts] = {}

    def uses_of(
        self,
        suspect: Suspect,
        owners: Sequence[Any] = (),
        length: int | None = None,
        *,
        inner: bool = False,
        keyed: bool = False,
    ) -> tuple[Use, ...]:
        """Return every use of what grows, with the numbers that live objects know.

        `owners`: the objects from a root to it, for as long as they are at hand; `length`: how
        long it is, which what counts its elements must agree with; `inner`: it is an element of
        what the holder is named after; `keyed`: a dictionary.
        """
        if not suspect.locations and not suspect.holder:
            return ()
        kinds = _kinds_of(suspect.holder, owners)
        theirs = {**_of_libraries(kinds), **self._of_module(suspect.holder)}
        cells = self._unknown(place.path for place in suspect.locations)  # in no module's file
        program = self._with({**theirs, **cells})
        held = _held(suspect, kinds, self._added_at(suspect), inner=inner or is_inner(suspect))
        held = replace(held, keyed=keyed, names=names_on_way(suspect))
        if self.visits and not any(map(self.visits.get, held.adds)):
            held = replace(held, adds=self._ran(program, held) or held.adds)
        found = uses_of(program, held, self.visits, self._stacks)
        numbered = with_numbers(found, lambda path, told: limit_of(told, path, owners))
        return tuple(_uncounted(use, owners, length) for use in numbered)

    def _added_at(self, suspect: Suspect) -> tuple[tuple[str, int], ...]:
        """Return the line that adds: the first that ran; where what grows was made is another."""
        lines = [(place.path, place.line) for place in suspect.locations]
        ran = [at for at in lines if self.visits.get(at)]
        return tuple((ran or lines)[:1])

    def _ran(self, program: ProgramTexts, held: Held) -> tuple[tuple[str, int], ...]:
        """Return the line that adds by the source and ran most often; none was seen to add.

        Of what another thread runs no line is seen: the only one that adds, then, or those of one
        function that ask the object around it to.
        """
        path = held.path or next((path for path, _ in held.adds), "")
        uses = uses_of(program, replace(held, adds=(), path=path), self.visits)
        adding = [use for use in uses if use.role == "add" and use.reach != "never called"]
        ran = sorted((use.ran, use.path, use.line) for use in adding)[-1:]
        seen = [(path, line) for times, path, line in ran if times]
        if seen or not self.others_run:
            return tuple(seen)
        lines = dict.fromkeys((use.path, use.line) for use in adding)
        if not lines:
            return tuple(asking(program, held))
        return tuple(lines) if len(lines) == 1 else ()

    @property
    def others_run(self) -> bool:
        """Whether other threads run the program's code, whose lines were not seen."""
        return bool(frames.own_codes_elsewhere())

    def method_at(self, use: Use) -> Function | None:
        """Return the function that a use is in."""
        file = self._with(self._unknown([use.path])).file(use.path)
        node = file.innermost_at(use.line)
        return None if node is None else file.function(node)

    def called_from_outside(self, use: Use) -> str:
        """Return the method that a use is in, or a public one that calls it if it is private."""
        method = self.method_at(use)
        if method is None or not method.name.startswith("_"):
            return "" if method is None else method.name
        file = self._with(self._unknown([use.path])).file(use.path)
        owner = file.above.get(method)
        others = owner.body if isinstance(owner, ast.ClassDef) else ()
        public = (f for f in others if isinstance(f, FUNCTIONS) and not f.name.startswith("_"))
        return next((f.name for f in public if _calls_own(f, method.name)), method.name)

    def joins_more(self, path: str, line: int) -> bool:
        """Say whether a line joins more to what there is: a tensor that is longer keeps the old."""
        return self._is(joins_more, path, line)

    def lengthens(self, path: str, line: int) -> bool:
        """Say whether a line makes a container anew that has all of what was, and more."""
        return self._is(lengthens, path, line)

    def _is(
        self, asked: Callable[[ast.stmt, ProgramTexts, File], bool], path: str, line: int
    ) -> bool:
        program = self._with(self._unknown([path]))
        file = program.file(path)
        node = file.innermost_at(line)
        return node is not None and asked(file.statement(node), program, file)

    def registering(
        self, hook: str, paths: Iterable[str], kinds: Iterable[str] = ()
    ) -> tuple[Place, ...]:
        """Return the lines that register a hook of this name; `paths`: looked in too.

        The name is in their function: what is registered may be made of the hook first. Of the
        program's own lines those that ran; of a library's, whose lines are not traced, those in
        methods of the classes named `kinds` that the hook holds.
        """
        named = [each for name in kinds for each in types_named(name)]
        program = self._with({**self._unknown(paths), **_of_libraries(named)})
        return registering(program, hook, {name_of(kind) for kind in named}, self.visits)

    def setting(self, variable: str) -> tuple[Place, ...]:
        """Return the lines that ran and set a context variable of this name."""
        return setting(self._program, variable, self.visits)

    @cached_property
    def _program(self) -> ProgramTexts:
        paths = list(dict.fromkeys(frames.own_files_with("")))
        texts = {frames.shown(path): text_of(path) for path in paths}
        return ProgramTexts(texts, complete=is_complete(paths))

    def _of_module(self, holder: Holder) -> dict[str, str]:
        """Return the text of a library's module with a global that grows: `re` limits its own."""
        named = holder.named
        path = _path_of_module(named.owner) if named.kind == "global" and named.owner else ""
        return self._unknown([path] if path else [])

    def _unknown(self, paths: Iterable[str]) -> dict[str, str]:
        return {path: text_of(path) for path in paths if path not in self._program.texts}

    def _with(self, others: Mapping[str, str]) -> ProgramTexts:
        if not others:
            return self._program
        key = frozenset(others)
        if key not in self._extended:
            cells = any(not path.endswith(".py") for path in others)
            complete = self._program.complete and not cells
            self._extended[key] = ProgramTexts({**self._program.texts, **others}, complete)
        return self._extended[key]


def _uncounted(use: Use, owners: Sequence[Any], length: int | None) -> Use:
    """Return a use without its number if what is compared with that counts something else.

    Another container counts where it is as long, or is full, so that this one should be no longer.
    """
    guard = use.guard
    if not guard.counter or guard.n is None or length is None:
        return use
    counted = number_of(guard.counter, guard.path, owners)
    full = guard.counter.startswith("len(") and counted is not None and counted >= guard.n - 1
    if counted is None or counted == length or full:
        return use
    return replace(use, guard=replace(guard, n=None))


def _kinds_of(holder: Holder, owners: Sequence[Any]) -> list[type]:
    """Return the classes that the object with an attribute may be of, with their bases."""
    named = holder.named
    if named.kind not in ("attribute", "class attribute"):
        return []
    kinds = [each if is_of(each, type) else type(each) for each in owners]
    found = [kind for kind in kinds if name_of(kind) == named.owner] or types_named(named.owner)
    return list({id(base): base for kind in found for base in bases_of(kind)}.values())


def _of_libraries(kinds: Sequence[type]) -> dict[str, str]:
    """Return the files of installed classes, as they are told, with their text."""
    paths = dict.fromkeys(filter(None, map(library.file_of, kinds)))
    return {library.shown(path): text_of(path) for path in paths}


def _held(
    suspect: Suspect, kinds: Sequence[type], adds: tuple[tuple[str, int], ...], *, inner: bool
) -> Held:
    """Return what grows as the source may name it."""
    named, places = suspect.holder.named, suspect.locations
    owners = tuple(_owners_of(suspect))
    match named.kind:
        case "local" | "closure" | "default":
            path = _path_of_function(named.function, [place.path for place in places])
            return Held(named.kind, named.name, named.function, (), (), path, adds, inner, owners)
        case "global":
            path = _path_of_module(named.owner)
            return Held("global", named.name, "", (), (), path, adds, inner, owners)
        case "attribute" | "class attribute":
            classes = tuple(dict.fromkeys([named.owner, *map(name_of, kinds)]))
            homes = tuple(dict.fromkeys(filter(None, map(_home_of, kinds))))
            return Held("attribute", named.name, "", classes, homes, "", adds, inner, owners)
    return Held("unknown", adds=adds, inner=inner)


def _home_of(kind: type) -> str:
    path = defined_in(kind)
    if not path:
        return ""
    return frames.shown(path) if frames.is_own(path) else library.shown(path)


def _path_of_function(function: str, paths: Sequence[str]) -> str:
    """Return the file of a function that runs, where it is not one of the lines that add."""
    running = (frame.f_code for frame in frames.running())
    found = {frames.shown(code.co_filename) for code in running if code.co_name == function}
    return next(iter(found)) if len(found) == 1 and function else next(iter(paths), "")


def _path_of_module(name: str) -> str:
    module = sys.modules.get(name or "__main__")
    path = vars(module).get("__file__") if type(module) is type(sys) else None
    return frames.shown(path) if type(path) is str else ""


def _owners_of(suspect: Suspect) -> Iterator[tuple[str, str]]:
    """Yield the root and the attributes between it and the attribute that grows."""
    if not suspect.trace or suspect.holder.kind != "attribute":
        return
    start = suspect.holder.start
    if start.named and start.kind in ("local", "global") and start is not suspect.holder:
        yield start.name, start.function
    links = suspect.links
    grows = next((i for i, link in enumerate(links) if link.suspect), len(links))
    itself = grows < len(links) and links[grows].edge == f".{suspect.holder.name}"  # not an element
    holders = ["", *(link.holder for link in links)]
    for at, link in enumerate(links[: max(0, grows - (not itself))]):
        if link.edge.startswith("."):
            yield link.edge, holders[at].partition(" ")[0]


def is_complete(paths: Sequence[str]) -> bool:
    """Say whether no other code of the user's will come: what nothing in these calls, nobody does.

    The next cells of a notebook are not written yet, and who calls what a test imports, that test
    need not load.
    """
    at = {os.path.realpath(path) for path in paths}
    test = running_test()
    alone = len(at) <= MOST_FILES and not (test and not any(each.endswith(test) for each in at))
    return alone and not any(map(_loads_later, paths))


def running_test() -> str:
    """Return the file of the test that runs, below pytest's root; "" outside of tests."""
    if "pytest" not in sys.modules:  # a process that a test started has the variable too
        return ""
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]


def _loads_later(path: str) -> bool:
    """Say whether a function of a file imports a module of the user's that is not loaded yet."""
    tree = ProgramTexts({path: text_of(path)}).file(path).tree
    functions = (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))
    for node in (node for function in functions for node in ast.walk(function)):
        match node:
            case ast.ImportFrom(level=level) if level:
                return True
            case ast.ImportFrom(module=str(name)):
                names = [name]
            case ast.Import(names=aliases):
                names = [each.name for each in aliases]
            case _:
                continue
        if any(name not in sys.modules and _is_own(name) for name in names):
            return True
    return False


def _is_own(module: str) -> bool:
    """Say whether a module, by the package that it is in, is the user's; nothing is imported."""
    spec = PathFinder.find_spec(module.partition(".")[0])
    folders = spec.submodule_search_locations if spec is not None else None
    at = spec.origin or next(iter(folders or ()), None) if spec is not None else None
    return at is not None and frames.is_own(at)


def _calls_own(function: Function, name: str) -> bool:
    """Say whether a method calls another of its object."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(ast.unparse(called) == f"self.{name}" for called in calls)
