"""Who holds an object: the shortest chain of references to it from a root.

Roots are the locals of running and suspended functions, the globals of modules and the attributes
of classes; the user's own come first. The search goes backwards, level by level, by one
`gc.get_referrers` over the whole heap for each level (15-30 ms once torch is loaded).
"""

from __future__ import annotations

import gc
import math
import sys
from collections import Counter
from collections.abc import Container, Iterator, Set
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Literal

from leakcheck.model import Holder
from leakcheck.runtime.attribution.hidden import Hidden
from leakcheck.runtime.attribution.linked import CLIMB_PASSES, climb
from leakcheck.runtime.introspection import frames, hooks
from leakcheck.runtime.introspection.frames import Local
from leakcheck.runtime.introspection.kinds import (
    attributes_of,
    defined_in,
    globals_of,
    is_of,
    module_of,
    name_of,
    namespace_of,
)
from leakcheck.runtime.introspection.objects import LENGTHS, Heap, LruCache, is_ours
from leakcheck.tracked import Referrers

# before 3.11 the dictionary of every object is a level of its own
DEEPEST = 24 if sys.version_info >= (3, 11) else 48
WIDEST = 3000  # referrers followed a level; more means that everything refers to it
# Of objects of one class that hold the same, as all parts of a figure do its axes, so many of a
# level tell who holds them all; 400 took all passes of a search. Containers may be anybody's.
FEW_ALIKE = 16
LEVELS_AFTER_LIBRARY_ROOT = 3  # a root of the user's further out is preferred
LEVELS_AROUND_KEPT = 6  # a generator in a list, a task in a set, a class in a registry
MODULE_TABLES = ("_parameters", "_buffers", "_modules")  # nn.Module keeps attributes in these
CLIMB_FROM = DEEPEST - 9  # levels left; what is further away than nine may be linked by hand


@dataclass(frozen=True, slots=True)
class Root:
    """Where a chain begins: a local, a module's globals, a class's attributes, a context variable.

    `name` is the local's; `owner` is its function, or the module, class or variable itself.
    """

    kind: Literal["local", "module", "class", "context variable"]
    name: str
    owner: str
    own: bool
    path: str = ""
    kept: bool = False  # by something: a local's function is suspended, a class has no name
    passing: bool = False  # a local of what is called in each step: it does not outlast one

    @property
    def holder(self) -> Holder:
        """The root as what holds all that is found from it."""
        if self.kind == "local":
            return Holder("local", self.name, function=self.owner)
        return Holder(self.kind, self.owner)


@dataclass(slots=True)
class Chain:
    """A root and the live objects from it to the target; drop it as soon as it is told.

    `cut_off`: the passes for the search were used up while there was more to follow; `thinned`: of
    objects that are alike it followed a few.
    """

    root: Root | None
    objects: list[Any] = field(default_factory=list)
    cut_off: bool = False
    thinned: bool = False


