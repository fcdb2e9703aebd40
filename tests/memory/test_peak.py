from __future__ import annotations

from leakcheck.memory.allocator import NativeAllocator
from leakcheck.memory.peak import largest_places, page_at
from leakcheck.memory.trace import Event, Trace

EVENTS = (
    Event("alloc", 1, 1000, site=0),
    Event("alloc", 2, 600, site=1),
    Event("free", 1),
    Event("empty_cache", 0),
    Event("alloc", 3, 5000, site=0),
    Event("free", 3),
)
SITES = ("train.py:1 forward", "train.py:2 forward")


def test_a_page_holds_what_is_alive_after_the_events_and_calls_the_rest_temporary():
    page = page_at(EVENTS[:5], NativeAllocator(), {2: "activations"}, SITES, step=4)

    assert (page.phase, page.step) == ("at the peak", 4)
    assert page.size_bytes("activations") == 600
    assert page.size_bytes("temporaries") == 5000
    assert page.allocated_bytes == 1024 + 5120
    assert page.sites == (("temporaries", SITES[0], 5000), ("activations", SITES[1], 600))


def test_the_largest_places_are_those_of_the_highest_moment():
    assert largest_places(Trace(EVENTS, sites=SITES)) == ((SITES[0], 5000), (SITES[1], 600))


def test_a_trace_without_events_holds_nothing():
    assert largest_places(Trace(())) == ()
