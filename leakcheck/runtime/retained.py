"""What keeps objects that should be gone: the references from a root, past C++ where they lead.

They are known by weak references only, and looked at without a call into the program. What Python's
own references do not explain is looked for in the graph: tensors that a Node saved, the context of
a Function, hooks on Nodes. What holds itself alone is a cycle.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from types import FrameType
from typing import Any

from leakcheck.model import Holder, LeakTrace, Link, Retained, RetainedBy
from leakcheck.runtime.attribution.hidden import storage_start
from leakcheck.runtime.attribution.holders import DEEPEST, Chain, Roots
from leakcheck.runtime.attribution.trace import OUTSIDE, TABLE_OF_HOOKS, Told, describe, tell
from leakcheck.runtime.introspection import frames, hooks, objects
from leakcheck.runtime.introspection.kinds import attributes_of, derives_from, is_of, name_of
from leakcheck.runtime.introspection.saved import Saver, saver_where, savers

MOST_SEARCHED = 20  # objects, the first ones
MOST_ABOVE = 300  # objects that lead to one without a root
WIDEST = 20  # a level: to ask who refers to so many takes as many times as long
_MODULE_TABLES = ("_parameters", "_buffers")
_ROOTS: dict[str, RetainedBy] = {
    "local": "local",
    "global": "global",
    "module": "global",
    "class": "class attribute",
    "class attribute": "class attribute",
    "context variable": "context variable",
}


def parts_of(thing: Any) -> Iterator[Any]:
    """Yield the tensors that belong to a module of torch's, as its own tables have them."""
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    if module is None or not derives_from(type(thing), module):
        return
    waiting, seen = [thing], set[int]()
    while waiting:
        attributes = attributes_of(waiting.pop())
        for table in (attributes.get(name) for name in _MODULE_TABLES):
            yield from (each for each in _values(table) if each is not None)
        inner = [each for each in _values(attributes.get("_modules")) if id(each) not in seen]
        inner = [each for each in inner if each is not None]
        seen.update(map(id, inner))
        waiting += inner


def _values(table: Any) -> list[Any]:
    return list(dict.values(table)) if is_of(table, dict) else []


class Memory:
    """The memory of one tensor, known by a weak reference of C++'s."""

    def __init__(self, storage: Any, address: int, what: str) -> None:
        self.address, self.what = address, what
        self._kind = type(storage)
        self._weak = storage._weak_ref()

    @property
    def is_kept(self) -> bool:
        """Whether anything has it still."""
        return not self._kind._expired(self._weak)

    def __del__(self) -> None:
        self._kind._free_weak_ref(self._weak)


def memory_of(thing: Any) -> Memory | None:
    """Return the memory of a tensor, None of other objects and of tensors without any."""
    begin = storage_start(thing) if objects.is_tensor(type(thing)) else 0
    if not begin:
        return None
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        storage = torch._C.TensorBase.untyped_storage(thing)
    return Memory(storage, begin, describe(thing))


def explain(alive: Sequence[weakref.ref[Any]], left: Sequence[Memory] = ()) -> tuple[Retained, ...]:
    """Say what keeps each object that is alive still, and the memory that is `left` of tensors.

    Those kept by the same are told as one.
    """
    with closing(objects.Heap()) as heap:
        roots = Roots(heap)
    explained = [_explained(reference, roots) for reference in alive[:MOST_SEARCHED]]
    explained += [_explained_memory(memory, roots) for memory in left[:MOST_SEARCHED]]
    found: dict[tuple[object, ...], Retained] = {}
    for told in filter(None, explained):
        edges = tuple(link.edge for link in told.trace.links)
        key = (told.by, told.trace.root, edges)
        known = found.get(key)
        found[key] = replace(known, also=known.also + 1) if known else told
    return tuple(found.values())


def _tensors() -> list[Any]:
    with closing(objects.Heap()) as heap:
        return heap.tensors()


def _explained_memory(memory: Memory, roots: Roots) -> Retained:
    """Tell of a view of the memory, or of a Node that saved a tensor in it."""
    tensors = _tensors()

    def fits(tensor: Any) -> bool:
        return bool(storage_start(tensor) == memory.address)

    view = next(filter(fits, tensors), None)
    saver = saver_where(tensors, fits) if view is None else None
    tensors.clear()
    if saver is not None:
        return replace(_by_saver(view, saver, [], roots), what=memory.what)
    if view is None:
        return Retained(memory.what, "outside", Holder("outside"), LeakTrace(OUTSIDE))
    told = tell(roots.chain_to(view), frozenset())
    return Retained(memory.what, "memory", told.holder, told.trace, node=describe(view))


def _explained(reference: weakref.ref[Any], roots: Roots) -> Retained | None:
    target = reference()
    if target is None:
        return None
    chain = roots.chain_to(target)
    if chain.root is None:
        if len(chain.objects) > 1 and hooks.is_table(chain.objects[0]):
            return _by_graph_hook(target, chain.objects)
        del chain  # it refers to what is looked for
        return _unrooted(target, roots)
    told = tell(chain, frozenset())
    return Retained(describe(target), _by(chain, told), told.holder, told.trace)


