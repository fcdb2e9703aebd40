"""The autograd graph that is alive now: how many Nodes, how old, and who reaches them.

A Node's sequence number grows with each Node its thread makes, so the counter read at every step
boundary dates a Node to its step; AccumulateGrad nodes read 2**64 - 1 and have no date. Python
sees a Node through a wrapper that lives only while it is looked at (1.5-3 us a Node), so the
functions here return numbers, or wrappers that the caller must drop at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

UNDATED = 1 << 63  # AccumulateGrad reads 2**64 - 1
MOST_REACHED = 100_000  # Nodes, on the way to one that is old
Node = Any  # torch.autograd.graph.Node, of a torch that may not be there


def sequence_number() -> int:
    """Return the number the calling thread's next Node gets; 0 where torch cannot say."""
    return sequence_reader()()


def sequence_reader() -> Callable[[], int]:
    """Return the function that reads the number, to call it often (0.04 us)."""
    autograd = getattr(sys.modules.get("torch"), "autograd", None)
    reader: Callable[[], int] = getattr(autograd, "_get_sequence_nr", lambda: 0)
    return reader


def grad_fns(tensors: Iterable[Any]) -> Iterator[tuple[Any, Node]]:
    """Pair each tensor that has one with its grad_fn, past every __torch_function__.

    The grad_fn of a view is rebuilt as it is read, and cannot be if the view was made invalid by
    an in-place change: such a tensor is left out.
    """
    torch = sys.modules["torch"]
    read = torch._C.TensorBase.grad_fn.__get__
    with torch._C.DisableTorchFunction():
        for tensor in tensors:
            try:
                node = read(tensor)
            except RuntimeError:
                continue
            if node is not None:
                yield tensor, node


def attached(nodes: Iterable[Node]) -> list[Node]:
    """Return the Nodes that are part of a graph still.

    The ctx of a custom Function is a Node; one that outlives its graph cannot be asked for
    anything in torch 2.11, and can in 2.13.
    """
    return [node for node in nodes if _is_attached(node)]


def _is_attached(node: Node) -> bool:
    try:
        node._sequence_nr()
    except RuntimeError:
        return False
    return True


def reachable(roots: Iterable[Node], *, since: int = 0, limit: int = 1 << 20) -> dict[Node, int]:
    """Return the Nodes reachable from `roots` with their sequence numbers, newest branches first.

    A Node's inputs are older than itself: with `since`, the walk ends at Nodes made before that
    number, and Nodes without a date are left out. At most `limit` Nodes are visited.
    """
    found: dict[Node, int] = {}
    stack = list(roots)
    while stack and len(found) < limit:
        node = stack.pop()
        if node in found:
            continue
        number = node._sequence_nr()
        if since and (number < since or number >= UNDATED):
            continue
        found[node] = number
        stack.extend([parent for parent, _ in node.next_functions if parent is not None])
    return found


def reaches(root: Node, before: int) -> bool:
    """Say whether a Node made before the number `before` can be reached from `root`."""
    seen: set[Node] = set()
    stack = [root]
    while stack and len(seen) < MOST_REACHED:
        node = stack.pop()
        if node in seen:
            continue
        number = node._sequence_nr()
        if number >= UNDATED:
            continue
        if number < before:
            return True
        seen.add(node)
        stack.extend([parent for parent, _ in node.next_functions if parent is not None])
    return False
