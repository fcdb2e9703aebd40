"""Exact counts, taken rarely: live tensors, Nodes of past steps, and how old the oldest Node is.

The heap tells which objects are tensors, the graph is walked from them. Nodes of the newest step
are not counted: where the sequences grow longer, as in a curriculum, each step has more of them.
Nothing but numbers is kept between two counts: a prototype that kept the last tensors leaked 0.1
Node a step by itself.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

from leakcheck.runtime.introspection import graph, objects
from leakcheck.runtime.introspection.hooks import count_hooks
from leakcheck.runtime.readings.categories import (
    has_pool,
    is_module,
    is_optimizer,
    read_categories,
)

MOST_NODES = 1 << 19  # walked in about a second; a graph this large counts as that many Nodes
MOST_MARKS = 4096
_COUNTED = (objects.is_tensor, objects.is_node, is_module, is_optimizer, has_pool)


@dataclass(frozen=True, slots=True)
class Counts:
    """What is alive at one moment."""

    tensors: int = 0
    graph_nodes: int = 0  # of past steps
    newest_nodes: int = 0  # of the newest
    oldest_node_age_steps: int | None = None
    hooks: int = 0
    pools: int = 0  # CUDA graphs and pools of memory
    categories: dict[str, int] = field(default_factory=dict)  # bytes, as `read_categories` has them


class Census:
    """Dates Nodes to steps, and counts what is alive."""

    def __init__(self) -> None:
        self._sieve = objects.Sieve(*_COUNTED)
        self._next = 0
        self._stride = 1
        self._marks = 0
        self._steps = array("Q", bytes(8 * MOST_MARKS))  # at full size: growing shows in the heap
        self._numbers = array("Q", bytes(8 * MOST_MARKS))
        self._newest = (0, 0)  # the numbers of the Nodes that the newest step made

    def boundary(self, step: int) -> None:
        """Note that the Nodes made from now on belong to the step after `step` (0.3 us)."""
        number = graph.sequence_number()
        self._newest = (self._newest[1] or number, number)
        if step >= self._next:
            self._steps[self._marks] = step
            self._numbers[self._marks] = number
            self._marks += 1
            if self._marks == MOST_MARKS:
                self._thin()
            self._next = step + self._stride

    def take(self, step: int, totals: dict[str, int] | None = None) -> Counts:
        """Count tensors and Nodes (20-60 ms).

        With `totals`, the bytes allocated by place, tensors are also told by category.
        """
        tensors, held, modules, optimizers, with_pools = self._sieve.sort()
        held = graph.attached(held)
        categories = read_categories(tensors, modules, optimizers, totals) if totals else {}
        hooks = count_hooks(modules, optimizers, tensors)
        pools = len(with_pools)
        del modules, optimizers, with_pools
        if not tensors and not held:
            return Counts(hooks=hooks, pools=pools)
        roots = [node for _, node in graph.grad_fns(tensors)]
        nodes = graph.reachable([*roots, *held], limit=MOST_NODES)
        oldest = min(nodes.values(), default=graph.UNDATED)
        first, last = self._newest
        newest = sum(first <= number < last for number in nodes.values())
        return Counts(
            tensors=len(tensors),
            graph_nodes=len(nodes) - newest,
            newest_nodes=newest,
            oldest_node_age_steps=self._age_steps(step, oldest),
            hooks=hooks,
            pools=pools,
            categories=categories,
        )

    def _age_steps(self, step: int, number: int) -> int | None:
        if number >= graph.UNDATED or not self._marks:
            return None
        made = bisect_right(self._numbers, number, 0, self._marks) - 1
        return step - self._steps[max(0, made)]

    def _thin(self) -> None:
        self._marks //= 2
        for marks in (self._steps, self._numbers):
            for mark in range(self._marks):
                marks[mark] = marks[2 * mark]
        self._stride *= 2
