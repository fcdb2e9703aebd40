"""What the collector lists may be held, whatever other threads are putting together."""

from __future__ import annotations

import gc
import threading
from collections import namedtuple

import pytest

from leakcheck import tracked
from leakcheck.runtime.introspection.objects import Heap, Sieve

Pair = namedtuple("Pair", "left right")


class Unfinished:
    """A tuple that another thread is putting together, of 20 of one object and 3 more."""

    def __init__(self, element: object) -> None:
        self.element, self.result = element, None
        self._begun, self._go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._begun.wait()

    def _elements(self):
        yield from [self.element] * 20
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
        lambda element: tracked.referring_to([element]),
        lambda element: Heap(),
        lambda element: Sieve(lambda kind: True).sort(),
    ],
    ids=["all", "referents", "kinds", "referrers", "heap", "sieve"],
)
def test_a_tuple_that_a_thread_has_not_finished_is_finished_while_the_list_is_held(listing):
    element = ["held"]
    unfinished = Unfinished(element)

    held = listing(element)
    result = unfinished.finish()

    assert held is not None
    assert result == (element,) * 23


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


def test_what_refers_to_something_is_found_in_tuples_and_beside_them():
    element = ["held"]
    in_tuple, in_pair, in_list = (1, element, element), Pair(element, None), [[element]]

    found = tracked.referring_to([element, in_list[0]])

    ids = set(map(id, found))
    assert {id(in_tuple), id(in_pair), id(in_list), id(in_list[0])} <= ids


@pytest.mark.parametrize(
    "listing",
    [
        lambda: tracked.instances(Pair),
        lambda: tracked.of_kinds({id(Pair), id(tuple)}).clear(),
        lambda: Heap().close(),
        lambda: Sieve(lambda kind: kind is Pair).sort(),
        lambda: tracked.referring_to([gc]),
    ],
    ids=["instances", "kinds", "heap", "sieve", "referrers"],
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
