"""The search at the end of a window: graphs, tensors, containers and plain objects that grew.

Each is followed to its holder. What sits in a container whose size does not change (a full ring
buffer, the optimizer's state) is no leak, and a container with a limit is only filling up.
"""

from __future__ import annotations

import gc
from array import array
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import islice
from time import thread_time
from typing import Any

from leakcheck.model import Kind, Link, Notice
from leakcheck.runtime import graph, objects
from leakcheck.runtime.buffers import size_readers
from leakcheck.runtime.frames import Site
from leakcheck.runtime.growth import Grower, Growth
from leakcheck.runtime.holders import Chain, Roots
from leakcheck.runtime.limits import host_room_bytes
from leakcheck.runtime.lines import LineTracer, culprit
from leakcheck.runtime.objects import Heap
from leakcheck.runtime.places import held_at, rebound_at
from leakcheck.runtime.probes import FROM_STEP
from leakcheck.runtime.retention import Keepers, keepers
from leakcheck.runtime.suspects import Lead
from leakcheck.runtime.trace import (
    OUTSIDE,
    POSITION,
    Told,
    describe,
    edge_to_element,
    is_namespace,
    tell,
)
from leakcheck.runtime.weight import Weight, own_bytes, weigh_each
from leakcheck.units import format_count

SEARCH_S = 1.0  # of processor time, for all the searches for holders together, in a heap of
SEARCH_OBJECTS = 300_000  # so many objects (torch loaded); in larger ones each level costs more
LARGEST_FACTOR = 4.0
MOST_LEADS = 6
MOST_GROWERS = 16
NEWEST = 8  # elements weighed to estimate what one costs
FEWEST_TENSORS = 2
FEWEST_OBJECTS = 3


@dataclass(slots=True)
class _Found:
    """Who holds something, and what the containers on the way tell."""

    told: Told
    held_at: tuple[Site, ...] = ()
    rebound_at: Site | None = None
    lines: Counter[Site] = field(default_factory=Counter)  # that add to the container that grows
    grows: bool = False
    retained_bytes: int = 0  # by the container that grows
    bounded: Any = None  # the container on the way that has a limit
    limit: int = 0  # the most it holds
    own_limit: int | None = None  # of the target itself
    memo: bool = False  # what grows on the way makes what it is asked for
    keyed: bool = False  # what grows on the way is a dictionary or a set, as caches are
    in_fixed_container: bool = False

    def note_kind(self, container: Any) -> None:
        """Note what kind of container grows."""
        self.keyed |= isinstance(container, (dict, set))
        self.memo |= type(container) in (objects.LruCache, defaultdict)

    @property
    def outside(self) -> bool:
        return self.told.trace.root == OUTSIDE

    @property
    def piles_up(self) -> bool:
        return self.bounded is None and (self.grows or not self.in_fixed_container)


