"""Which tensors keep the Nodes of past steps alive, told apart from those that merely reach them.

`total += loss; mean = total / n` leaves two tensors that reach every past Node. Only `total` is at
fault: of its line a Node of every past step is alive, of the line of `mean` only the newest. So a
tensor is a keeper if Nodes made where its own was made recur among the survivors. The newest
keepers are asked first, and each Node is credited to the first that reaches it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from leakcheck.runtime.attribution.growth import SETTLING_STEPS
from leakcheck.runtime.introspection import graph
from leakcheck.runtime.introspection.frames import Site
from leakcheck.runtime.introspection.objects import is_node

_Key = tuple[Site | None, str]


@dataclass(slots=True)
class Keepers:
    """Tensors made by one line that keep Nodes alive; live objects, to be dropped soon."""

    site: Site | None
    tensors: list[Any] = field(default_factory=list)
    inner: list[Any] = field(default_factory=list)  # reached from `tensors`, newest first
    nodes: int = 0
    oldest: int = graph.UNDATED
    nodes_per_step: float = 0.0
    names: Counter[str] = field(default_factory=Counter)
    reaches_back: bool = False  # one of `tensors` alone, to Nodes from well before the window


def keepers(
    pairs: list[tuple[Any, graph.Node]],
    marks: Sequence[int],
    made_by: Callable[[int], Site | None],
) -> list[Keepers]:
    """Group the tensors that keep Nodes of past steps alive, those with most Nodes first.

    `pairs`: tensors with their grad_fn; `marks`: the sequence number at each step boundary.
    """
    steps = len(marks) - 1 - SETTLING_STEPS
    if steps < 2:
        return []
    begin, end = marks[0], marks[steps]
    dated = [(node._sequence_nr(), tensor, node) for tensor, node in pairs]
    dated = [each for each in dated if begin <= each[0] < graph.UNDATED]
    dated.sort(key=lambda each: -each[0])
    numbers = graph.reachable([node for _, _, node in dated], since=begin)
    recurring = _recurring(numbers, marks[: steps + 1], made_by)
    found: dict[_Key, Keepers] = {}
    owner: dict[graph.Node, Keepers] = {}
    for number, tensor, node in dated:
        key = (made_by(number), node.name())
        if node in owner:
            owner[node].inner.append(tensor)
        elif key in recurring:
            group = found.setdefault(key, Keepers(key[0]))
            _credit(group, tensor, node, end, owner, numbers)
    groups = [group for group in found.values() if _is_old(group, marks, steps)]
    for group in groups:
        group.nodes_per_step = group.nodes / steps
        group.reaches_back = _reaches_back(group, marks)
    return sorted(groups, key=lambda group: -group.nodes)


def _is_old(group: Keepers, marks: Sequence[int], steps: int) -> bool:
    """Say whether a group keeps Nodes for longer than truncated backpropagation does.

    It must hold a Node of the window's first third; a single tensor, which may be a hidden state
    in the middle of a stretch, one that was made a window's length before the window as well.
    """
    if group.oldest >= marks[max(1, steps // 3)]:
        return False
    return len(group.tensors) > 1 or 2 * marks[0] <= marks[-1] or _reaches_back(group, marks)


def _reaches_back(group: Keepers, marks: Sequence[int]) -> bool:
    before = max(0, 2 * marks[0] - marks[-1])
    kept_nodes = [thing for thing in group.tensors if is_node(type(thing))]  # such as a ctx
    tensors = [thing for thing in group.tensors if not is_node(type(thing))]
    nodes = [*kept_nodes, *(node for _, node in graph.grad_fns(tensors))]
    return any(graph.reaches(node, before) for node in nodes)


def _credit(
    group: Keepers,
    tensor: Any,
    node: graph.Node,
    end: int,
    owner: dict[graph.Node, Keepers],
    numbers: dict[graph.Node, int],
) -> None:
    reached = _unowned(node, owner, numbers)
    survivors = [each for each in reached if numbers[each] < end]
    if not survivors:  # only its own step's: every program has such
        return
    for each in reached:
        owner[each] = group
    group.tensors.append(tensor)
    group.nodes += len(survivors)
    group.oldest = min(group.oldest, *(numbers[each] for each in survivors), graph.UNDATED)
    group.names.update(each.name() for each in survivors)


def _unowned(
    root: graph.Node, owner: dict[graph.Node, Keepers], numbers: dict[graph.Node, int]
) -> list[graph.Node]:
    reached: dict[graph.Node, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node in reached or node in owner or node not in numbers:
            continue
        reached[node] = None
        stack.extend([parent for parent, _ in node.next_functions if parent is not None])
    return list(reached)


def _recurring(
    numbers: dict[graph.Node, int],
    marks: Sequence[int],
    made_by: Callable[[int], Site | None],
) -> set[_Key]:
    steps_of: dict[_Key, set[int]] = {}
    for node, number in numbers.items():
        if number < marks[-1]:
            key = (made_by(number), node.name())
            steps_of.setdefault(key, set()).add(bisect_right(marks, number))
    return {key for key, steps in steps_of.items() if len(steps) >= 2}
