"""The short window opened when something grows: which lines make it, and who holds what they made.

From `open` to `close` the user's lines are traced, the heap is looked at a few times, and every
step boundary is marked. `close` compares the looks, walks the graph made in between, and follows
references back to a root. The heap is searched with the collector's own tables; everything live is
dropped before `close` returns.
"""

from __future__ import annotations

import gc
from array import array
from collections import Counter
from time import perf_counter
from typing import Any

from leakcheck.model import Kind, Link, Notice, Suspect
from leakcheck.runtime import graph, objects, probes
from leakcheck.runtime.growth import Grower, Growth
from leakcheck.runtime.holders import Roots
from leakcheck.runtime.lines import LineTracer
from leakcheck.runtime.retention import Keepers, keepers
from leakcheck.runtime.suspects import Lead, suspects_from
from leakcheck.runtime.trace import OUTSIDE, Told, describe, tell
from leakcheck.units import format_count

LOOKS = (4, 8, 16, 32, 64, 128)  # steps after `open` at which the heap is looked at again
SEARCH_S = 1.2  # for all the searches for holders together
MOST_LEADS = 6
MOST_PROBES = 16
NEWEST = 8  # elements weighed to estimate what one costs


class Window:
    """One attribution window; `growing` names the resources known to grow, e.g. "threads"."""

    def __init__(self, growing: tuple[str, ...] = ()) -> None:
        self._growing = growing
        self._tracer = LineTracer()
        self._growth = Growth()
        self._marks = array("Q")
        self._step = 0
        self._probed: set[int] = set()

    def open(self) -> None:
        """Begin at a step boundary (60-100 ms)."""
        self._growth.look(0, gc.get_objects())
        self._mark()
        if self._tracer.start():
            for name in (*self._growing, "host.heap"):
                probe = probes.of_resource(name)
                if probe is not None:
                    self._tracer.watch(name, probe)

    def step(self) -> None:
        """Note a step boundary; at a few of them the heap is looked at (60-100 ms)."""
        self._step += 1
        self._mark()
        if self._step in LOOKS:
            self._probe(gc.get_objects())

    def close(self) -> tuple[tuple[Suspect, ...], tuple[Notice, ...]]:
        """End the window and return what grows, who holds it, and what only fills up."""
        self._tracer.stop()
        gc.collect()
        alive = gc.get_objects()
        self._growth.look(self._step, alive)
        self._tracer.forget(alive)
        inquest = Inquest(self._tracer, self._growth, self._step, alive)
        inquest.find(self._marks)
        if not inquest.leads and not inquest.notices:
            inquest.leads.extend(probes.leads(self._growing, self._tracer, self._step))
        return suspects_from(inquest.leads), tuple(inquest.notices)

    def _mark(self) -> None:
        self._marks.append(graph.sequence_number())

    def _probe(self, alive: list[Any]) -> None:
        grown = self._growth.look(self._step, alive) - self._probed
        if not grown or len(self._probed) >= MOST_PROBES:
            return
        kinds = objects.container_kinds(alive)
        for thing in alive:
            if id(thing) in grown and len(self._probed) < MOST_PROBES:
                self._probed.add(id(thing))
                self._tracer.watch(str(id(thing)), probes.of_length(thing, kinds[id(type(thing))]))


