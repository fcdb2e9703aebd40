"""Objects that stand for processes, threads or files are told as these, and each leak once."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from leakcheck.model import LeakTrace, Link
from leakcheck.runtime.attribution.resources import as_counted, resources_in
from leakcheck.runtime.attribution.suspects import Lead
from leakcheck.runtime.attribution.trace import OUTSIDE, Told
from leakcheck.runtime.introspection.frames import Site
from tests.holders import held_by

HELD_AT, OPENED_AT = Counter([Site("a.py", 12)]), Counter([Site("a.py", 11)])
NOBODY = Told(LeakTrace(""), held_by(""), False)
KEPT = Told(LeakTrace("global `kept`"), held_by("global `kept`"), False)
FILES = Lead("descriptors", "files or sockets", NOBODY, OPENED_AT, objects_per_step=0.2)


def held(*resources) -> Lead:
    """Return the lead of objects that a global holds."""
    found = frozenset(resources)
    return Lead("object", "dict of X", KEPT, HELD_AT, objects_per_step=0.21, resources=found)


def kept_by_one(*, suspect: bool) -> Lead:
    """Return the lead of tensors in threads, of each if there are ever more of these."""
    running = "global `threading._active`"
    trace = LeakTrace(running, (Link("[x]", "Thread", suspect=suspect), Link("._args", "tuple")))
    return Lead("tensor", "Tensor (8)", Told(trace, held_by(running), False))


def a_child() -> subprocess.Popen:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    child.communicate()
    return child


def a_pool() -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(2)
    pool.submit(print, end="").result()
    pool.shutdown()
    return pool


@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (a_child, {"processes", "descriptors"}),
        (lambda: {"worker": (threading.Thread(target=print),)}, {"threads"}),
        (a_pool, {"threads"}),
        (lambda: open(__file__), {"descriptors"}),  # noqa: SIM115
        (socket.socket, {"descriptors"}),
        (lambda: [1, "text", print], set()),
    ],
)
def test_what_objects_stand_for_is_what_each_has_one_of_its_own_of(make, kinds):
    things = [make() for _ in range(3)]

    found = resources_in(things)

    for thing in things:
        getattr(thing, "close", int)()
    assert found == kinds


def test_objects_that_share_a_thread_stand_for_none():
    thread = threading.Thread(target=print)

    assert resources_in([{"thread": thread} for _ in range(3)]) == set()
    assert resources_in([]) == set()


@pytest.mark.parametrize("kind", ["processes", "threads", "descriptors"])
def test_objects_that_stand_for_what_grows_are_told_as_that(kind):
    assert as_counted([held(kind)], {"python.blocks": 3.0, kind: 0.2}) == [
        replace(held(kind), kind=kind)
    ]


def test_children_with_pipes_are_children():
    lead = held("descriptors", "processes")

    assert as_counted([lead], {"descriptors": 0.4, "processes": 0.2}) == [
        replace(lead, kind="processes")
    ]


def test_they_stay_objects_when_only_objects_grow():
    leads = [held("processes"), held("descriptors")]

    assert as_counted(leads, {"python.blocks": 3.0, "threads": 1.0}) == leads


def test_other_objects_stay_objects_beside_files_that_pile_up():
    leads = [FILES, held()]

    assert as_counted(leads, {"python.blocks": 3.0, "descriptors": 0.2}) == leads


def test_what_a_library_keeps_of_every_thread_stays_an_object():
    lead = replace(held("threads"), told=replace(KEPT, library=True))

    assert as_counted([lead], {"threads": 1.0}) == [lead]


def test_the_line_that_opens_files_and_what_holds_them_are_one_leak():
    lead = held("descriptors")

    assert as_counted([FILES, lead], {"descriptors": 0.2}) == [
        replace(lead, kind="descriptors", lines=OPENED_AT, made_at=HELD_AT, objects_per_step=0.2)
    ]


def test_of_two_that_hold_files_nobody_knows_which_is_added_to_by_the_line():
    leads = [held("descriptors"), replace(held("descriptors"), what="list of Y")]

    told = as_counted([FILES, *leads], {"descriptors": 0.2})

    assert told == [FILES, *(replace(lead, kind="descriptors") for lead in leads)]


def test_what_threads_work_with_is_theirs():
    threads = replace(FILES, kind="threads")
    inside = Told(LeakTrace(OUTSIDE), held_by(OUTSIDE), False)
    batch = Lead("tensor", "Tensor (8)", inside)

    assert as_counted([batch, threads], {"threads": 0.1}) == [threads]
    assert as_counted([batch], {"threads": 0.1}) == [batch]
    for suspect, told in ((True, [threads]), (False, [kept_by_one(suspect=False), threads])):
        assert as_counted([kept_by_one(suspect=suspect), threads], {"threads": 0.1}) == told
    assert as_counted([batch, threads], {"tensors": 0.1}) == [batch, threads]


def test_two_descriptors_for_each_child_are_the_children_s():
    what = "child processes that are started and never end"
    children = replace(FILES, kind="processes", what=what, objects_per_step=0.1)

    assert as_counted([FILES], {"descriptors": 0.2, "processes": 0.1}) == [children]
    assert as_counted([children, FILES], {"descriptors": 0.2, "processes": 0.1}) == [children]


def test_descriptors_that_are_not_as_many_as_children_would_have_are_files():
    assert as_counted([FILES], {"descriptors": 0.2, "processes": 0.13}) == [FILES]
