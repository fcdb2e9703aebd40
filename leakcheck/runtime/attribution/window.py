"""The short window opened when something grows: which lines make it, and who holds what they made.

From `open` to `close` the user's lines are traced, the heap is looked at a few times, and every
step boundary is marked. `close` compares the looks, walks the graph made in between, and follows
references back to a root. The heap is searched with the collector's own tables; everything live is
dropped before `close` returns.
"""

from __future__ import annotations

import gc
import math
import sys
from array import array
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import thread_time
from typing import Any

from leakcheck.model import Holder, Notice, Reason, Suspect
from leakcheck.runtime.attribution import exit_functions, probes
from leakcheck.runtime.attribution.growth import HeapGrowth
from leakcheck.runtime.attribution.inquest import Grown, Inquest
from leakcheck.runtime.attribution.lines import LineTracer
from leakcheck.runtime.attribution.remade import Remade
from leakcheck.runtime.attribution.resources import as_counted
from leakcheck.runtime.attribution.sources import Sources
from leakcheck.runtime.attribution.suspects import Lead, is_minor, is_unheld, suspects_from
from leakcheck.runtime.attribution.way import Way
from leakcheck.runtime.introspection import frames, graph, objects
from leakcheck.runtime.introspection.objects import Heap, unobserved
from leakcheck.runtime.readings import compiled
from leakcheck.runtime.readings.devices import devices_in_use
from leakcheck.runtime.readings.meters import COUNTED_EXACTLY, HEAP
from leakcheck.source.uses import Use

LOOKS = (5, 13, 40, 120)  # steps after `open` at which the heap is looked at again
FAR_APART_STEPS = 16  # additions; nearer ones come at random, and more looks see them better
FEWEST_RARE_STEPS = 65  # apart, for what was added last to be no evidence
MOST_PROBES = 24
MOST_LOOKED_AT = 9_000_000  # objects in a window's looks: 2.5 s, where a heap has 1.5 million
MOST_BLOCKS_EACH = 16  # of Python's allocator, in what a container gains at once: a record
SUSPENDABLE = {id(kind) for kind in frames.SUSPENDABLE}
RENEWED = Notice("bounded", Reason("released"))


@dataclass(frozen=True, slots=True)
class Findings:
    """What grew in a window, who holds it, what only fills up, and what may become of it."""

    suspects: tuple[Suspect, ...] = ()
    notices: tuple[Notice, ...] = ()
    steps: int = 0
    full_in_steps: int = 0  # what has a limit
    filling_bytes: float = 0.0  # a step, gained by what has a limit
    keyed: bool = False  # what grows finds things by key, as caches do
    memo: bool = False  # it grows in an lru_cache, or makes what it is asked for
    has_leads: bool = False  # a container or a graph was seen to grow
    shapes_vary: bool = False  # libraries keep something for each new shape, up to a number
    doubtful: bool = False  # the suspects are in containers that keep their size
    grown: Mapping[Holder, Grown] = field(default_factory=dict)  # the containers, measured
    uses: Mapping[Holder, tuple[Use, ...]] = field(default_factory=dict)  # of these
    sources: Sources = field(default_factory=lambda: Sources({}))  # to ask for those of others
    taken: Mapping[Holder, Holder] = field(default_factory=dict)  # what another gives up
    remade: Mapping[Holder, Way] = field(default_factory=dict)  # to what each step makes anew

    @property
    def ways(self) -> dict[Holder, Way]:
        """The ways to what grows, where they are known."""
        return {holder: one.way for holder, one in self.grown.items() if one.way is not None}