def _by(chain: Chain, told: Told) -> RetainedBy:
    """Say in which way a chain from a root holds its end: the part of it that is to be mended."""
    if any(type(thing) is FrameType for thing in chain.objects):
        return "exception"
    if any(type(thing) is objects.LruCache for thing in chain.objects):
        return "memo"
    if any(link.edge.endswith("_hooks") for link in told.trace.links):
        return "hook"
    if told.holder.kind == "closure":
        return "closure"
    if chain.root is not None and chain.root.kind == "local" and chain.root.kept:
        return "suspended"
    return _ROOTS.get(told.holder.start.kind, "outside")


class _Above:
    """What leads to an object that no root of Python's leads to; all strong, drop it soon."""

    def __init__(self, target: Any, roots: Roots) -> None:
        self.held = {id(target): target}
        self._leads_to: dict[int, int] = {}
        self.tops: list[Any] = []
        self.closes: Any = None  # what the target leads to and refers to it: a cycle
        self._climb(target, roots)

    def path_from(self, thing: Any) -> list[Any]:
        """Return the references from an object down to the target."""
        path = [thing]
        while id(path[-1]) in self._leads_to:
            path.append(self.held[self._leads_to[id(path[-1])]])
        return path

    def _climb(self, target: Any, roots: Roots) -> None:
        level = [target]
        for _ in range(DEEPEST):
            skipped = {*roots.referrers.ids, *map(id, (self.held, self._leads_to, self.tops))}
            skipped.add(id(level))
            inside = {id(thing) for thing in level}
            above: list[Any] = []
            led_to: set[int] = set()
            for holder in roots.referrers.of(level):
                if id(holder) in skipped or _is_no_lead(holder):
                    continue
                parts = {id(part) for part in gc.get_referents(holder)} & inside
                led_to |= parts
                if holder is target and parts and self.closes is None:
                    self.closes = self.held[min(parts)]
                if parts and id(holder) not in self.held:
                    self.held[id(holder)], self._leads_to[id(holder)] = holder, min(parts)
                    above.append(holder)
            self.tops += [thing for thing in level if id(thing) not in led_to]
            if not above or len(self.held) > MOST_ABOVE:
                return
            level = above[:WIDEST]


def _is_no_lead(holder: Any) -> bool:
    """Say whether a holder is leakcheck's, or runs: its locals are roots already."""
    if type(holder) is FrameType:
        return any(holder is each for each in frames.stack())
    return objects.is_ours(type(holder))


def _unrooted(target: Any, roots: Roots) -> Retained:
    above = _Above(target, roots)
    raised = next((top for top in above.tops if is_of(top, BaseException)), None)
    if raised is not None:  # the interpreter has it, while it is handled
        told = tell(Chain(None, above.path_from(raised)), frozenset())
        trace = replace(told.trace, root=f"the {name_of(type(raised))} that is being handled")
        return Retained(describe(target), "exception", told.holder.root or Holder(), trace)
    tensors = _tensors()
    saving = savers(tensors)
    tensors.clear()
    for thing in above.held.values():
        if id(thing) in saving:
            return _by_saver(target, saving[id(thing)], above.path_from(thing), roots)
    if above.closes is not None:
        told = tell(Chain(None, [target, *above.path_from(above.closes)]), frozenset())
        holder = told.holder.root or Holder()
        return Retained(describe(target), "cycle", holder, replace(told.trace, root="itself"))
    told = tell(Chain(None, [target]), frozenset())
    threads = frames.own_functions_elsewhere()
    return Retained(describe(target), "outside", told.holder, told.trace, threads=threads)


def _by_graph_hook(target: Any, path: list[Any]) -> Retained:
    told = tell(Chain(None, path), frozenset())
    holder = Holder("closure", _name_of_hook(path[1])) if len(path) > 1 else Holder()
    trace = LeakTrace(TABLE_OF_HOOKS, told.trace.links)
    node = _hooked_node(target)
    return Retained(describe(target), "graph hook", holder, trace, node=node)


def _name_of_hook(hook: Any) -> str:
    """Return the name of a hook and where it is defined."""
    function = hooks.function_of(hook)
    if function is None:
        return name_of(type(hook))
    code = function.__code__
    return f"{code.co_name}() at {frames.shown(code.co_filename)}:{code.co_firstlineno}"


def _hooked_node(target: Any) -> str:
    """Name the Node through whose hooks an object keeps itself: of a tensor that it holds."""
    from leakcheck.runtime.introspection.graph import grad_fns

    parts = gc.get_referents(target)
    parts += gc.get_referents(*(part for part in parts if type(part) is dict))
    tensors = [part for part in parts if objects.is_tensor(type(part))]
    names = {name_of(type(node)) for _, node in grad_fns(tensors)} if tensors else set()
    return names.pop() if len(names) == 1 else ""


def _by_saver(target: Any, saver: Saver, path: list[Any], roots: Roots) -> Retained:
    tensor = saver.reached_from()
    slot = f".grad_fn ... {saver.node}" + (f".{saver.slot}" if saver.slot else "")
    reached = Link(slot, describe(path[0]) if path else "its memory")
    below = tell(Chain(None, path), frozenset()).trace.links if path else ()
    if tensor is None:
        trace, holder = LeakTrace("the autograd graph", (reached, *below)), Holder()
    else:
        chain = roots.chain_to(tensor)
        told = tell(chain, frozenset())
        links = (*told.trace.links, reached, *below)
        trace, holder = replace(told.trace, links=links), told.holder
    return Retained(describe(target), "saved tensor", holder, trace, node=saver.node)