class Inquest:
    """Finds leads and notices in the heap as it is at one moment."""

    def __init__(self, tracer: LineTracer, growth: Growth, heap: Heap) -> None:
        self.leads: list[Lead] = []
        self.notices: list[Notice] = []
        self.doubtful: list[Lead] = []  # in containers of a fixed size, which rightly renew them
        self.full_in_steps = 0
        self.memo = False  # an lru_cache without a limit, or a defaultdict, grows
        self.keyed = False  # some lead is held by a container that finds things by key
        self._siblings: list[
            tuple[set[int], _Found]
        ] = []  # what one container holds, and its chain
        self._told: set[int] = set()  # containers with a limit, by id: they live on meanwhile
        self._tracer = tracer
        self._growth = growth
        self._heap = heap
        self._roots = Roots(heap)
        ours = _inside(tracer, growth)
        growers = (one for one in growth.growers(heap) if id(one.container) not in ours)
        self._growers = list(islice(growers, MOST_GROWERS))
        self._growing = {id(grower.container) for grower in self._growers}
        factor = min(LARGEST_FACTOR, max(1.0, len(heap) / SEARCH_OBJECTS))
        self._search_s = SEARCH_S * factor
        self._until_s = 0.0

    def find(self, marks: array[int]) -> None:
        """Follow up graphs, tensors, containers, and last the types that grew."""
        groups = self._keepers(marks)
        explained = {id(each) for group in groups for each in (*group.tensors, *group.inner)}
        kinds = self._growing_kinds()
        extended = self._growth.extended(self._heap)
        self._heap.drop()
        self._until_s = thread_time() + self._search_s
        for group in groups[:MOST_LEADS]:
            self._graph_lead(group)
        del groups
        self._tensor_leads(explained)
        for grower in self._growers:
            self._container_lead(grower)
        if not self.leads and not self.notices:
            for thing, bytes_per_step in extended:
                self._extended_lead(thing, bytes_per_step)
        if not self.leads and not self.notices:
            # what was searched for in vain before must not cost these their turn
            self._until_s = max(self._until_s, thread_time() + self._search_s / 2)
            for kind, grown, newest in kinds:
                self._object_lead(kind, grown, newest)

    def _keepers(self, marks: array[int]) -> list[Keepers]:
        tensors, nodes = self._heap.tensors(), self._heap.nodes()
        pairs = [*graph.grad_fns(tensors), *((node, node) for node in nodes)] if tensors else []
        return keepers(pairs, marks, self._tracer.made_by)

    def _growing_kinds(self) -> list[tuple[type, int, Any]]:
        found: list[tuple[type, int, Any]] = []
        for kind, grown in self._growth.growing_kinds(self._heap):
            plain = objects.length_reader(kind) is None and kind not in objects.NO_LEADS
            plain = plain and not objects.is_ours(kind)
            if plain and grown >= FEWEST_OBJECTS and len(found) < MOST_LEADS:
                found.append((kind, grown, objects.first_held(self._heap.pick({id(kind)}))))
        return found

    def _follow(self, target: Any) -> _Found:
        for beside, known in self._siblings:
            if id(target) in beside:
                return replace(known, lines=Counter())
        chain = self._roots.chain_to(target, self._until_s)
        found = _Found(tell(chain, self._growing), tuple(held_at(chain)), rebound_at(chain))
        found.own_limit = _limit_of(target, chain)
        for holder in chain.objects[:-1]:
            self._note_container(found, chain, holder)
        self._note_siblings(chain, found)
        return found

    def _note_siblings(self, chain: Chain, found: _Found) -> None:
        # of fifty lists in one dictionary each took a search
        if len(chain.objects) < 2 or found.told.edges[-1] != POSITION:
            return
        holder = chain.objects[-2]
        if objects.length_reader(type(holder)) is not None and found.own_limit is None:
            beside = {id(part) for part in gc.get_referents(holder)}
            self._siblings.append((beside, replace(found)))

    def _note_container(self, found: _Found, chain: Chain, holder: Any) -> None:
        if objects.length_reader(type(holder)) is None:
            return
        limit = _limit_of(holder, chain)
        if limit is not None:
            found.bounded, found.limit = holder, limit
        if id(holder) in self._growing:
            found.grows = True
            found.note_kind(holder)
            length = objects.length_reader(type(holder)) or len
            found.retained_bytes = round(_weighed(holder)[1].in_bytes * length(holder))
            found.lines = self._lines_of(holder)
        elif not is_namespace(chain, holder):
            found.in_fixed_container = True

    def _lines_of(self, container: Any) -> Counter[Site]:
        return self._tracer.credits.get(str(id(container)), Counter())

    def _graph_lead(self, group: Keepers) -> None:
        middle = group.tensors[len(group.tensors) // 2]
        found = self._follow(middle)
        for other in (*group.tensors[:2], *group.inner[:4]):
            if not found.outside:
                break
            found = self._follow(other)
        if found.bounded is not None:
            self._note_filling(found)
            return
        if len(group.tensors) > 1 and not found.piles_up and not group.reaches_back:
            return  # each holds its own step's graph, in a container of a fixed size
        names = ", ".join(name for name, _ in group.names.most_common(4))
        self.leads.append(
            Lead(
                kind="graph",
                what=f"{describe(middle)}, keeping Nodes of past steps: {names}",
                told=found.told,
                lines=found.lines,
                made_at=Counter({group.site: group.nodes} if group.site else {}),
                held_at=found.held_at,
                objects_per_step=group.nodes_per_step,
                scalar=objects.is_scalar(middle),
                evidence=f"{format_count(group.nodes_per_step)} Nodes of each past step are alive",
            )
        )

    def _note_filling(self, found: _Found, per_step: float = 0.0) -> None:
        its_own = objects.limit_of(found.bounded) is not None
        if found.told.library and its_own:  # a cache of torch's or our own: no concern
            return
        kind = type(found.bounded)
        read = size_readers().get(kind) or objects.length_reader(kind)
        length, limit = read(found.bounded) if read else 0, found.limit
        grown = (one.per_step for one in self._growers if one.container is found.bounded)
        per_step = per_step or next(grown, 0.0)  # absent once it is full
        steps = round(max(0, limit - length) / per_step) if per_step else 0
        self.full_in_steps = max(self.full_in_steps, steps)
        if id(found.bounded) in self._told:
            return
        self._told.add(id(found.bounded))
        full = f"full in {steps} steps" if length < limit else "full now"
        held = f"{found.told.holder} holds {length} of at most {limit}"
        self.notices.append(Notice("bounded", f"{held} and is {full}"))

    def _tensor_leads(self, explained: set[int]) -> None:
        alike: dict[str, list[Any]] = {}
        for tensor in self._growth.survivors():
            if id(tensor) not in explained:
                alike.setdefault(describe(tensor), []).append(tensor)
        ranked = sorted(alike.items(), key=lambda each: -len(each[1]))
        for what, tensors in ranked[:MOST_LEADS]:
            found = self._follow(tensors[len(tensors) // 2])
            if found.bounded is not None:
                self._note_filling(found)
            if len(tensors) < FEWEST_TENSORS or found.bounded is not None:
                continue
            per_step = len(tensors) / self._growth.survivors_span_steps
            weight = per_step * weigh_each(tensors[:1]).in_bytes
            if found.retained_bytes:
                found.told = found.told.weighed(found.retained_bytes)
            lead = self._lead("tensor", what, found, per_step, weight)
            (self.leads if found.piles_up else self.doubtful).append(lead)

    def _extended_lead(self, thing: Any, bytes_per_step: float) -> None:
        found = self._follow(thing)
        if found.outside or found.told.library:
            return
        if found.own_limit is not None:
            found.bounded, found.limit = thing, found.own_limit
            self._note_filling(found, bytes_per_step)
            return
        found.lines = self._lines_of(thing)
        kind: Kind = "tensor" if objects.has_tensor([thing]) else "object"
        what = f"{describe(thing)}, larger at each look"
        self.leads.append(self._lead(kind, what, found, None, bytes_per_step))

    def _container_lead(self, grower: Grower) -> None:
        found = self._follow(grower.container)
        elements, each = _weighed(grower.container)
        if found.own_limit is not None and not found.outside:
            found.bounded, found.limit = grower.container, found.own_limit
            self._note_filling(found)
        if found.outside or found.bounded is not None or not elements:
            return
        found.note_kind(grower.container)
        kind: Kind = "tensor" if objects.has_tensor(elements) else "object"
        newest = describe(elements[-1])
        retained_bytes = round(each.in_bytes * grower.length)
        edge = edge_to_element(grower.container)
        found.told = found.told.extended(Link(edge, newest, retained_bytes, suspect=True))
        found.lines = self._lines_of(grower.container)
        what = f"{type(grower.container).__name__} of {newest}"
        count = grower.per_step if kind == "object" else None  # the tensors are counted themselves
        lead = self._lead(kind, what, found, count, grower.per_step * each.in_bytes)
        self.leads.append(replace(lead, blocks_per_step=grower.per_step * each.blocks))

    def _object_lead(self, kind: type, grown: int, newest: Any) -> None:
        found = self._follow(newest)
        if found.outside or found.told.library or not found.piles_up:
            return
        per_step = grown / self._growth.steps
        weight = per_step * own_bytes(newest)
        if found.rebound_at is None:
            found.lines = self._culprit("python.blocks")
        self.leads.append(self._lead("object", kind.__name__, found, per_step, weight))

    def _lead(
        self, kind: Kind, what: str, found: _Found, per_step: float | None, bytes_per_step: float
    ) -> Lead:
        made_at = Counter[Site]()
        if not found.lines and found.rebound_at is not None and not found.outside:
            made_at[found.rebound_at] = 1
        elif not found.lines:
            made_at = self._culprit("host.heap", bytes_per_step)
        self.keyed |= found.keyed
        self.memo |= found.memo
        return Lead(
            kind, what, found.told, found.lines, made_at, found.held_at, per_step, bytes_per_step
        )

    def _culprit(self, resource: str, per_step: float = 0.0) -> Counter[Site]:
        traced = max(1, self._growth.steps - FROM_STEP.get(resource, 0))
        return culprit(self._tracer.credits.get(resource, Counter()), per_step * traced)


def _limit_of(container: Any, chain: Chain) -> int | None:
    """Return the most a container holds: its own limit, or the capacity of the object around."""
    limit = objects.limit_of(container)
    kind = type(container)
    size = size_readers().get(kind)
    length = size or objects.length_reader(kind)
    if limit is not None or length is None:
        return limit
    at = next(i for i, thing in enumerate(chain.objects) if thing is container)
    # an object's attributes may be a dictionary in between, and a file another
    counts = (objects.capacity_of(owner, kind) for owner in chain.objects[max(0, at - 3) : at])
    count = next((count for count in counts if count and length(container) <= count), None)
    if count is None:
        return None
    each_bytes = 1.0 if size else _weighed(container)[1].in_bytes
    still_to_come_bytes = (count - length(container)) * each_bytes
    return count if still_to_come_bytes <= host_room_bytes() else None


def _inside(*observers: object) -> set[int]:
    """Return the ids of what leakcheck itself keeps while it looks, two levels deep."""
    values = [value for observer in observers for value in vars(observer).values()]
    return {id(part) for part in (*values, *gc.get_referents(*values))}


def _weighed(container: Any) -> tuple[list[Any], Weight]:
    """Return the newest elements of a container, and what one of them and its place weigh."""
    elements = objects.newest(container, NEWEST)
    length = max(1, (objects.length_reader(type(container)) or len)(container))
    of_each = len(elements) / min(NEWEST, length)  # of a dictionary the key and the value
    one = weigh_each(elements)
    in_bytes = one.in_bytes * of_each + own_bytes(container) / length
    return elements, Weight(in_bytes, one.blocks * of_each)