class Window:
    """One attribution window; `growing` are the resources known to grow and by how much a step.

    `apart_steps` lie between two additions, as far as is known; `last_look` is for a long window
    the step of one more look at the heap, after which nothing that is born counts. Of a heap that
    is very large there are fewer looks.
    `traced_steps`: only so many are traced after each `apart_steps`, where additions are known to
    come in them; 0 for all. `remade`: what an earlier window saw made anew in each step.
    """

    def __init__(
        self,
        growing: Mapping[str, float] | None = None,
        apart_steps: float = 0.0,
        last_look: int = 0,
        traced_steps: int = 0,
        remade: Mapping[Holder, Way] | None = None,
    ) -> None:
        self._growing = growing or {}
        self._apart_steps = apart_steps
        self._looks = (*_looks(apart_steps), last_look)
        self._remade = {holder: Remade(way) for holder, way in (remade or {}).items()}
        self._traced_steps = traced_steps or math.inf
        self._tracer = LineTracer()
        self._compiled = compiled.times_compiled()
        # what is rarely made, as the model of a fold, is in use until the next one is
        rare = apart_steps >= FEWEST_RARE_STEPS
        self._growth = HeapGrowth(int(apart_steps)) if rare else HeapGrowth()
        self._marks = array("Q")
        self._steps = 0  # so far
        self._looking_s = 0.0
        self._looks_taken = self._looked_at = 0
        self._probed: set[int] = set()
        self._gained = 0  # elements, by the containers that are probed

    @property
    def has_begun(self) -> bool:
        """Whether a step has passed: before, nothing can have grown in the window."""
        return self._steps > 0

    @property
    def spent_s(self) -> float:
        """What the window has cost the program so far, in seconds."""
        return self._looking_s + self._tracer.spent_s

    def open(self) -> None:
        """Begin at a step boundary (60-100 ms, for plain objects 60 ms more)."""
        began_s = thread_time()
        with unobserved(), closing(self._heap()) as heap:
            self._growth.look(0, heap)
            objects_seen = len(heap)
        self._look_at_remade()
        self._note_look(began_s, objects_seen)
        self._mark()
        if self._tracer.start():
            exit_functions.watch(self._tracer)
            self._watch()
            for each in self._remade.values():
                self._tracer.watch(str(id(each)), each.length)

    def step(self) -> None:
        """Note a step boundary; at a few of them the heap is looked at (60-100 ms)."""
        self._tracer.check()
        with self._tracer.ours():
            self._note_step()

    def _note_step(self) -> None:
        self._steps += 1
        self._mark()
        self._trace_or_rest()
        self._watch()
        if self._steps in self._looks and self._affordable():
            began_s = thread_time()
            self._tracer.settle()
            objects_seen = self._probe()
            self._look_at_remade()
            self._tracer.resume()
            self._note_look(began_s, objects_seen)
        exact = self._growing.keys() & set(COUNTED_EXACTLY)
        if self._steps == probes.FROM_STEP["python.blocks"] and not (exact or self._are_held()):
            self._tracer.watch("python.blocks", sys.getallocatedblocks)

    def close(self) -> Findings:
        """End the window and return what it found."""
        self._tracer.stop()
        self._tracer.check()
        gc.collect()
        suspended: list[Any] = []
        try:
            with unobserved(), closing(self._heap()) as heap:
                suspended = heap.pick(SUSPENDABLE)
                return self._inquire(heap)
        finally:  # in the heap, the copies of locals that tracing made would be in use
            self._tracer.forget(suspended)

    def stop(self) -> None:
        """Trace no more lines, and let go of what was read along them."""
        self._tracer.stop()

    def abandon(self) -> None:
        """End the window without looking."""
        self._tracer.stop()
        with closing(Heap()) as heap:
            suspended = heap.pick(SUSPENDABLE)
        self._tracer.forget(suspended)

    def _inquire(self, heap: Heap) -> Findings:
        self._growth.look(self._steps, heap)
        self._look_at_remade()
        again = compiled.recompilation(self._compiled, compiled.times_compiled(), self._steps)
        known = (self._growing, self._apart_steps, again, self._remade)
        inquest = Inquest(self._tracer, self._growth, heap, *known)
        inquest.find(self._marks)
        leads, filling = inquest.leads, inquest.filling
        in_number = not self._growing.keys().isdisjoint(COUNTED_EXACTLY)
        if not (leads or filling.notices or in_number):  # of no tensors
            filling.note_libraries()
        notices = list(filling.notices)
        if notices:
            # what fills up may keep tensors in ways that are not seen, and has most of the blocks
            leads = [lead for lead in leads if not is_unheld(lead) and not is_minor(lead)]
        elif not leads and self._are_released(inquest):  # what is full now keeps past steps'
            notices = [RENEWED]
        has_leads = bool(leads)
        explained = any(lead.kind != "object" for lead in leads)  # not by a log beside it
        doubted = not explained and not notices and "tensors" in self._growing
        leads = [*leads, *(inquest.doubtful if doubted else ())]
        leads = self._with_counted(leads, alone=not leads and not notices)
        blocks = 0.0 if filling.notices else self._growing.get("python.blocks", 0.0)
        beyond = filling.beyond
        return Findings(
            suspects_from(as_counted(leads, self._growing), blocks),
            tuple(notices),
            self._steps,
            filling.full_in_steps,
            filling.bytes_per_step,
            keyed=inquest.keyed,
            memo=inquest.memo,
            has_leads=has_leads,
            shapes_vary=self._growth.shapes_vary,
            doubtful=doubted and bool(inquest.doubtful),
            grown={h: replace(one, beyond=beyond.get(h)) for h, one in inquest.grown.items()},
            uses=filling.uses,
            sources=inquest.sources,
            taken=inquest.taken,
            remade=inquest.remade,
        )

    def _are_released(self, inquest: Inquest) -> bool:
        graph_grows = "graph.nodes" in self._growing
        return inquest.renewed or (not graph_grows and inquest.tensors_are_released())

    def _with_counted(self, leads: list[Lead], *, alone: bool) -> list[Lead]:
        """Add the lines that add to what is only counted; `alone`: nothing else was found."""
        traced = (self._growing, self._tracer, self._steps)
        native = probes.native_beside(leads, *traced)
        of_heap = "python.blocks" not in probes.without_few_blocks(self._growing)
        if native or (of_heap and probes.are_too_small(leads, self._growing)):
            leads = native  # which may be none: a log of numbers is not what fills the heap
        else:
            leads = leads + probes.leads(*traced, alone)
        return exit_functions.held_by_exits(leads, self._tracer)

    def _trace_or_rest(self) -> None:
        """Trace the steps in which something is known to come, and none between."""
        if self._traced_steps < self._apart_steps:
            since = self._steps % round(self._apart_steps)
            if since == self._traced_steps:
                self._tracer.settle()
            elif since == 0:
                self._tracer.resume()

    def _look_at_remade(self) -> None:
        for each in self._remade.values():
            each.look(self._steps)

    def _note_look(self, began_s: float, objects_seen: int) -> None:
        self._looks_taken += 1
        self._looked_at += objects_seen
        self._looking_s += thread_time() - began_s

    def _affordable(self) -> bool:
        first = self._looks_taken < 2  # without it no container is known to grow
        of_one = self._looked_at / max(1, self._looks_taken)
        return first or self._looked_at + of_one <= MOST_LOOKED_AT

    def _are_held(self) -> bool:
        """Say whether the containers that grow may hold the blocks that are gained."""
        blocks = self._growing.get("python.blocks", 0.0) * self._steps
        return self._gained * MOST_BLOCKS_EACH >= blocks if blocks else bool(self._probed)

    def _mark(self) -> None:
        self._marks.append(graph.sequence_number())

    def _heap(self) -> Heap:
        heap = Heap()
        if "graph.nodes" in self._growing:  # the collector tracks them, and so what holds them
            return heap
        suspended = heap.pick(SUSPENDABLE)
        return heap.add_untracked(frames.local_values(suspended))

    def _watch(self) -> None:
        if compiled.is_in_use():
            self._tracer.watch(compiled.GRAPHS, compiled.graphs_made)
        for name in (*self._growing, HEAP, *devices_in_use()):
            due = probes.FROM_STEP.get(name, 0) == self._steps
            probe = probes.of_resource(name) if due else None
            if probe is not None:
                self._tracer.watch(name, probe)

    def _probe(self) -> int:
        """Look at the heap and return how many objects it had.

        It is gone when this returns: what it frees is no line's.
        """
        with unobserved(), closing(self._heap()) as heap:
            grown = self._growth.look(self._steps, heap)
            ours = objects.inside(self._tracer, self._growth, *objects.our_caches(heap))
            found = heap.containers(grown.keys() - self._probed - ours) if grown else []
            found.sort(key=lambda thing: -grown[id(thing)])
            # two dozen containers of libraries grow in many a program, buffers in few
            found = self._growth.buffers.in_place(heap.buffers) + found
            objects_seen = len(heap)
        for thing in found[: MOST_PROBES - len(self._probed)]:
            self._probed.add(id(thing))
            self._gained += grown.get(id(thing), 0)
            self._tracer.watch(str(id(thing)), probes.of_length(thing))
        return objects_seen


def _looks(apart_steps: float) -> tuple[int, ...]:
    """Look after additions that are far apart, not between: the budget is for few looks."""
    apart = math.ceil(apart_steps)
    return LOOKS if apart < FAR_APART_STEPS else (apart + 1, 2 * apart + 1)
