"""What the Nodes of the autograd graph keep alive in C++: saved tensors, variables, contexts.

The collector sees none of it. A tensor that was packed by hooks is passed over: to unpack it would
run the program's code, and the tensor itself is not what the Node keeps.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from leakcheck.runtime.introspection import graph
from leakcheck.runtime.introspection.kinds import bases_of, name_of, namespace_of

_RAW = "_raw_saved_"
_OF_FUNCTIONS = "_raw_saved_tensors"  # of those written in Python


@dataclass(frozen=True, slots=True)
class Saver:
    """The Node that keeps an object, by which of its slots, and a tensor that reaches the Node."""

    node: str
    slot: str
    reached_from: weakref.ref[Any]


def savers(tensors: list[Any]) -> dict[int, Saver]:
    """Map what the Nodes of the graphs of some tensors keep to those that keep it, by id.

    A Node written in Python is its own context, and is in the map with no slot.
    """
    found: dict[int, Saver] = {}
    for tensor, node in _nodes(tensors):
        name, begin = name_of(type(node)), weakref.ref(tensor)
        found.setdefault(id(node), Saver(name, "", begin))
        for slot, kept in _kept_by(node):
            if kept is not tensor:
                found.setdefault(id(kept), Saver(name, slot, begin))
    return found


def saver_where(tensors: list[Any], fits: Callable[[Any], bool]) -> Saver | None:
    """Return a Node of the graphs of some tensors that saved a tensor which fits."""
    for tensor, node in _nodes(tensors):
        for slot, kept in _kept_by(node):
            if fits(kept):
                return Saver(name_of(type(node)), slot, weakref.ref(tensor))
    return None


def _nodes(tensors: list[Any]) -> Iterator[tuple[Any, graph.Node]]:
    """Yield each Node of the graphs of some tensors once, with a tensor that reaches it."""
    passed: set[graph.Node] = set()
    for tensor, root in graph.grad_fns(tensors):
        if root not in passed:
            for node in graph.reachable([root]).keys() - passed:
                passed.add(node)
                yield tensor, node


def _kept_by(node: graph.Node) -> Iterator[tuple[str, Any]]:
    names = {name for base in bases_of(type(node)) for name in namespace_of(base)}
    if "variable" in names:
        yield "variable", node.variable
    for name in sorted(names):
        if name.startswith(_RAW):
            slot = "saved_tensors" if name == _OF_FUNCTIONS else name.removeprefix("_raw")
            yield from ((slot, each) for each in _tensors_in(node, name))


def _tensors_in(node: graph.Node, name: str) -> Iterator[Any]:
    try:
        raw = getattr(node, name)
        saved = raw if type(raw) in (list, tuple) else (raw,)
        unpacked = [each.data for each in saved or () if _is_plain(each)]
    except RuntimeError:  # freed by a backward, or changed in place since
        return
    yield from (tensor for tensor in unpacked if tensor is not None)


def _is_plain(saved: Any) -> bool:
    """Say whether no hook packed it; up to torch 2.10 or so there is no telling."""
    return hasattr(saved, "unpack_hook") and saved.unpack_hook is None
