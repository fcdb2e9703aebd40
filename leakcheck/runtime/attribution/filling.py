"""What grows up to a limit and no further: told in notices, with how long it has left to fill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakcheck.model import Notice
from leakcheck.runtime.attribution.following import Found, fits
from leakcheck.runtime.attribution.keys import number_of_keys
from leakcheck.runtime.attribution.stated import stated_limit
from leakcheck.runtime.attribution.suspects import Lead, suspects_from
from leakcheck.runtime.introspection import objects

MADE_PER_STEP = 0.5  # containers with a limit, for them to be no limit together


class Filling:
    """Collects the containers of a window that have a limit, each once.

    `rates`: elements a step, by the id of a container that grows.
    """

    def __init__(self, rates: Mapping[int, float], steps: int) -> None:
        self.notices: list[Notice] = []
        self.full_in_steps = 0  # until the last of them is full
        self._told: set[int] = set()  # by id: they live on meanwhile
        self._rates, self._steps = rates, steps

    def note(self, found: Found, made: Mapping[type, int], per_step: float = 0.0) -> None:
        """Note what `found` tells of a container with a limit.

        `made`: how many more objects there are of each type; `per_step`: what it gains, where its
        elements are not counted.
        """
        its_own = objects.limit_of(found.bounded) is not None
        if found.told.library and its_own:  # a cache of torch's or our own: no concern
            return
        if made.get(type(found.bounded), 0) >= MADE_PER_STEP * self._steps:
            return  # each is limited, and each step makes another
        read = objects.content_reader(type(found.bounded))
        length, limit = read(found.bounded) if read else 0, found.limit
        per_step = per_step or self._rates.get(id(found.bounded), 0.0)  # absent once it is full
        steps = round(max(0, limit - length) / per_step) if per_step else 0
        self.full_in_steps = max(self.full_in_steps, steps)
        if id(found.bounded) in self._told:
            return
        self._told.add(id(found.bounded))
        full = f"full in {steps} steps" if length < limit else "full now"
        most = f"about {limit} possible keys" if found.about else f"at most {limit}"
        held = f"{found.told.holder} holds {length} of {most}"
        self.notices.append(Notice("bounded", f"{held} and is {full}"))


def limit_beside(container: Any, found: Found) -> int | None:
    """Return the limit that the source sets to a container, or its keys, if there is room for it.

    `found` is told if that is only about right.
    """
    if found.outside or found.told.library:
        return None
    named = suspects_from([Lead("object", "", found.told, found.lines, held_at=found.held_at)])
    limit = stated_limit(container, named[0], found.owners)
    if limit is None:
        limit = number_of_keys(container)
        found.about = limit is not None
    return limit if limit is not None and fits(container, limit) else None
