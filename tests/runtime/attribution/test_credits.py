"""Containers that the same line adds to are one leak, with what is in all of them."""

from __future__ import annotations

from collections import Counter, deque

from leakcheck.model import LeakTrace
from leakcheck.runtime.attribution.credits import Credits
from leakcheck.runtime.attribution.following import Retention
from leakcheck.runtime.attribution.growth import Grower
from leakcheck.runtime.attribution.trace import Told
from leakcheck.runtime.introspection.frames import Site
from tests.holders import held_by

HOOK, OTHER = Site("train.py", 3, "hook"), Site("train.py", 9, "main")


def found_in(container, *lines: Site) -> Retention:
    told = Told(
        LeakTrace("global `hooks`"), held_by("closure cell `kept` of hook()"), library=False
    )
    return Retention(told, grower=container, lines=Counter(lines))


def test_what_is_in_all_the_containers_that_a_line_adds_to():
    first, second, other = [object()], [object(), object()], [object()]
    queue, unseen = deque([object()]), [object()]
    added = {id(first): HOOK, id(second): HOOK, id(other): OTHER, id(queue): HOOK}
    credited = {str(key): Counter({site: 5}) for key, site in added.items()}
    kept = (first, second, other, queue, unseen)
    credits = Credits(credited, [Grower(each, len(each), 1.0) for each in kept])

    assert credits.added_alike(found_in(first, HOOK)) == set(map(id, [*first, *second]))
    assert credits.added_alike(found_in(other, OTHER)) == set(map(id, other))
    assert credits.added_alike(found_in(unseen)) == set()
