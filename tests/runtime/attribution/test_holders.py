"""The root of a chain is where something is kept, not where it is known by name."""

from __future__ import annotations

import sys
from contextlib import closing
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