class Roots:
    """Every root of the process at one moment, by the id of what it names.

    `called`: the functions that were called in the steps before.
    """

    def __init__(self, heap: Heap, called: Container[CodeType] = frozenset()) -> None:
        suspended = heap.pick({id(kind) for kind in frames.SUSPENDABLE})
        self._locals: dict[int, Local] = frames.named_values(suspended, called)
        self._modules: dict[int, ModuleType] = {}
        for module in list(sys.modules.values()):
            if is_of(module, ModuleType):
                self._modules[id(globals_of(module))] = module
        self._in_context = {id(value): one.name for one, value in copy_context().items()}
        self._hidden = Hidden(heap.tensors(), heap.around_buffers)
        self._skipped = {id(self._locals), id(self._modules), id(self._in_context)}
        self.referrers = Referrers(frames.local_values(suspended))
        self._running = {id(frame) for frame in frames.running()}  # their locals are roots already

    def chain_to(
        self, target: Any, growing: Set[int] = frozenset(), until_pass: float = math.inf
    ) -> Chain:
        """Return the shortest chain to `target`; no root when nothing in Python holds it.

        The search ends at the pass `until_pass` of `referrers` over the heap: each level is one.

        A local of a suspended function, or a class made at run time, is the root unless a container
        that grows, whose id is in `growing`, keeps it; a local of what is called in each step,
        unless there is a root that outlasts it.
        """
        for most_alike in (FEW_ALIKE, WIDEST):
            chain = self._search(target, growing, until_pass, most_alike)
            if chain.root is None and self._hidden.is_in_array(target):
                self.referrers.know(self._hidden.in_arrays)
                chain = self._search(target, growing, until_pass, most_alike)
            if chain.root is not None or not chain.thinned:
                break
        return chain

    def _search(self, target: Any, growing: Set[int], until_pass: float, most_alike: int) -> Chain:
        thinned = False
        seen = {id(target): target}
        holds: dict[int, int] = {}
        level = [target]
        best: Chain | None = None
        levels_left = DEEPEST
        while level and levels_left > 0 and self.referrers.passes < until_pass:
            for thing in level:
                root = self._root(thing)
                if root is None or (best is not None and not root.own):
                    continue
                chain = _chain(root, thing, seen, holds)
                if _is_final(chain, best, growing):
                    return chain
                if best is None or not _is_own(best):
                    around = root.kept or root.passing
                    beyond = LEVELS_AROUND_KEPT if around else LEVELS_AFTER_LIBRARY_ROOT
                    best, levels_left = chain, min(levels_left, beyond)
            levels_left -= 1
            if levels_left == CLIMB_FROM and best is None:
                level = climb(level, seen, holds)
                self.referrers.passes += CLIMB_PASSES
                rooted = [thing for thing in level if self._root(thing) is not None]
                if rooted:
                    level = rooted
                    continue
                del level[:-WIDEST], rooted
            # who imports a module does not hold what is in it
            level = [thing for thing in level if id(thing) not in self._modules]
            level = self._holders(level, seen, holds) if level else []
            before = len(level)
            level[:] = _few_alike(level, most_alike)
            thinned |= len(level) < before
        if best is not None:
            return best
        return replace(
            _chain(None, _telling(seen, holds, target), seen, holds),
            cut_off=bool(level) and levels_left > 0,
            thinned=thinned,
        )

    def _root(self, thing: Any) -> Root | None:
        local = self._locals.get(id(thing))
        if local is not None:
            return Root("local", *local)
        if id(thing) in self._in_context:
            return Root("context variable", "", self._in_context[id(thing)], own=True)
        if id(thing) in self._modules:
            module = self._modules[id(thing)]
            name, path = names_of_module(module)
            return Root("module", "", name, frames.is_own(path or name), path or name)
        if issubclass(type(thing), type):
            path = path_of_class(thing)
            own = path == "" or frames.is_own(path)
            return Root("class", "", name_of(thing), own, path, kept=not _is_named(thing))
        return None

    def _holders(self, level: list[Any], seen: dict[int, Any], holds: dict[int, int]) -> list[Any]:
        inside = {id(thing) for thing in level}
        found = self.referrers.of(level)
        skipped = self._skipped | self._hidden.ids | self.referrers.ids
        following: list[Any] = []
        for holder in found:
            if holder is level or holder is seen or id(holder) in skipped | seen.keys():
                continue
            if type(holder) is FrameType and id(holder) in self._running:
                continue
            child = None if _is_ours(holder) else self._part_in(holder, inside)
            if child is not None:
                seen[id(holder)], holds[id(holder)] = holder, child
                following.append(holder)
        for thing in level:
            for holder in self._hidden.holders(thing):
                if id(holder) not in seen:
                    seen[id(holder)], holds[id(holder)] = holder, id(thing)
                    following.append(holder)
        return following[:WIDEST]

    def _part_in(self, holder: Any, level: set[int]) -> int | None:
        """Return the id of a part of `holder` that is in a level, but for what a module imports.

        Who imports a class or a function does not hold what is in it.
        """
        parts = (part for part in gc.get_referents(holder) if id(part) in level)
        module = self._modules.get(id(holder))
        if module is not None:
            parts = (part for part in parts if not _is_imported(part, names_of_module(module)[0]))
        return next(map(id, parts), None)


def _few_alike(level: list[Any], most: int) -> Iterator[Any]:
    """Give of objects of one class so many, from the oldest to the newest; containers are all."""
    alike = Counter(id(type(thing)) for thing in level)  # a class may have a `__hash__` of its own
    passed: Counter[int] = Counter()
    for thing in level:
        kind = id(type(thing))
        passed[kind] += 1
        each = 1 if type(thing) in LENGTHS else math.ceil(alike[kind] / most)
        if passed[kind] % each == 0:
            yield thing


