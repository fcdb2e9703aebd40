"""What grew between looks at the heap: containers, by length; tensors, by who outlives whom.

Only ids, lengths and weak references are kept between two looks.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import compress, pairwise, repeat
from operator import gt, lt
from typing import Any, NamedTuple

from leakcheck.runtime.attribution.moving import Moving
from leakcheck.runtime.introspection.buffers import Extended, far_apart
from leakcheck.runtime.introspection.corners import Corners, are_kept, corners_of
from leakcheck.runtime.introspection.marks import KnownBy, mark_of, may_be_same
from leakcheck.runtime.introspection.objects import Heap
from leakcheck.runtime.introspection.tables import Table, Tables
from leakcheck.runtime.introspection.tensors import element_bytes_of, form_of, numel_of, shape_of
from leakcheck.tracked import Referrers

FEWEST_ELEMENTS = 2
FEWEST_NEW_SHAPES = 2  # looks that found tensors of new shapes
FEWEST_SIZES = 3  # looks at which the largest tensor of a form was larger than before
GONE = -1  # shorter than any container
SETTLING_STEPS = 2  # of a window, in which what was made may rightly be alive


_Form = tuple[str, int]  # of a tensor: data type, number of dimensions


@dataclass(frozen=True, slots=True)
class Grower:
    """A container that grew between all looks; a live object, to be dropped soon.

    `known_again`: it may be one at all looks; if not, another had its id before.
    """

    container: Any
    length: int
    per_step: float
    known_again: bool = True


def referred_to(growers: list[Grower], most: int, referrers: Referrers) -> list[Grower]:
    """Return up to `most`, without what no object is known to hold: lists inside a StringIO."""
    containers = [one.container for one in growers]
    holders = referrers.of(containers) if len(containers) > most else []
    theirs = [one for one in holders if one is not containers and type(one) is not Grower]
    held = {id(part) for holder in theirs for part in gc.get_referents(holder)}
    known = [one for one in growers if id(one.container) in held] if holders else growers
    return known[:most]


def inside(parts: Sequence[Any], wanted: Set[int]) -> list[Any]:
    """Return what has one of the ids `wanted`, among some objects or in one of them."""
    in_parts = gc.get_referents(*filter(gc.is_tracked, parts))
    return [each for each in (*parts, *in_parts) if id(each) in wanted]


class Longer(NamedTuple):
    """What is larger at each look, and whether its elements were seen to be those of before."""

    thing: Any
    bytes_per_step: float
    was_read: bool = True  # not in a device's memory: to read it would wait for the device


def _largest(tensors: list[Any]) -> dict[_Form, Any]:
    found: dict[_Form, Any] = {}
    for tensor in tensors:
        form = form_of(tensor)
        # of a tensor and a view of it the view, which is made later, is the one with a name
        if form not in found or numel_of(tensor) >= numel_of(found[form]):
            found[form] = tensor
    return found


def _alive(born: list[list[weakref.ref[Any]]]) -> list[Any]:
    alive = [ref() for refs in born for ref in refs]
    return [tensor for tensor in alive if tensor is not None]


class HeapGrowth:
    """Compares looks at the heap, the first of them being the state before the window.

    `settling_steps`: what was made in so many of the newest may rightly be alive.
    """

    def __init__(self, settling_steps: int = SETTLING_STEPS) -> None:
        self._settling_steps = settling_steps
        self._steps: list[int] = []
        self._lengths: dict[int, int] = {}  # of what has not shrunk, at the newest look
        self._first: dict[int, int] = {}  # of what has grown, at the first
        self._grown: list[dict[int, int]] = []  # its lengths, a look each
        self._marks: dict[int, KnownBy] = {}  # of what has grown, at the newest look
        self._others: set[int] = set()  # of these, what was another container at some look
        self._counts: Counter[int] = Counter()
        self._known: dict[int, weakref.ref[Any]] = {}
        # of the largest tensors, a look each: the number of elements, and those at both ends
        self._largest: list[dict[_Form, tuple[int, Corners | None]]] = []
        self._shapes: set[tuple[int, ...]] = set()  # of all tensors so far
        self._new_shapes: list[int] = []  # a look each
        self.buffers = Extended()
        self._tables = Tables()
        self.moving = Moving()
        self._born: list[list[weakref.ref[Any]]] = []  # tensors first seen at each look

    def look(self, step: int, heap: Heap) -> dict[int, int]:
        """Take a look; returns how much each container has grown so far, by its id."""
        lengths = heap.lengths()
        if self._steps:
            shrunk = self._compare(lengths)
            self.moving.look(shrunk, heap)
            self._mark(heap)
        else:
            self._lengths, self._counts = lengths, heap.counts()
            self._tables.look(heap.tables())
        tensors = heap.tensors()
        self._note_births(tensors)
        shapes = set(map(shape_of, tensors))
        self._new_shapes.append(len(shapes - self._shapes))
        self._shapes |= shapes
        largest = _largest(tensors).items()
        self._largest.append({form: (numel_of(one), corners_of(one)) for form, one in largest})
        del largest
        self.buffers.look(step, heap.buffers)
        self._steps.append(step)
        newest = self._grown[-1] if self._grown else {}
        return {key: length - self._first[key] for key, length in newest.items()}

    def _compare(self, lengths: dict[int, int]) -> dict[int, int]:
        """Note what has grown; returns how much is left in what shrank, which is passed over now.

        What is new since the first look is held by something older. Without a line of ours for each
        of the containers: there may be a million.
        """
        past = self._lengths
        now = list(map(lengths.get, past, repeat(GONE)))
        shrunk = list(compress(past, map(gt, past.values(), now)))
        for key in compress(past, map(lt, past.values(), now)):
            self._first.setdefault(key, past[key])
            past[key] = lengths[key]
        for key in shrunk:
            del past[key]
            self._first.pop(key, None)
        self._grown.append({key: past[key] for key in self._first})
        return {key: lengths[key] for key in shrunk if key in lengths}

    def _mark(self, heap: Heap) -> None:
        """Note how what has grown is known again, and what is not what was noted before."""
        marks: dict[int, KnownBy] = {}
        for container in heap.containers(self._first.keys()) if self._first else ():
            key = id(container)
            if key in self._marks and not may_be_same(self._marks[key], container):
                self._others.add(key)
            marks[key] = mark_of(container)
        self._marks = marks

    def is_new(self, container: Any) -> bool:
        """Say whether a container was not there at the first look."""
        return id(container) not in self._lengths

    def growers(self, heap: Heap) -> list[Grower]:
        """Return the containers that never shrank and grew in both halves, the fastest first."""
        if len(self._grown) < 2:
            return []
        half = (self._steps[-1] + self._steps[0]) / 2
        middle = min(range(1, len(self._steps) - 1), key=lambda i: abs(self._steps[i] - half))
        early = self._grown[middle - 1]
        found = {
            key: length
            for key, length in self._grown[-1].items()
            if early.get(key, length) < length and length - self._first[key] >= FEWEST_ELEMENTS
        }
        growers = []
        for thing in heap.containers(found.keys()) if found else ():
            grown = found[id(thing)] - self._first[id(thing)]
            known = id(thing) not in self._others
            growers.append(Grower(thing, found[id(thing)], grown / self.steps, known))
        return sorted(growers, key=lambda grower: -grower.per_step)

    def survivors(self) -> list[Any]:
        """Return the living tensors that were born in the window, but for its newest steps."""
        return _alive(self._born[1 : self._settled + 1])

    def newest(self) -> list[Any]:
        """Return the living tensors that were born in the window's newest steps."""
        return _alive(self._born[self._settled + 1 :])

    def are_recent(self, survivors: list[Any]) -> bool:
        """Say whether none of these was born in the first half of the steps that count."""
        half = self._steps[0] + self.survivors_span_steps / 2
        early = sum(step <= half for step in self._steps)
        older = {id(tensor) for tensor in _alive(self._born[1:early])}
        return older.isdisjoint(map(id, survivors))

    @property
    def shapes_vary(self) -> bool:
        """Whether each look found tensors of shapes that none had found before, or several did.

        A curriculum has another length every twenty or thirty steps, and the first looks are near
        each other.
        """
        later = self._new_shapes[1:]
        return bool(later) and (all(later) or sum(map(bool, later)) >= FEWEST_NEW_SHAPES)

    @property
    def steps(self) -> int:
        """The number of steps between the first look and the last."""
        return self._steps[-1] - self._steps[0]

    @property
    def survivors_span_steps(self) -> int:
        """The number of steps in which `survivors` were born."""
        return self._steps[self._settled] - self._steps[0]

    @property
    def _settled(self) -> int:
        last = self._steps[-1] - self._settling_steps
        return max(i for i, step in enumerate(self._steps) if step <= last or i == 0)

    def tables(self, heap: Heap) -> list[Table]:
        """Return the tables made before they are filled, and filled since the first look."""
        return list(self._tables.filling(heap.tables(), self.steps)) if self.steps else []

    def extended(self, heap: Heap) -> list[Longer]:
        """Return tensors and buffers that stand for ever larger ones.

        `buffer = torch.cat([buffer, new])` keeps one tensor, and at each look it is larger. So is
        the output of ever larger batches, but that does not hold what it held before.
        """
        steps = self.steps if len(self._largest) >= FEWEST_SIZES else 0
        found, far = [], far_apart(self._steps) if steps else ()
        for form, tensor in _largest(heap.tensors()).items() if steps else ():
            looks = [look.get(form, (0, None)) for look in self._largest]
            sizes = [size for size, _ in looks]
            rises = all(sizes[now] > sizes[past] > 0 for past, now in pairwise(far))
            larger = rises and sizes == sorted(sizes)
            corners = [corners for _, corners in looks]
            if larger and are_kept(corners):
                per_step = (sizes[-1] - sizes[0]) / steps * element_bytes_of(tensor)
                found.append(Longer(tensor, per_step, was_read=any(corners)))
        return found + [Longer(*each) for each in self.buffers.growing(heap.buffers)]

    def growing_kinds(self, heap: Heap) -> list[tuple[type, int]]:
        """Return the types of which more objects live than at the first look, most first."""
        grown = [
            (heap.kinds[key], count - self._counts[key]) for key, count in heap.counts().items()
        ]
        return sorted((pair for pair in grown if pair[1] > 0), key=lambda pair: -pair[1])

    def _note_births(self, tensors: list[Any]) -> None:
        born = []
        for tensor in tensors:
            known = self._known.get(id(tensor))
            if known is None or known() is not tensor:
                self._known[id(tensor)] = reference = weakref.ref(tensor)
                born.append(reference)
        self._born.append(born)