class Inquest:
    """The search at the end of a window, over the heap as it is at that moment."""

    def __init__(self, tracer: LineTracer, growth: Growth, steps: int, alive: list[Any]) -> None:
        self.leads: list[Lead] = []
        self.notices: list[Notice] = []
        self._tracer = tracer
        self._growth = growth
        self._steps = steps
        self._alive = alive
        self._roots = Roots(alive)
        self._growers = growth.growers(alive)[:MOST_PROBES]
        self._growing = {id(grower.container) for grower in self._growers}
        self._until_s = perf_counter() + SEARCH_S

    def find(self, marks: array[int]) -> None:
        """Follow up graphs, tensors and containers, in this order."""
        tensors, held = objects.tensors_and_nodes(self._alive)
        pairs = [*graph.grad_fns(tensors), *((node, node) for node in held)]
        groups = keepers(pairs, marks, self._tracer.made_by)
        kept = {id(each) for group in groups for each in (*group.tensors, *group.inner)}
        del tensors, held, pairs
        self._alive.clear()
        for group in groups[:MOST_LEADS]:
            self.leads.append(self._graph_lead(group))
        del groups
        self._tensor_leads(kept)
        for grower in self._growers[:MOST_PROBES]:
            self._container_lead(grower)

    def _told(self, target: Any) -> tuple[Told, Counter[Any]]:
        """Tell who holds `target`, and which lines add to the containers on the way."""
        chain = self._roots.chain_to(target, self._until_s)
        lines: Counter[Any] = Counter()
        for holder in chain.objects:
            if id(holder) in self._growing:
                lines = self._tracer.credits.get(str(id(holder)), Counter())
        return tell(chain, self._growing), lines

    def _graph_lead(self, group: Keepers) -> Lead:
        middle = group.tensors[len(group.tensors) // 2]
        told, lines = self._told(middle)
        for other in (*group.tensors[:2], *group.inner[:4]):
            if told.trace.root != OUTSIDE:
                break
            told, lines = self._told(other)
        names = ", ".join(name for name, _ in group.names.most_common(4))
        made_at = Counter({group.site: group.nodes}) if group.site else Counter()
        return Lead(
            kind="graph",
            what=f"{describe(middle)}, keeping Nodes of past steps: {names}",
            told=told,
            lines=lines,
            made_at=made_at,
            objects_per_step=group.nodes_per_step,
            scalar=_is_scalar(middle),
            evidence=f"{format_count(group.nodes_per_step)} Nodes of every past step are alive",
        )

    def _tensor_leads(self, explained: set[int]) -> None:
        span = self._growth.survivors_span_steps
        kinds: dict[str, list[Any]] = {}
        for tensor in self._growth.survivors():
            if id(tensor) not in explained:
                kinds.setdefault(describe(tensor), []).append(tensor)
        ranked = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
        for what, tensors in ranked[:MOST_LEADS]:
            if len(tensors) < 2:
                continue
            told, lines = self._told(tensors[len(tensors) // 2])
            bytes_each = objects.weigh_bytes(tensors[:1])
            per_step = len(tensors) / span
            self.leads.append(
                Lead("tensor", what, told, lines, Counter(), per_step, per_step * bytes_each)
            )

    def _container_lead(self, grower: Grower) -> None:
        container = grower.container
        told, _ = self._told(container)
        if told.trace.root == OUTSIDE:
            return
        elements = objects.newest(container, NEWEST)
        limit = objects.limit_of(container)
        if limit is not None:
            self.notices.append(_filling(told, grower, limit))
            return
        lines = self._tracer.credits.get(str(id(container)), Counter())
        what = f"{type(container).__name__} of {describe(elements[-1])}" if elements else ""
        kind: Kind = "tensor" if _has_tensor(elements) else "object"
        weighed = objects.weigh_bytes(elements) / max(1, min(NEWEST, grower.length))
        element = Link("[x]", describe(elements[-1]), suspect=True) if elements else None
        told = told.extended(element)
        per_step = grower.per_step
        self.leads.append(Lead(kind, what, told, lines, Counter(), per_step, per_step * weighed))


def _filling(told: Told, grower: Grower, limit: int) -> Notice:
    left = max(0, limit - grower.length)
    steps = round(left / grower.per_step) if grower.per_step else 0
    return Notice(
        "bounded",
        f"{told.holder} holds {grower.length} of at most {limit} and is full in {steps} steps",
    )


def _has_tensor(elements: list[Any]) -> bool:
    reached = [*elements, *(part for each in elements for part in gc.get_referents(each))]
    return bool(objects.tensors_and_nodes(reached)[0])


def _is_scalar(thing: Any) -> bool:
    tensor = objects.tensor_type()
    return tensor is not None and issubclass(type(thing), tensor) and thing.numel() == 1
