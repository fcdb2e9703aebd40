"""From inside a chain that is linked by hand to its head, without a search of the heap a link.

Each level outwards takes a search; a batch in a chain of closures, each with the one before, may be
a hundred levels away from what holds the newest.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from types import FrameType, FunctionType, ModuleType
from typing import Any

from leakcheck.runtime.introspection import objects
from leakcheck.tracked import of_kinds

WIDEST = 8  # objects at one level: more are no chain
FARTHEST = 20_000  # objects
CLIMB_PASSES = 40  # over the heap for a single object take as long
MOST_ATTRIBUTES = 64  # of a link


def climb(level: list[Any], seen: dict[int, Any], holds: dict[int, int]) -> list[Any]:
    """Follow holders of the kinds in `seen` outwards at once; returns what was found, heads last.

    `seen` and `holds` (the id of a holder -> of what it holds) come to know what is on the way.
    """
    kinds = {id(type(thing)) for thing in seen.values()}
    kinds -= {id(kind) for kind in (dict, *_frames(seen))}
    if len(level) > WIDEST:
        return level
    holders = _holders_of(kinds)
    heads: list[Any] = []
    passed: list[Any] = []
    front = level
    while front and len(seen) < FARTHEST:
        following: list[Any] = []
        for thing in front:
            new = [each for each in holders.get(id(thing), ()) if id(each) not in seen]
            for holder in new:
                seen[id(holder)], holds[id(holder)] = holder, id(thing)
            following += new
            if not new:
                heads.append(thing)
        passed += following
        front = following
    return [*passed, *heads][-FARTHEST:] if heads else level


def links_of(head: Any, enough: int) -> int:
    """Count the objects of the same type that `head` reaches through what only it may hold."""
    seen, count = {id(head)}, 0
    front = [head]
    while front and count < enough and len(seen) < FARTHEST:
        shared = {id(each.__globals__) for each in front if type(each) is FunctionType}
        parts = gc.get_referents(*front)
        front = []
        for part in parts:
            if id(part) in seen or id(part) in shared or issubclass(type(part), (type, ModuleType)):
                continue
            seen.add(id(part))
            count += type(part) is type(head)
            front.append(part)
    return count


def _holders_of(kinds: set[int]) -> dict[int, list[Any]]:
    """Return, by the id of each object of these kinds, those that hold it."""
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for holder in of_kinds(kinds):
        if not objects.is_ours(type(holder)):
            for part in gc.get_referents(holder):
                if id(type(part)) in kinds:
                    found[id(part)].append(holder)
                elif type(part) is dict and len(part) <= MOST_ATTRIBUTES:
                    _note_attributes(found, part, holder, kinds)
    return found


def _note_attributes(
    found: dict[int, list[Any]], namespace: dict[Any, Any], holder: Any, kinds: set[int]
) -> None:
    """Note what an object holds by a dictionary of attributes: who asks for one has it made."""
    linked = [each for each in namespace.values() if id(type(each)) in kinds]
    for each in linked:
        found[id(each)].append(namespace)
    if linked:
        found[id(namespace)].append(holder)


def _frames(seen: dict[int, Any]) -> set[type]:
    """Return the kinds that hold what is no link: lists, and frames with whatever they name."""
    return {
        type(thing)
        for thing in seen.values()
        if objects.length_reader(type(thing)) is not None or type(thing) is FrameType
    }
