"""What the collector lists may be held, whatever other threads are putting together."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections import namedtuple

import pytest

from leakcheck import tracked
from leakcheck.runtime.introspection.objects import Heap, Sieve

Pair = namedtuple("Pair", "left right")


class Held:
    """An object that the collector tracks and a set can hold."""

    def __init__(self, part: object) -> None:
        self.part = part


class Unfinished:
    """A tuple that another thread is putting together, of some of one object and 3 more.

    It is resized after 10, 25 and ever more elements, and is then full to the brim.
    """

    def __init__(self, element: object, full: int = 20) -> None:
        self.element, self.result, self.full = element, None, full
        self._begun, self._go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._begun.wait()

    def _elements(self):
        yield from [self.element] * self.full
        self._begun.set()
        self._go_on.wait()
        yield from [self.element] * 3

    def _run(self) -> None:
        try:
            self.result = tuple(self._elements())
        except SystemError as error:
            self.result = error

    def finish(self) -> object:
        self._go_on.set()
        self._thread.join()
        return self.result


@pytest.mark.parametrize(
    "listing",
    [
        lambda element: tracked.instances(object),
        lambda element: tracked.referents_of_all(),
        lambda element: tracked.of_kinds({id(list), id(tuple)}),
        lambda element: tracked.Referrers().of([element]),
        lambda element: tracked.Referrers().of([element] * tracked.MANY + [gc]),
        lambda element: Heap(),
        lambda element: Sieve(lambda kind: True).sort(),
    ],
    ids=["all", "referents", "kinds", "referrers", "many", "heap", "sieve"],
)
@pytest.mark.parametrize("full", [10, 20, 25])
def test_a_tuple_that_a_thread_has_not_finished_is_finished_while_the_list_is_held(listing, full):
    element = ["held"]
    unfinished = Unfinished(element, full)

    held = listing(element)
    result = unfinished.finish()

    assert held is not None
    assert result == (element,) * (full + 3)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_off_while_the_heap_is_listed_and_then_as_it_was(enabled):
    (gc.enable if enabled else gc.disable)()
    try:
        inside = tracked.sifted(lambda things, _: (gc.isenabled() for _ in things), into=set)
        after = gc.isenabled()
    finally:
        gc.enable()

    assert inside == {False}
    assert after is enabled


def test_the_collector_is_on_again_where_a_listing_fails():
    def fail(things):
        next(iter(things))
        raise MemoryError

    with pytest.raises(MemoryError):
        tracked.sifted(lambda things, _: things, into=fail)

    assert gc.isenabled()


class Frozen:
    """A frozenset that C code is filling, which it refuses to if anyone else refers to it."""

    def __init__(self) -> None:
        new, self._add = ctypes.pythonapi.PyFrozenSet_New, ctypes.pythonapi.PySet_Add
        new.argtypes, new.restype = (ctypes.c_void_p,), ctypes.c_void_p
        self._add.argtypes = (ctypes.c_void_p, ctypes.py_object)
        self._address = new(None)

    def add(self, element: object) -> int:
        return self._add(self._address, element)


@pytest.mark.parametrize(
    "listing",
    [
        lambda element: tracked.instances(object),
        lambda element: tracked.referents_of_all(),
        lambda element: tracked.of_kinds({id(list), id(frozenset)}),
        lambda element: tracked.Referrers().of([element]),
        lambda element: tracked.Referrers().of([element] * tracked.MANY + [gc]),
        lambda element: Heap(),
        lambda element: Sieve(lambda kind: True).sort(),
    ],
    ids=["all", "referents", "kinds", "referrers", "many", "heap", "sieve"],
)
def test_a_frozenset_that_is_being_filled_can_be_filled_while_the_list_is_held(listing):
    element = Held(None)
    frozen = Frozen()
    frozen.add(element)

    held = listing(element)

    assert held is not None
    assert frozen.add(Held(None)) == 0


def test_what_is_of_a_type_or_derived_from_it_is_listed_but_for_plain_tuples():
    class Derived(Pair):
        pass

    pair, derived, plain = Pair([], []), Derived([], []), ([],)

    assert {id(pair), id(derived)} <= set(map(id, tracked.instances(Pair)))
    assert id(plain) not in set(map(id, tracked.instances(Pair)))
    assert tracked.instances(Derived) == [derived]


def test_of_some_kinds_tuples_that_something_holds_are_listed_once():
    inner = ([],)
    outer = [inner, inner]

    found = tracked.of_kinds({id(tuple), id(Pair)})

    assert sum(thing is inner for thing in found) == 1
    assert {type(thing) for thing in found} <= {tuple, Pair}
    assert outer


@pytest.mark.parametrize("others", [[], [[] for _ in range(tracked.MANY)]], ids=["few", "many"])
def test_what_refers_to_something_is_found_in_tuples_and_beside_them(others):
    element = ["held"]
    in_tuple, in_pair, in_list = (1, element, element), Pair(element, None), [[element]]
    holding, frozen = [in_tuple], {"set": frozenset([Held(element)])}

    found = tracked.Referrers().of([element, in_list[0], *others])

    ids = set(map(id, found))
    assert {id(in_tuple), id(in_pair), id(in_list), id(in_list[0])} <= ids
    (held,) = frozen["set"]
    assert {id(frozen["set"])} <= set(map(id, tracked.Referrers().of([held])))
    assert holding


def test_what_only_a_local_or_an_untracked_array_refers_to_is_found_once_it_is_named():
    element = ["held"]
    alone = (element,)

    referrers = tracked.Referrers([alone])
    assert id(alone) in set(map(id, referrers.of([element])))
    del referrers
    untold = tracked.Referrers()
    assert id(alone) not in set(map(id, untold.of([element])))
    untold.know([alone])
    assert id(alone) in set(map(id, untold.of([element])))


@pytest.mark.parametrize(
    "listing",
    [
        lambda: tracked.instances(Pair),
        lambda: tracked.of_kinds({id(Pair), id(tuple)}).clear(),
        lambda: Heap().close(),
        lambda: Sieve(lambda kind: kind is Pair).sort(),
        lambda: tracked.Referrers().of([gc]),
        lambda: tracked.Referrers().of([gc, *([] for _ in range(tracked.MANY))]),
    ],
    ids=["instances", "kinds", "heap", "sieve", "referrers", "many"],
)
def test_the_listing_is_gone_before_any_collection(listing):
    gc.collect()
    gc.disable()
    try:
        listing()
        listing()
        long = [thing for thing in gc.get_objects() if type(thing) is list and len(thing) > 10_000]
    finally:
        gc.enable()

    assert long == []


def test_what_lists_and_searches_keep_nothing_until_a_collection():
    gc.collect()
    gc.disable()
    try:
        element = Held(None)
        gone = weakref.ref(element)
        for _ in range(3):
            referrers = tracked.Referrers()
            found = referrers.of([element]), referrers.of([element] * (tracked.MANY + 1))
            found = tracked.referents_of_all(), tracked.of_kinds({id(Held), id(tuple)})
        del element, referrers, found
    finally:
        gc.enable()

    assert gone() is None