def _is_final(chain: Chain, best: Chain | None, growing: Set[int]) -> bool:
    """Say whether no better root need be looked for than that of `chain`."""
    if chain.root is None or not chain.root.own or chain.root.kept or chain.root.passing:
        return False
    if best is None or not _is_own(best) or best.root is None or best.root.passing:
        return True
    return not growing.isdisjoint(map(id, chain.objects))


def _is_own(chain: Chain) -> bool:
    return chain.root is not None and chain.root.own


def _is_ours(holder: Any) -> bool:
    if type(holder) is FrameType:
        return frames.is_ours(holder.f_code)
    return is_ours(type(holder))


def _is_named(kind: type) -> bool:
    """Say whether a class is found under its name in its module; not if it is made at run time."""
    return _is_found(kind, *_defined_as(kind))


def _is_imported(thing: Any, module: str) -> bool:
    """Say whether a class or a function is found under its name in another module than `module`."""
    origin, qualified = _defined_as(thing)
    return origin != module and _is_found(thing, origin, qualified)


def _defined_as(thing: Any) -> tuple[Any, Any]:
    """Return the module and the qualified name that a class or a function says it has."""
    if is_of(thing, type):
        return module_of(thing), type.__dict__["__qualname__"].__get__(thing)
    if type(thing) is FunctionType:
        return thing.__module__, thing.__qualname__
    if type(thing) is LruCache:
        names = attributes_of(thing)
        return names.get("__module__"), names.get("__qualname__")
    return "", ""


def _is_found(thing: Any, module: Any, qualified: Any) -> bool:
    if type(module) is not str or type(qualified) is not str:
        return False
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        of_class = issubclass(type(found), type)
        if not of_class and type(found) is not ModuleType:
            return False
        inside = namespace_of(found) if of_class else globals_of(found)
        found = inside.get(part)
    return found is thing


def path_of_class(kind: type) -> str:
    """Return the file of the module that defines a class, "" if there is none."""
    name = module_of(kind)
    module = sys.modules.get(name)
    return names_of_module(module)[1] if module is not None and is_of(module, ModuleType) else ""


def names_of_module(module: ModuleType) -> tuple[str, str]:
    """Return a module's name and file, "" for none, past a `__getattr__` of its own."""
    names = globals_of(module)
    name, path = names.get("__name__"), names.get("__file__")
    return name if type(name) is str else "", path if type(path) is str else ""


def _telling(seen: dict[int, Any], holds: dict[int, int], target: Any) -> Any:
    """Pick what tells most of a chain without a root: a table of hooks that C++ alone refers to.

    If there is none, a function of the user's, or an object of one of the user's classes, as an
    iterator that only a running loop knows.
    """
    held = set(holds.values())
    tables = (each for key, each in seen.items() if key not in held and hooks.is_table(each))
    if (table := next(tables, None)) is not None:
        return table
    functions = (thing for thing in seen.values() if type(thing) is FunctionType)
    own = (each for each in functions if frames.is_own(each.__code__.co_filename))
    objects_of_own = (each for each in seen.values() if _is_of_own_class(each))
    function = next(own, None)
    return function if function is not None else next(objects_of_own, target)


def _is_of_own_class(thing: Any) -> bool:
    path = defined_in(type(thing))
    return bool(path) and frames.is_own(path)


def _chain(root: Root | None, top: Any, seen: dict[int, Any], holds: dict[int, int]) -> Chain:
    chain = Chain(root, [top])
    while (holder_id := id(chain.objects[-1])) in holds:
        child = seen[holds[holder_id]]
        chain.objects += [*_namespace_between(chain.objects[-1], child), child]
    return chain


def _namespace_between(holder: Any, child: Any) -> list[dict[str, Any]]:
    """Return the attributes of a module, of which `child` is a table, unless they are the holder.

    Up to CPython 3.12 the collector says that a module refers to the dictionary of its attributes,
    from 3.13 that it refers to their values.
    """
    if not is_of(child, dict) or is_of(holder, dict, type, ModuleType):
        return []
    names = attributes_of(holder)
    return [names] if any(names.get(name) is child for name in MODULE_TABLES) else []
