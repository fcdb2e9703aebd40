"""Who holds a thing that was found to grow, and what the containers on the way tell of it."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from queue import Queue
from typing import Any

from leakcheck.runtime.attribution.advice import KEYED, QUEUED
from leakcheck.runtime.attribution.holders import Chain, Roots
from leakcheck.runtime.attribution.places import held_at, rebound_at
from leakcheck.runtime.attribution.trace import POSITION, Told, is_namespace, tell
from leakcheck.runtime.attribution.way import Way, way_of
from leakcheck.runtime.attribution.weight import Weight, own_bytes, weigh_each
from leakcheck.runtime.introspection import objects
from leakcheck.runtime.introspection.buffers import size_readers
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.introspection.kinds import ByKind, is_exactly, is_of
from leakcheck.runtime.readings.limits import host_room_bytes

NEWEST = 8  # elements weighed to estimate what one costs


@dataclass(slots=True)
class Retention:
    """Who holds something, and what the containers on the way tell."""

    told: Told
    held_at: tuple[Site, ...] = ()
    rebound_at: Site | None = None
    lines: Counter[Site] = field(default_factory=Counter)  # that add to the container that grows
    grower: Any = None  # the container on the way that grows
    retained_bytes: int = 0  # by the container that grows
    bounded: Any = None  # the container on the way that has a limit
    limit: int = 0  # the most it holds
    own_limit: int | None = None  # of the target itself
    stated: bool = False  # the limit is in the program's source, or in the keys
    about: bool = False  # it may be somewhat more or less
    memo: bool = False  # what grows on the way makes what it is asked for
    keyed: bool = False  # what grows on the way is a dictionary or a set, as caches are
    fixed: set[int] = field(default_factory=set)  # ids of the containers that do not grow
    owners: list[Any] = field(default_factory=list)  # the objects from the root to it
    way: Way | None = None  # to the last container that grows
    measured: int = 0  # the id of that
    remade: Any = None  # the container it is in, if that was made after the first look,
    way_to_remade: Way | None = None
    compiled: bool = False  # what torch.compile made keeps it

    def note_kind(self, container: Any) -> None:
        """Note what kind of container grows."""
        self.keyed |= is_of(container, dict, set)
        self.memo |= is_exactly(container, objects.LruCache, defaultdict)

    @property
    def growth(self) -> str:
        """How what holds it grows, where that is not as a list does."""
        if any(is_of(each, Queue) for each in self.owners):
            return QUEUED
        return KEYED if self.keyed else ""

    @property
    def grows(self) -> bool:
        """Whether a container on the way grows."""
        return self.grower is not None

    @property
    def tells_limit(self) -> bool:
        """Whether a container on the way grows or has a limit."""
        return self.grows or self.bounded is not None

    @property
    def in_local(self) -> bool:
        """Whether the root is a local, which may be of this step alone."""
        return self.told.holder.start.kind == "local"

    @property
    def in_variable(self) -> bool:
        """Whether it is the value of a variable, which has one at a time."""
        alone = len(self.told.edges) == 1 and not self.tells_limit
        return alone and self.told.holder.kind in ("global", "local")

    @property
    def outside(self) -> bool:
        """Whether nothing in Python holds it."""
        return self.told.holder.kind == "outside"

    @property
    def piles_up(self) -> bool:
        """Whether no container on the way keeps it to a number."""
        return self.bounded is None and (self.grows or not self.fixed)


class Follower:
    """Follows live objects to the roots that hold them.

    `growing` are ids of containers; `tables`: those that are being filled, with their places;
    `is_new`: whether a container was made after the first look.
    """

    def __init__(
        self,
        roots: Roots,
        growing: Set[int],
        tables: Mapping[int, int] | None = None,
        is_new: Callable[[Any], bool] = lambda container: False,
    ) -> None:
        self._until_pass = 0.0  # of the referrers
        self.roots = roots
        self._tables, self._is_new = tables or {}, is_new
        self._growing = growing
        # the ids of what is in one container, and who holds it
        self._siblings: list[tuple[set[int], Retention]] = []

    def allow(self, passes: int) -> None:
        """Let searches make at least so many passes over the heap from now on, all together."""
        self._until_pass = max(self._until_pass, self.roots.referrers.passes + passes)

    def follow(self, target: Any) -> Retention:
        """Return who holds an object, and what its holders tell."""
        for beside, known in self._siblings:
            if id(target) in beside:
                return replace(known)
        chain = self.roots.chain_to(target, self._growing, self._until_pass)
        found = Retention(tell(chain, self._growing), tuple(held_at(chain)), rebound_at(chain))
        found.owners = chain.objects[:-1]
        found.own_limit = _limit_of(target, chain)
        growing = [at for at, each in enumerate(chain.objects) if id(each) in self._growing]
        if growing:
            found.way = way_of(chain, growing[-1])
            found.measured = id(chain.objects[growing[-1]])
        for holder in chain.objects[:-1]:
            self._note_container(found, chain, holder)
        self._note_remade(found, chain)
        self._note_siblings(chain, found)
        return found

    def beside(self, target: Any) -> set[int]:
        """Return the ids of what the container holds that holds an object followed before."""
        return next((beside for beside, _ in self._siblings if id(target) in beside), set())

    def pile_up(self, alike: Sequence[Any], target: Any, found: Retention) -> bool:
        """Say whether no container keeps these to a number, `found` of the `target` among them.

        Each may be in a small dictionary of its own, which others hold, or in a variable. What
        locals alone hold may be of this round of the loop: a longer window tells. So may what
        nothing known holds beside a variable: the loop's own iterator has it.
        """
        others = [each for each in (alike[0], alike[-1]) if each is not target]
        if found.in_variable and others:
            known = [found, *(one for one in map(self.follow, others) if not one.outside)]
            variables = {one.told.holder for one in known if one.in_variable}
            return len(variables) < len(known)
        if found.piles_up or found.bounded is not None or found.in_local:
            return found.piles_up
        apart = (found.fixed.isdisjoint(self.follow(other).fixed) for other in others)
        return bool(others) and all(apart)

    def _note_remade(self, found: Retention, chain: Chain) -> None:
        holder = chain.objects[-2] if len(chain.objects) > 1 else None
        measured = objects.length_reader(type(holder)) is not None and id(holder) in found.fixed
        if measured and not found.grows and found.own_limit is None and self._is_new(holder):
            found.remade, found.way_to_remade = holder, way_of(chain, len(chain.objects) - 2)

    def _note_siblings(self, chain: Chain, found: Retention) -> None:
        # of fifty lists in one dictionary each took a search
        if len(chain.objects) < 2 or found.told.edges[-1] != POSITION:
            return
        holder = chain.objects[-2]
        if objects.length_reader(type(holder)) is not None and found.own_limit is None:
            beside = {id(part) for part in gc.get_referents(holder)}
            self._siblings.append((beside, replace(found)))

    def _note_container(self, found: Retention, chain: Chain, holder: Any) -> None:
        if objects.length_reader(type(holder)) is None:
            return
        limit = self._tables.get(id(holder)) or _limit_of(holder, chain)
        if limit is not None:
            found.bounded, found.limit = holder, limit
        if id(holder) in self._growing:
            found.grower = holder
            found.note_kind(holder)
            if found.bounded is not None and limit is None:
                # lists in a ring that may yet turn, and give them up
                found.bounded, found.memo = None, True
            length = objects.length_of(holder)
            found.retained_bytes = round(weighed(holder)[1].in_bytes * length)
        elif not is_namespace(chain, holder):
            found.fixed.add(id(holder))


def _limit_of(container: Any, chain: Chain) -> int | None:
    """Return the most a container holds: its own limit, or the capacity of the object around."""
    limit = objects.limit_of(container)
    kind = type(container)
    length = objects.content_reader(kind)
    if limit is not None:  # of what no memory holds it is none
        return limit if length is None or fits(container, limit) else None
    if length is None:
        return None
    at = next(i for i, thing in enumerate(chain.objects) if thing is container)
    # an object's attributes may be a dictionary in between, and a file another; the state of an
    # optimizer has a dictionary for each parameter
    counts = (objects.capacity_of(owner, container) for owner in chain.objects[max(0, at - 4) : at])
    count = next((count for count in counts if count and length(container) <= count), None)
    return count if count is not None and fits(container, count) else None


def fits(container: Any, count: int) -> bool:
    """Say whether there is room in memory for `count` elements such as a container has now."""
    length = objects.content_reader(type(container)) or len
    missing = count - length(container)
    return missing <= 0 or missing * each_bytes(container) <= host_room_bytes()


def each_bytes(container: Any) -> float:
    """Return what one of the newest elements of a container or buffer weighs."""
    of_buffer = type(container) in ByKind(size_readers())
    return 1.0 if of_buffer else weighed(container)[1].in_bytes


def weighed(container: Any, others: Iterable[int] = ()) -> tuple[list[Any], Weight]:
    """Return the newest elements of a container, and what one of them and its place weigh.

    `others`: the ids of containers whose elements are weighed there.
    """
    elements = objects.newest(container, NEWEST)
    length = max(1, objects.length_of(container))
    of_each = len(elements) / min(NEWEST, length)  # of a dictionary the key and the value
    pairs = len(elements) > min(NEWEST, length)
    one = weigh_each(elements, group=2 if pairs else 1, apart=(id(container), *others))
    in_bytes = one.in_bytes * of_each + own_bytes(container) / length
    return elements, Weight(in_bytes, one.blocks * of_each)
