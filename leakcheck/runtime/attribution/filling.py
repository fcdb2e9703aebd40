"""What grows up to a limit and no further: told in notices, with how long it has left to fill."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leakcheck.model import Holder, Notice, Reason, Suspect
from leakcheck.runtime.attribution.credits import Credits
from leakcheck.runtime.attribution.following import Retention, each_bytes, fits
from leakcheck.runtime.attribution.keys import number_of_keys
from leakcheck.runtime.attribution.loop_lengths import turns_until
from leakcheck.runtime.attribution.sources import Sources
from leakcheck.runtime.attribution.suspects import Lead, suspects_from
from leakcheck.runtime.introspection import objects
from leakcheck.runtime.introspection.kinds import is_of, name_of
from leakcheck.runtime.introspection.tables import Table
from leakcheck.runtime.outlook import Beyond, Case
from leakcheck.runtime.readings.compiled import Recompilation
from leakcheck.runtime.readings.limits import host_room_bytes
from leakcheck.source.guards import MOST_HELD
from leakcheck.source.uses import Use

WORTH_A_WORD = 1 << 20  # bytes, for what it will hold to be told
MADE_PER_STEP = 0.5  # containers with a limit, for them to be no limit together


class Filling:
    """Collects the containers of a window that have a limit, each once.

    `rates`: elements a step, by the id of a container that grows; `gained_bytes`: what the host's
    memory was measured to gain a step.
    """

    def __init__(
        self,
        rates: Mapping[int, float],
        steps: int,
        sources: Sources,
        credited: Credits,
        gained_bytes: float = 0.0,
    ) -> None:
        self.notices: list[Notice] = []
        self.full_in_steps = 0  # until the last of them is full
        self.bytes_per_step = 0.0  # gained by those that are not full yet
        self._of_libraries: list[tuple[Notice, int]] = []  # what fills up, and in how many steps
        self.uses: dict[Holder, tuple[Use, ...]] = {}  # by holder, of the container that grows
        self.beyond: dict[Holder, Beyond] = {}  # limits that memory has no room for
        self._told: set[int] = set()  # by id: they live on meanwhile
        self._recompiled = False  # what torch.compile made again was told
        self._rates, self._steps, self._sources = rates, steps, sources
        self._credits = credited
        self._gained_bytes = gained_bytes

    def note(self, found: Retention, made: Mapping[int, int], per_step: float = 0.0) -> None:
        """Note what `found` tells of a container with a limit.

        `made`: how many more objects there are of each type, by its id; `per_step`: what it gains,
        where its elements are not counted.
        """
        if found.compiled:
            return
        its_own = objects.limit_of(found.bounded) is not None
        # torch's, Python's or our own: no concern beside others
        of_library = found.told.library and (its_own or found.told.holder.kind == "global")
        if its_own and made.get(id(type(found.bounded)), 0) >= MADE_PER_STEP * self._steps:
            return  # each is limited, and each step makes another
        read = objects.content_reader(type(found.bounded))
        length = read(found.bounded) if read else 0
        per_step = per_step or self._rates.get(id(found.bounded), 0.0)  # absent once it is full
        self._note(found.bounded, found, length, found.limit, per_step, of_library=of_library)

    def note_compiled(
        self, found: Retention, kept_by: Any, recompiled: Recompilation, blocks_bytes: float
    ) -> None:
        """Note what `kept_by` has of a function for each shape, if memory has room for so many.

        `blocks_bytes`: what Python's allocator gains a step, beside the heap.
        """
        missing = recompiled.most - recompiled.made
        each = (self._gained_bytes + blocks_bytes) / recompiled.per_step
        if missing * each > host_room_bytes():
            return
        found.bounded, found.limit = kept_by, recompiled.most
        self.full_in_steps = max(self.full_in_steps, recompiled.full_in_steps)
        if self._recompiled:
            return
        self._recompiled = True
        full_bytes = recompiled.most * each
        with_ = Reason.of("with", full_bytes=full_bytes) if full_bytes >= WORTH_A_WORD else None
        steps = recompiled.full_in_steps
        full = Reason.of("full-in", steps=steps, full_bytes=with_) if steps else Reason("full")
        told = Reason.of("recompiled", made=recompiled.made, most=recompiled.most, full=full)
        self.notices.append(Notice("bounded", told))

    def note_libraries(self) -> None:
        """Tell of the caches of libraries too: nothing else was found to grow."""
        for notice, steps in self._of_libraries:
            self.notices.append(notice)
            self.full_in_steps = max(self.full_in_steps, steps)

    def note_table(self, table: Table, found: Retention) -> None:
        """Note a table that is filled, and who holds it."""
        if found.outside or found.told.library:
            self._told.add(id(table.container))
        else:
            self._note(table.container, found, len(table.held), table.places, table.per_step)

    def _note(
        self,
        container: Any,
        found: Retention,
        length: int,
        limit: int,
        per_step: float,
        *,
        of_library: bool = False,
    ) -> None:
        steps = round(max(0, limit - length) / per_step) if per_step else 0
        if not of_library:
            self.full_in_steps = max(self.full_in_steps, steps)
        if id(container) in self._told or not found.told.holder:
            return
        self._told.add(id(container))
        if length < limit and objects.length_reader(type(container)) is not None:
            self.bytes_per_step += per_step * each_bytes(container)
        full_bytes = limit * each_bytes(container)
        with_ = Reason.of("with", full_bytes=full_bytes) if full_bytes >= WORTH_A_WORD else None
        full = Reason.of("full-in", steps=steps, full_bytes=with_) if steps else None
        inner = Reason.of("inside", kind=name_of(type(container)))
        holds = Reason.of(
            "holds-keys" if found.about else "holds",
            inside=inner if _is_inner(container, found) else None,
            holder=str(found.told.holder),
            length=length,
            most=limit,
            full=full if length < limit else Reason("full"),
        )
        notice = Notice("bounded", holds)
        if not of_library:
            self._tell(notice)
        elif length < limit and steps:
            self._of_libraries.append((notice, steps))

    def _tell(self, notice: Notice) -> None:
        """Tell of one holder the nearest limit: an lru_cache has its own, and keys that there are.

        The cache and the dictionary in it are two containers.
        """
        told, length = notice.reason.get("holder"), notice.reason.get("length")
        same = [
            each
            for each in self.notices
            if (each.reason.get("holder"), each.reason.get("length")) == (told, length)
            and each.reason.get("inside") == notice.reason.get("inside")
        ]
        nearest = min((*same, notice), key=_most_of)
        self.notices[:] = [each for each in self.notices if each not in same]
        self.notices.append(nearest)

    def limit_of(self, container: Any, found: Retention) -> int | None:
        """Return the limit that the source sets to a container, or its keys, if it has room for it.

        `found` is told if that is only about right.
        """
        in_module = found.told.holder.kind == "global"  # whose source is at hand
        if found.outside or (found.told.library and not in_module):
            return None
        own = objects.limit_of(container)
        limit = self._stated(container, found)
        if own is not None:
            self._note_beyond(container, found, own)
        elif limit is None:
            limit = number_of_keys(container)
            found.about = limit is not None
        return limit if limit is not None and fits(container, limit) else None

    def _note_beyond(self, container: Any, found: Retention, most: int) -> None:
        full_bytes = most * each_bytes(container)
        self.beyond[found.told.holder] = Beyond(most, full_bytes, host_room_bytes())

    def _note_gathered(self, container: Any, found: Retention, uses: tuple[Use, ...]) -> None:
        """Note what the loops around this very step will have gathered, if memory has no room."""
        use = next((use for use in uses if use.gathers or use.after), None)
        turns = turns_until(use.path, use.line, sys._getframe()) if use is not None else None
        if turns is None:
            return
        per_step = self._rates.get(id(container), 0.0)
        # elements that share their memory weigh less than each by itself
        full_bytes = turns * min(per_step * each_bytes(container), self._gained_bytes)
        room_bytes = host_room_bytes()
        if full_bytes > room_bytes:
            self.beyond[found.told.holder] = Beyond(round(turns * per_step), full_bytes, room_bytes)

    def _stated(self, container: Any, found: Retention) -> int | None:
        """Return the most that the source lets a container hold, if that is not passed yet."""
        named = suspects_from([Lead("object", "", found.told, found.lines, held_at=found.held_at)])
        read = objects.length_reader(type(container))
        length = read(container) if read is not None else None
        inner = _ends_in(named[0], container)
        keyed = is_of(container, dict)
        uses = self._sources.uses_of(named[0], found.owners, length, inner=inner, keyed=keyed)
        taken = self._credits.taken_from(container)
        uses = tuple(replace(use, took=(use.path, use.line) in taken) for use in uses)
        for use in uses:
            if use.guard.kind in ("below", "above") and not _is_in_reach(use, container):
                self._note_beyond(container, found, use.guard.n or 0)
        uses = tuple(use if _is_in_reach(use, container) else _limitless(use) for use in uses)
        self._note_gathered(container, found, uses)
        self.uses[found.told.holder] = uses
        most = Case(uses, length=length).most
        return most if most is not None and length is not None and length <= most else None


def _most_of(notice: Notice) -> int:
    most = notice.reason.get("most")
    return most if isinstance(most, int) else MOST_HELD


def _ends_in(suspect: Suspect, container: Any) -> bool:
    """Say whether a container is an element of what is named, whose limit is not its own."""
    last = suspect.links[-1] if suspect.links else None
    kind = name_of(type(container))
    return last is not None and last.edge.startswith("[") and last.holder == kind


def _is_in_reach(use: Use, container: Any) -> bool:
    """Say whether memory has room for as many elements as a use is guarded by."""
    return use.guard.n is None or fits(container, use.guard.n)


def _limitless(use: Use) -> Use:
    return replace(use, guard=replace(use.guard, n=MOST_HELD + 1))


def _is_inner(container: Any, found: Retention) -> bool:
    """Say whether another container is what the holder is named after: a deque a prompt."""
    at = next((i for i, owner in enumerate(found.owners) if owner is container), 0)
    around = found.owners[at - 1] if at else None
    return around is not None and (around is found.grower or id(around) in found.fixed)
