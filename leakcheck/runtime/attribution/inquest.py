"""The search at the end of a window: graphs, tensors, containers and plain objects that grew.

Each is followed to its holder. What sits in a container whose size does not change (a full ring
buffer, the optimizer's state) is no leak, and a container with a limit is only filling up.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from leakcheck.model import Holder, Kind, Link, Reason
from leakcheck.runtime.attribution.advice import LARGER
from leakcheck.runtime.attribution.compilers import is_compiled, is_filled
from leakcheck.runtime.attribution.credits import Credits
from leakcheck.runtime.attribution.filling import Filling
from leakcheck.runtime.attribution.following import Follower, Retention, weighed
from leakcheck.runtime.attribution.growth import Grower, HeapGrowth, Longer, inside, referred_to
from leakcheck.runtime.attribution.hidden import seen_through_views
from leakcheck.runtime.attribution.holders import Roots
from leakcheck.runtime.attribution.lines import LineTracer
from leakcheck.runtime.attribution.linked import links_of
from leakcheck.runtime.attribution.probes import traced_steps
from leakcheck.runtime.attribution.remade import Remade
from leakcheck.runtime.attribution.resources import resources_in
from leakcheck.runtime.attribution.retention import Keepers, keepers
from leakcheck.runtime.attribution.sources import Sources
from leakcheck.runtime.attribution.suspects import Lead
from leakcheck.runtime.attribution.trace import describe, edge_to_element
from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.attribution.weight import are_plain, kept_by_views, own_bytes, weigh_each
from leakcheck.runtime.introspection import frames, graph, hooks, objects
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.introspection.kinds import name_of
from leakcheck.runtime.introspection.objects import Heap, is_tensor
from leakcheck.runtime.introspection.tensors import form_of, has_tensor, is_scalar
from leakcheck.runtime.introspection.timers import is_due_in_time
from leakcheck.runtime.outlook import Beyond
from leakcheck.runtime.readings.compiled import Recompilation
from leakcheck.runtime.readings.meters import (
    BLOCK_BYTES,
    COUNTED_EXACTLY,
    HEAP,
    is_of_device,
    unit_of,
)

# over the heap for one object, by all the searches for holders together, or what takes as long: one
# takes 14 ms in a heap of 168,000 objects, and 57 ms where it is three times as large
MOST_PASSES = 100
LARGE_HEAP = 1_200_000  # objects: of larger ones as many fewer passes
MOST_LEADS = 6
MOST_GROWERS, MOST_CANDIDATES = 16, 256
MOST_HOLDERS = 3  # of tensors that are alike
FEWEST_TENSORS = 2
MOST_WEIGHED = 64  # of tensors that are alike: several views may share a storage
FEWEST_OBJECTS = 3
FEWEST_ADDITIONS = 2  # that a window must have seen, to tell what stays
LEAST_KEPT = 0.5  # of what a counter gained, that must be found
RENEWED_FROM = 3.0  # times as many survivors as the count gained: most of them are a buffer anew


@dataclass(frozen=True, slots=True)
class Grown:
    """The way to a container that grew, how long it is, and by how much it grew in the window.

    `due`: an event loop keeps it, and lets go of what is in it when the time of that comes;
    `beyond`: the limit that it has, if memory has no room for so many.
    """

    way: Way | None
    length: int
    gained: int
    due: bool = False
    beyond: Beyond | None = None

    @property
    def was_never_emptied(self) -> bool:
        """Whether a look would have shown it had it been emptied in the window."""
        return self.length > 2 * self.gained


class Inquest:
    """Finds leads and notices in the heap as it is at one moment.

    `growing`: the resources that were measured to grow, and how much a step; `apart_steps`: how far
    apart additions come, as far as is known; `recompiled`: what torch.compile made again meanwhile;
    `remade`: what an earlier window saw made anew, as it was at each look of this one.
    """

    def __init__(
        self,
        tracer: LineTracer,
        growth: HeapGrowth,
        heap: Heap,
        growing: Mapping[str, float],
        apart_steps: float,
        recompiled: Recompilation | None = None,
        remade: Mapping[Holder, Remade] | None = None,
    ) -> None:
        self.leads: list[Lead] = []
        self._weak: list[Lead] = []  # of weak references, or held by who knows what: told if alone
        self.doubtful: list[Lead] = []  # in containers of a fixed size, which rightly renew them
        self.memo = False  # an lru_cache without a limit, or a defaultdict, grows
        self.keyed = False  # some lead is held by a container that finds things by key
        self.renewed = False  # tensors of past steps are released, and as many made anew
        self._rates, self._apart_steps = growing, apart_steps
        self._recompiled = recompiled
        self._remade = remade or {}
        self.remade: dict[Holder, Way] = {}  # by holder: what each step makes anew, maybe longer
        self._tensors_per_step = growing.get("tensors", 0.0)  # 0 if their number does not grow
        self._made: dict[int, int] = {}  # how many more objects there are of each type, by its id
        self._turnover = False  # many more tensors survive than their number grew by
        self._tracer = tracer
        self._growth = growth
        self._heap = heap
        ours = objects.inside(tracer, growth, *objects.our_caches(heap))
        growers = (one for one in growth.growers(heap) if id(one.container) not in ours)
        self._growers = list(islice(growers, MOST_CANDIDATES))
        self._credits = Credits(tracer.credits, self._growers)
        rates = {id(one.container): one.per_step for one in self._growers}
        self._grower_ids = set(rates)
        self._grower_by_id = {id(one.container): one for one in self._growers}
        self.grown: dict[Holder, Grown] = {}
        self._takers = growth.moving.takers((one.container for one in self._growers), heap)
        self.taken: dict[Holder, Holder] = {}  # by holder, what its elements are taken out of
        self._tables = growth.tables(heap)
        places = {id(table.container): table.places for table in self._tables}
        roots = Roots(heap, tracer.called)
        self._follower = Follower(roots, self._grower_ids, places, growth.is_new)
        visits = {(frames.shown(at), line): ran for (at, line), ran in tracer.visits.items()}
        self.sources = Sources(visits, tracer.stacks)
        gained_bytes = max(growing.get(name, 0.0) for name in (HEAP, "host.rss"))
        self.filling = Filling(rates, growth.steps, self.sources, self._credits, gained_bytes)
        self._most_passes = round(MOST_PASSES * min(1.0, LARGE_HEAP / max(1, len(heap))))

    def find(self, marks: array[int]) -> None:
        """Follow up graphs, tensors, containers, and last the types that grew."""
        groups = self._keepers(marks)
        explained = {id(each) for group in groups for each in (*group.tensors, *group.inner)}
        kinds = self._growing_kinds()
        extended = self._growth.extended(self._heap)
        self._heap.close()
        self._growers = referred_to(self._growers, MOST_GROWERS, self._follower.roots.referrers)
        self._follower.allow(self._most_passes)
        survivors = set(map(id, self._growth.survivors()))
        for table in self._tables:
            explained |= set(map(id, inside(table.held, survivors)))
            self.filling.note_table(table, self._follow(table.container))
        for group in groups[:MOST_LEADS]:
            self._graph_lead(group)
        del groups
        self._tensor_leads(explained)
        if self.tensors_are_released():
            self._remade_leads()
        for grower in self._growers:
            self._container_lead(grower)
        if not self.leads and not self.filling.notices and self._gains_bytes():
            for longer in extended:
                self._extended_lead(longer)
        if not self.leads:
            self.leads += self._weak
        if not self.leads and not self.filling.notices:
            # what was searched for in vain before must not cost these their turn
            self._follower.allow(self._most_passes // 2)
            for kind, grown, newest in kinds:
                self._object_lead(kind, grown, newest)

    def _gains_bytes(self) -> bool:
        """Say whether a buffer that is extended may be all that grows: their number stays."""
        in_number = self._rates.keys() & set(COUNTED_EXACTLY)
        return not in_number or any(unit_of(name) == "B" for name in self._rates)

    def tensors_are_released(self) -> bool:
        """Say whether tensors grow in number and not in age: longer episodes, and none is kept."""
        kept = self._tensors_per_step * self._growth.survivors_span_steps
        seen_enough = not self._is_short() and kept >= FEWEST_ADDITIONS
        return seen_enough and len(self._growth.survivors()) < LEAST_KEPT * kept

    def _keepers(self, marks: array[int]) -> list[Keepers]:
        tensors, nodes = self._heap.tensors(), graph.attached(self._heap.nodes())
        pairs = [*graph.grad_fns(tensors), *((node, node) for node in nodes)] if tensors else []
        return keepers(pairs, marks, self._tracer.made_by)

    def _growing_kinds(self) -> list[tuple[type, int, Any]]:
        found: list[tuple[type, int, Any]] = []
        growing = self._growth.growing_kinds(self._heap)
        self._made = {id(kind): grown for kind, grown in growing}
        for kind, grown in growing:
            plain = objects.length_reader(kind) is None and kind not in objects.NO_LEADS
            plain = plain and not objects.is_ours(kind) and not objects.is_tensor(kind)
            if plain and grown >= FEWEST_OBJECTS and len(found) < MOST_LEADS:
                found.append((kind, grown, objects.first_held(self._heap.pick({id(kind)}))))
        return found

    def _follow(self, target: Any) -> Retention:
        found = self._follower.follow(target)
        grower = self._grower_by_id.get(found.measured)
        if grower is not None and found.told.holder:
            gained = round(grower.per_step * self._growth.steps)
            self.grown[found.told.holder] = Grown(
                found.way, grower.length, gained, is_due_in_time(grower.container)
            )
        elif found.remade is not None:
            self._note_lengthened(found)
        if found.grows and found.remade is None:
            found.lines = self._credits.of(found.grower, found)
            if found.bounded is None and (limit := self.filling.limit_of(found.grower, found)):
                found.bounded, found.limit, found.stated = found.grower, limit, True
            if (giving := self._takers.get(id(found.grower))) is not None:
                self.taken[found.told.holder] = self._follower.follow(giving).told.holder
        found.compiled = self._is_compiled(target, found)
        if found.compiled and self._recompiled is not None:
            blocks_bytes = self._rates.get("python.blocks", 0.0) * BLOCK_BYTES
            kept_by = [target, *found.owners][-1]
            self.filling.note_compiled(found, kept_by, self._recompiled, blocks_bytes)
        return found

    def _is_compiled(self, target: Any, found: Retention) -> bool:
        if id(target) in self._grower_ids:
            of_module = type(target) is dict and is_filled(target)
            lines = self._credits.of(target, found)
            of_others = found.told.library or found.outside  # not the program's own
            if of_module or (of_others and self._credits.compiles(lines)):
                return True
        return is_compiled(found, self._grower_ids)

    def _note_lengthened(self, found: Retention) -> None:
        """Note a container that each step makes anew, with all that was in it and more."""
        at, container = found.rebound_at, found.remade
        known = self._remade.get(found.told.holder)
        gained = known.gained if known is not None else 0
        length = objects.length_of(container)
        if at is not None and self.sources.lengthens(frames.shown(at.path), at.line):
            found.lines = Counter({at: 1})
            gained = min(length, self._growth.steps)
        elif gained:
            found.lines = self._credits.of(known, found)
        if not gained:
            if found.way_to_remade is not None:
                self.remade[found.told.holder] = found.way_to_remade
            found.remade = None
            return
        found.grower = container
        found.fixed.discard(id(container))
        self.grown[found.told.holder] = Grown(found.way_to_remade, length, gained)

    def _graph_lead(self, group: Keepers) -> None:
        middle = group.tensors[len(group.tensors) // 2]
        found = self._follow(middle)
        for other in (*group.tensors[:2], *group.inner[:4]):
            if not found.outside:
                break
            found = self._follow(other)
        if found.bounded is not None and not found.stated:
            self.filling.note(found, self._made)
            return
        found.bounded = None  # nobody means to keep so many graphs
        one_each = len(group.tensors) > 1 and not group.reaches_back
        if one_each and not self._follower.pile_up(group.tensors, middle, found):
            return  # each holds its own step's graph, in a container of a fixed size
        names = ", ".join(name for name, _ in group.names.most_common(4))
        self.leads.append(
            Lead(
                kind="graph",
                what=f"{describe(middle)}, keeping Nodes of past steps: {names}",
                told=found.told,
                lines=found.lines or self._carried_at(group, found),
                made_at=Counter({group.site: group.nodes} if group.site else {}),
                held_at=found.held_at,
                objects_per_step=group.nodes_per_step,
                scalar=is_scalar(middle) if is_tensor(type(middle)) else None,
                compiled=found.compiled,
                evidence=Reason.of("past-nodes-alive", per_step=group.nodes_per_step, oldest=None),
            )
        )

    def _carried_at(self, group: Keepers, found: Retention) -> Counter[Site]:
        """Return the line that gives a name the newest graph, which the next step goes on from.

        That the graph was made in a module's loop over time is no reason to cut it there.
        """
        site = found.rebound_at
        if not group.reaches_back or found.grows or found.outside or site is None:
            return Counter()
        ran = self.sources.visits.get((frames.shown(site.path), site.line))
        return Counter({site: 1} if ran else {})

    def _gained_per_step(self, found: Retention) -> float:
        return self.grown[found.told.holder].gained / self._growth.steps

    def _remade_leads(self) -> None:
        """Find containers that are made anew in each step with copies of all that was in them."""
        for tensors in _alike(self._growth.newest())[:MOST_LEADS]:
            middle = tensors[len(tensors) // 2]
            found = self._follow(middle)
            if found.remade is not None and found.grows:
                per_step = self._gained_per_step(found)
                weight = per_step * weigh_each(tensors[:MOST_WEIGHED]).in_bytes
                self.leads.append(self._lead("tensor", describe(middle), found, per_step, weight))

    def _tensor_leads(self, explained: set[int]) -> None:
        survivors = self._growth.survivors()
        explained |= seen_through_views(survivors)
        survivors = [each for each in survivors if id(each) not in explained]
        gained = self._tensors_per_step * self._growth.survivors_span_steps
        self._turnover = 0 < RENEWED_FROM * gained < len(survivors)
        for tensors in _alike(survivors)[:MOST_LEADS]:
            for left in reversed(range(MOST_HOLDERS)):
                if tensors:
                    tensors = self._tensor_lead(tensors, last=not left)

    def _tensor_lead(self, tensors: list[Any], *, last: bool) -> list[Any]:
        """Follow tensors that are alike; return those that another container holds."""
        target, found = self._telling(tensors)
        beside = self._credits.added_alike(found)
        beside |= self._follower.beside(target) if found.grows else set()
        mine = [each for each in tensors if id(each) in beside]
        if len(mine) < FEWEST_TENSORS or last:  # each may be in a container of its own
            mine = tensors
        if found.bounded is not None:
            self.filling.note(found, self._made)
        elif not found.grows and self._may_be_renewed(mine):
            self.renewed = True
        elif len(mine) >= FEWEST_TENSORS:
            per_step = len(mine) / self._growth.survivors_span_steps
            if found.remade is not None:  # each is younger than a step
                per_step = min(per_step, self._gained_per_step(found))
            each_bytes = weigh_each(mine[:MOST_WEIGHED]).in_bytes
            weight = per_step * each_bytes
            if found.retained_bytes:
                found.told = found.told.weighed(found.retained_bytes)
            lead = self._lead("tensor", describe(target), found, per_step, weight)
            kept_bytes = kept_by_views([target], each_bytes)
            lead = replace(lead, resources=resources_in([target]), view_keeps_bytes=kept_bytes)
            pile_up = self._follower.pile_up(mine, target, found)
            (self.leads if pile_up else self.doubtful).append(lead)
        told = {id(each) for each in mine}
        return [each for each in tensors if id(each) not in told]

    def _may_be_renewed(self, tensors: list[Any]) -> bool:
        """Say whether these may be a buffer made anew: none is old, or too few steps were seen."""
        return self._turnover and (self._is_short() or self._growth.are_recent(tensors))

    def _is_short(self) -> bool:
        span_steps = self._growth.survivors_span_steps
        return span_steps < FEWEST_ADDITIONS * self._apart_steps

    def _telling(self, tensors: list[Any]) -> tuple[Any, Retention]:
        """Follow tensors that are alike until one leads to a container that grows or has a limit.

        What a batch was sampled from holds it too, further away than the batch does.
        """
        middle = tensors[len(tensors) // 2]
        first = self._follow(middle)
        if first.tells_limit:
            return middle, first
        others = [tensors[0], tensors[-1]] if first.in_local else []
        for other in (*self._in_growers(tensors), *others):
            found = self._follow(other)
            if found.tells_limit:
                return other, found
        return middle, first

    def _in_growers(self, tensors: list[Any]) -> list[Any]:
        """Return one of these that is in a container which grows, or in an element of it."""
        wanted = set(map(id, tensors))
        newest = (objects.newest(each.container, MOST_WEIGHED) for each in self._growers)
        return next(filter(None, (inside(parts, wanted)[:1] for parts in newest)), [])

    def _extended_lead(self, longer: Longer) -> None:
        thing = longer.thing
        found = self._follow(thing)
        if found.outside or found.told.library:
            return
        if found.own_limit is not None:
            found.bounded, found.limit = thing, found.own_limit
            self.filling.note(found, self._made, longer.bytes_per_step)
            return
        found.lines = self._credits.of(thing, found)
        kind: Kind = "tensor" if has_tensor([thing]) else "object"
        what = f"{describe(thing)}, larger at each look"
        lead = self._lead(kind, what, found, None, longer.bytes_per_step)
        lead = replace(lead, growth=LARGER)
        sites = (*lead.lines, *lead.made_at)
        if longer.was_read or any(self.sources.joins_more(site.path, site.line) for site in sites):
            self.leads.append(lead)

    def _container_lead(self, grower: Grower) -> None:
        found = self._follow(grower.container)
        if found.grows and not grower.known_again:
            return  # a row in a list that grows, at the address of another list
        found.lines = found.lines or self._credits.of(grower.container, found)
        if found.own_limit is None:
            found.own_limit = self.filling.limit_of(grower.container, found)
        elements, each = weighed(grower.container, self._grower_ids)
        if found.own_limit is not None and not found.outside:
            found.bounded, found.limit = grower.container, found.own_limit
            self.filling.note(found, self._made)
        unseen = found.outside and not found.lines  # a loop's own iterator is held by no name
        if unseen or found.bounded is not None or not elements:
            return
        found.note_kind(grower.container)
        kind: Kind = "tensor" if has_tensor(elements) else "object"
        newest = describe(elements[-1])
        retained_bytes = round(each.in_bytes * grower.length)
        edge = edge_to_element(grower.container)
        found.told = found.told.extended(Link(edge, newest, retained_bytes, suspect=True))
        what = f"{name_of(type(grower.container))} of {newest}"
        count = grower.per_step if kind == "object" else None  # the tensors are counted themselves
        lead = self._lead(kind, what, found, count, grower.per_step * each.in_bytes)
        lead = replace(lead, blocks_per_step=grower.per_step * each.blocks, whole=True)
        of_hooks = "hooks" in self._rates and hooks.is_table(grower.container)
        lead = replace(lead, resources=resources_in(elements), of_hooks=of_hooks)
        lead = replace(lead, plain=are_plain(elements))
        lead = replace(lead, view_keeps_bytes=kept_by_views(elements, each.in_bytes))
        # one whose holder there was no time to find may be what a lead before it keeps
        doubted = objects.all_weak(elements) or not found.told.holder
        (self._weak if doubted else self.leads).append(lead)

    def _object_lead(self, kind: type, grown: int, newest: Any) -> None:
        found = self._follow(newest)
        if found.outside or found.told.library:
            return
        wrapped = False  # each around the one before, in one attribute
        if not found.piles_up:
            wrapped = links_of(newest, self._growth.steps) >= self._growth.steps
            if not wrapped:
                return
        per_step = grown / self._growth.steps
        weight = 0.0 if wrapped else per_step * own_bytes(newest)  # unknown of what is inside
        if found.rebound_at is None:
            found.lines = self._credits.culprit("python.blocks")
        lead = self._lead("object", name_of(kind), found, per_step, weight)
        if wrapped and not lead.lines:
            rate = self._rates.get("host.heap", 0.0)
            lead = replace(lead, made_at=self._memory_culprit(rate) if rate else Counter())
        self.leads.append(replace(lead, resources=resources_in([newest])))

    def _lead(
        self, kind: Kind, what: str, found: Retention, per_step: float | None, bytes_per_step: float
    ) -> Lead:
        made_at = Counter[Site]()
        if not found.lines and found.rebound_at is not None and not found.outside:
            made_at[found.rebound_at] = 1
        elif not found.lines:
            made_at = self._memory_culprit(bytes_per_step)
        self.keyed |= found.keyed
        self.memo |= found.memo
        return Lead(
            kind,
            what,
            found.told,
            found.lines,
            made_at,
            found.held_at,
            per_step,
            bytes_per_step,
            growth=found.growth,
            compiled=found.compiled,
        )

    def _memory_culprit(self, per_step: float) -> Counter[Site]:
        """Return the line that gains so much of a device's memory a step, or else of the heap."""
        steps = self._tracer.traced_of(self._growth.steps)
        for resource in (*filter(is_of_device, self._credits.resources), HEAP):
            expected = per_step * traced_steps(resource, steps)
            if lines := self._credits.culprit(resource, expected):
                return lines
        return Counter()


def _alike(tensors: list[Any]) -> list[list[Any]]:
    """Return tensors by class, data type and dimensions, the most first."""
    alike: dict[tuple[str, str, int], list[Any]] = {}
    for tensor in tensors:  # batches may differ in length
        alike.setdefault((name_of(type(tensor)), *form_of(tensor)), []).append(tensor)
    return sorted(alike.values(), key=len, reverse=True)
