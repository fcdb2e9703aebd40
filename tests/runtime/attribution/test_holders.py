"""The root of a chain is where something is kept, not where it is known by name."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from types import ModuleType

import pytest

from leakcheck.runtime.attribution.holders import Roots
from leakcheck.runtime.attribution.trace import tell
from leakcheck.runtime.introspection.objects import Heap

REGISTRY = """
from functools import lru_cache

class Registry:
    kept = []

def keep(thing, kept=[]):
    kept.append(thing)

@lru_cache(maxsize=None)
def made(number):
    return [number]
"""


class Sample:
    """What is kept."""


class Around:
    """What keeps one thing, and is itself kept for ever from C."""

    __slots__ = ("kept",)

    def __init__(self, kept: object) -> None:
        self.kept = kept
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


class Part:
    """One of many, each of which can be taken out by itself."""

    def __init__(self, whole: Whole) -> None:
        self.take_out = partial(self.leave, whole.parts.remove)

    def leave(self, remove: Callable[[Part], None]) -> None:
        """Go."""
        remove(self)


class Whole:
    """What all its parts refer to."""

    def __init__(self) -> None:
        self.parts: list[Part] = []


@pytest.fixture
def modules(monkeypatch, thawed):
    """Return a module of a library's, and one of the program's that imports all of its names."""
    library, program = ModuleType("somelib.registry"), ModuleType("program")
    library.__file__ = "/env/lib/python3/site-packages/somelib/registry.py"
    program.__file__ = "/home/me/program.py"
    for module in (library, program):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(REGISTRY, vars(library))
    vars(program).update({name: vars(library)[name] for name in ("Registry", "keep", "made")})
    return library, program


def root_of(take):
    """Return the root of what `take` returns, and whether that is a library's."""
    with closing(Heap()) as heap:
        roots = Roots(heap)  # before anything here refers to it
        told = tell(roots.chain_to(take()), set())
        return told.trace.root, told.library


def test_who_imports_a_class_does_not_hold_what_is_in_it(modules):
    library, _ = modules
    library.Registry.kept.append(Sample())

    assert root_of(lambda: library.Registry.kept[0]) == ("class attribute `Registry.kept`", True)


def test_who_imports_a_function_does_not_hold_its_defaults(modules):
    library, _ = modules
    library.keep(Sample())

    assert root_of(lambda: library.keep.__defaults__[0][0]) == (
        "global `somelib.registry.keep`",
        True,
    )


def test_who_imports_a_cached_function_does_not_hold_its_results(modules):
    library, _ = modules
    library.made(1)

    assert root_of(lambda: library.made(1)) == ("global `somelib.registry.made`", True)


def test_a_function_that_was_replaced_where_it_came_from_is_held_by_who_imported_it(modules):
    library, program = modules
    library.keep(Sample())
    del library.keep

    assert root_of(lambda: program.keep.__defaults__[0][0]) == ("global `program.keep`", False)


def test_what_a_module_keeps_beside_an_import_is_its_own(modules):
    _, program = modules
    program.registry = [Sample()]

    assert root_of(lambda: program.registry[0]) == ("global `program.registry`", False)


@pytest.mark.parametrize("count", [10, 2000])
def test_the_owner_of_what_all_its_parts_refer_to_is_found_in_a_few_passes(modules, count):
    _, program = modules
    program.whole = Whole()
    program.whole.parts += [Part(program.whole) for _ in range(count)]
    with closing(Heap()) as heap:
        roots = Roots(heap)
        chain = roots.chain_to(program.whole.parts, until_pass=15)

    assert chain.root is not None
    assert chain.root.owner == "program"
    assert roots.referrers.passes < 15


def test_what_one_of_many_alike_alone_leads_to_is_found_all_the_same(modules):
    _, program = modules
    target = Sample()
    holders = [Around(target) for _ in range(500)]
    program.odd = holders[123]
    del target, holders  # the others are held where nobody sees it
    with closing(Heap()) as heap:
        chain = Roots(heap).chain_to(program.odd.kept)

    assert chain.root is not None
    assert chain.objects[-2] is program.odd
