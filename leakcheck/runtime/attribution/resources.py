"""What stands for child processes, threads, files or shared memory is told as these, each once.

A list of Popen objects is found as a list of objects, and the line that starts the children by
their number: who reads the report minds the processes, and wants the line and the holder.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from leakcheck.model import Kind
from leakcheck.runtime.attribution.probes import WHAT
from leakcheck.runtime.attribution.suspects import Lead
from leakcheck.runtime.attribution.trace import OUTSIDE
from leakcheck.runtime.introspection.kinds import derives_from
from leakcheck.runtime.introspection.objects import is_tensor
from leakcheck.runtime.introspection.tensors import is_shared

# a child has pipes, a pool of children has threads, and a block its file: those come later
_CLASSES: dict[Kind, tuple[tuple[str, str], ...]] = {
    "processes": (("subprocess", "Popen"), ("multiprocessing.process", "BaseProcess")),
    "threads": (("threading", "Thread"),),
    "shared-memory": (("multiprocessing.shared_memory", "SharedMemory"),),
    "descriptors": (
        ("_socket", "socket"),
        ("_io", "FileIO"),
        ("select", "epoll"),
        ("mmap", "mmap"),
        ("selectors", "_BaseSelectorImpl"),
    ),
}
_RUNNING = "threading._active"  # where threads that run are filed
DEEPEST = 4  # from an executor through its dictionary to the set of its threads
MOST_PARTS = 200  # of one object that are looked at
_OWNERS: dict[Kind, tuple[Kind, ...]] = {  # whose they may be
    "threads": ("processes",),
    "descriptors": ("processes", "shared-memory"),
}
MOST_EACH = 8  # descriptors or threads that belong to one
AS_MANY = 0.1  # apart, for two rates to be one leak's


def resources_in(things: Iterable[Any]) -> frozenset[Kind]:
    """Return what most of these objects are, or have one of their own inside."""
    things = list(things)
    found: dict[Kind, set[int]] = {kind: set() for kind in _CLASSES}
    # one that a worker of a DataLoader sent keeps the descriptor that it came with
    found["descriptors"] |= {id(one) for one in things if is_tensor(type(one)) and is_shared(one)}
    for part in (part for thing in things for part in _parts(thing)):
        for kind, ids in found.items():
            if _is_of(type(part), kind):
                ids.add(id(part))
    # of a dictionary the things are keys and values
    return frozenset(kind for kind, ids in found.items() if 2 * len(ids) >= len(things) > 0)


def as_counted(leads: Iterable[Lead], growing: Mapping[str, float]) -> list[Lead]:
    """Tell leads as what they stand for if that grows, by `growing`, and join line and holder."""
    told = [_as_owners(_named(lead, growing), growing) for lead in leads]
    if "threads" in growing and any(lead.kind == "threads" for lead in told):
        told = [lead for lead in told if not _is_of_threads(lead)]
    with_tensors = any(lead.kind == "tensor" and "descriptors" in lead.resources for lead in told)
    if with_tensors:
        told = [lead for lead in told if lead.kind != "descriptors" or lead.told.holder]
    for kind in _CLASSES:
        held = [lead for lead in told if lead.kind == kind and lead.told.holder]
        added = [lead for lead in told if lead.kind == kind and not lead.told.holder]
        for lead in added[1:]:  # what belongs to them, beside them
            told.remove(lead)
        if added and len(held) == 1:
            told[told.index(held[0])] = _joined(added[0], held[0])
            told.remove(added[0])
    return told


def _is_of_threads(lead: Lead) -> bool:
    """Say whether it is what running threads work with: it goes when they end."""
    start, trace = lead.told.holder.start, lead.told.trace
    running = start.kind == "global" and start.qualified == _RUNNING
    of_each = running and lead.kind != "threads" and any(one.suspect for one in trace.links[:1])
    return trace.root == OUTSIDE or of_each


def _named(lead: Lead, growing: Mapping[str, float]) -> Lead:
    if lead.kind != "object" or not lead.told.holder or lead.told.library:
        return lead
    kinds = (kind for kind in _CLASSES if kind in growing and kind in lead.resources)
    return replace(lead, kind=next(kinds, lead.kind))


def _as_owners(lead: Lead, growing: Mapping[str, float]) -> Lead:
    """Tell what descriptors or threads belong to instead, if they are as many as its would be."""
    for owner in () if lead.told.holder else _OWNERS.get(lead.kind, ()):
        count = growing.get(owner, 0.0)
        each = growing.get(lead.kind, 0.0) / count if count else 0.0
        if 1 <= round(each) <= MOST_EACH and abs(each - round(each)) <= AS_MANY:
            return replace(lead, kind=owner, what=WHAT[owner], objects_per_step=count)
    return lead


def _joined(added: Lead, held: Lead) -> Lead:
    """Join a line that adds to a counter with the objects that are held: the same things."""
    made_at = held.lines + held.made_at
    count = added.objects_per_step
    return replace(held, lines=added.lines, made_at=made_at, objects_per_step=count)


def _parts(thing: Any) -> list[Any]:
    """Return an object and what it holds, a few levels deep; not what all programs share."""
    seen = {id(thing)}
    level, parts = [thing], [thing]
    for _ in range(DEEPEST - 1):
        held = gc.get_referents(*(part for part in level if not _is_shared(part)))
        level = [part for part in held if id(part) not in seen][: MOST_PARTS - len(parts)]
        seen.update(map(id, level))
        parts += level
    return parts


def _is_of(cls: type, kind: Kind) -> bool:
    bases = (getattr(sys.modules.get(module), name, None) for module, name in _CLASSES[kind])
    return any(base is not None and derives_from(cls, base) for base in bases)


def _is_shared(thing: Any) -> bool:
    return issubclass(type(thing), (type, type(sys), type(_is_of)))
