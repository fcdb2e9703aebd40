"""Threads that make and drop all kinds of objects while the heap is looked at over and over.

`python tests/benchmarks/harm/stress.py [--seconds 600 | --looks 100]` prints how many looks were
taken, what the threads did meanwhile and every error, and exits 1 if there was one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import threading
import time
import traceback
import weakref
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, make_dataclass
from itertools import count, cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

import torch

from leakcheck import tracked
from leakcheck.runtime.attribution.growth import HeapGrowth
from leakcheck.runtime.attribution.holders import Roots
from leakcheck.runtime.attribution.window import Window
from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.objects import Heap, Sieve, is_node, is_tensor, unobserved

SWITCH_INTERVALS_S = (0.005, 0.0005, 0.00002)
WINDOW_STEPS = 14  # the heap is looked at twice between the ends of a window
MOST_TOLD = 20
SIEVE = Sieve(is_tensor, is_node)  # it remembers kinds from look to look
SUSPENDABLE = {id(kind) for kind in frames.SUSPENDABLE}
Pair = namedtuple("Pair", "left right")


def expect(got: object, wanted: object) -> None:
    """Raise if a value is not as it must be."""
    if got != wanted:
        raise AssertionError(f"{got!r:.200} is not {wanted!r:.200}")


# What the threads do: each function is a round that is over in a millisecond or so.


def parts(number: int) -> Iterator[tuple[int, list[int]]]:
    for i in range(number):
        yield i, [i]


def make_tuples() -> None:
    whole = tuple(parts(200))
    expect(len(whole), 200)
    expect(tuple(part for part in whole if part[0] % 3)[-1], (199, [199]))
    expect(len(whole + whole[5:]), 395)
    first, *rest = whole
    expect((first, len(tuple(rest))), ((0, [0]), 199))
    expect(tuple(map(len, zip(*whole, strict=True))), (200, 200))
    expect(Pair(*whole[:2]).right, (1, [1]))


def make_sets_and_text() -> None:
    expect(len(frozenset(i % 50 for i, _ in parts(150))), 50)
    expect(len({frozenset((i,)) for i, _ in parts(60)} | {1, 2}), 62)
    expect(",".join(str(i) for i, _ in parts(40)).count(","), 39)
    expect(len(b"".join(bytes((i,)) for i, _ in parts(90))), 90)


def make_tables() -> None:
    table = dict(parts(300))
    table.update((i, (i,)) for i, _ in parts(40))
    expect((len(table), table[39], table[40]), (300, (39,), [40]))
    for key in list(table)[::2]:
        del table[key]
    order, groups = OrderedDict(table), defaultdict(list)
    for key, value in table.items():
        groups[key % 7].append(value)
        order.move_to_end(key)
    expect((len(order), sum(map(len, groups.values()))), (150, 150))
    last = deque((value for value in table.values()), maxlen=9)
    last.extend(parts(5))
    expect((len(last), last[-1]), (9, (4, [4])))


def make_closures() -> None:
    total, calls = 0, []

    def add(number: int) -> Callable[[], int]:
        nonlocal total
        total += number
        calls.append(lambda: total + number)
        return calls[-1]

    for number in range(60):
        expect(add(number)(), number * (number + 1) // 2 + number)
    expect([call() for call in calls[:2]], [1770, 1771])


def make_generators() -> None:
    alive = [parts(30) for _ in range(20)]
    for number, each in enumerate(alive):
        for _ in range(number):
            next(each)
    expect([next(each)[0] for each in alive], list(range(20)))
    for each in alive[::2]:
        each.close()
    expect(sum(1 for each in alive for _ in each), sum(29 - n for n in range(1, 20, 2)))


async def _numbers() -> object:
    for number in range(20):
        await asyncio.sleep(0)
        yield number


async def _gathered() -> list[int]:
    async def total() -> int:
        return sum([number async for number in _numbers()])

    return list(await asyncio.gather(total(), total()))


def make_coroutines() -> None:
    expect(asyncio.run(_gathered()), [190, 190])


def _deeper(depth: int, *values: object) -> int:
    kept = {"depth": depth, "values": (*values, depth)}
    if not depth:
        raise LookupError(len(kept["values"]))
    try:
        return _deeper(depth - 1, *kept["values"])
    finally:
        expect(kept["depth"], depth)


def _error_from(depth: int) -> LookupError:
    try:
        _deeper(depth)
    except LookupError as error:
        return error
    raise AssertionError("no error was raised")


def make_frames_and_errors() -> None:
    kept = [_error_from(depth) for depth in range(12)]
    expect([each.args[0] for each in kept], list(range(1, 13)))
    expect(len(traceback.extract_tb(kept[-1].__traceback__)), 13)
    expect(sys._getframe().f_code.co_name, "make_frames_and_errors")
    for each in kept:
        traceback.clear_frames(each.__traceback__)


class Meta(type):
    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> type:
        return super().__new__(cls, name, bases, {**namespace, "made": True})


def make_classes() -> None:
    for number in range(4):
        base = Meta(f"Base{number}", (), {"__slots__": ("value", "__weakref__")})
        derived = Meta(f"Derived{number}", (base,), {"say": lambda self: self.value})
        thing = derived()
        thing.value = thing.again = number
        expect((thing.say(), vars(thing)["again"], derived.made), (number, number, True))
        expect(weakref.ref(thing)().value, number)
        expect(list(base.__subclasses__()), [derived])
        data = make_dataclass("Data", [("left", int), ("right", list, field(default_factory=list))])
        expect(data(number), data(number))
        expect(Pair._make((number, [number]))._replace(left=0), (0, [number]))


class Linked(list):
    """A list that is in itself."""

    def __init__(self, number: int) -> None:
        super().__init__([self])
        self.me, self.number = self, number


def make_cycles_and_weak_references() -> None:
    alive = [Linked(number) for number in range(40)]
    table = weakref.WeakValueDictionary({each.number: each for each in alive})
    expect(sorted(each.number for each in table.values()), list(range(40)))


def make_graphs() -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * 2).pow(2).sum()
    loss.backward()
    expect(weight.grad.tolist(), [8.0, 8.0, 8.0])


THREADS = {
    "tuples": (make_tuples, make_sets_and_text),
    "tables": (make_tables, make_closures, make_graphs),
    "generators": (make_generators, make_coroutines, make_frames_and_errors),
    "classes": (make_classes, make_cycles_and_weak_references, make_tuples),
}


# How the heap is looked at.


def look_at_heap(kept: list[object]) -> None:
    with unobserved(), closing(Heap()) as heap:
        suspended = heap.pick(SUSPENDABLE)
        heap.add_untracked(frames.local_values(suspended))
        expect(len(heap) == sum(heap.counts().values()), True)
        lengths = heap.lengths()
        expect(lengths[id(kept)], len(kept))
        expect(heap.containers({id(kept)}), [kept])
        heap.tensors(), heap.nodes(), heap.tables()


def look_for_holders(kept: list[object]) -> None:
    with unobserved(), closing(Heap()) as heap:
        roots = Roots(heap)
        chain = roots.chain_to(kept[0], {id(kept)})
    expect((chain.root.name, chain.root.own), ("kept", True))


def look_at_names(kept: list[object]) -> None:
    suspended = tracked.instances(*frames.SUSPENDABLE)
    expect(frames.named_values(suspended)[id(kept)].name, "kept")


def look_by_kind(kept: list[object]) -> None:
    expect(any(each is kept for each in tracked.instances(list)), True)
    expect(any(each is kept for each in tracked.of_kinds({id(list), id(tuple)})), True)
    expect(any(each is kept for each in tracked.Referrers().of([kept[0]])), True)
    expect(len(tracked.referents_of_all()) > 1000, True)


def look_through_sieve(kept: list[object]) -> None:
    tensors, nodes = SIEVE.sort()
    expect(any(each is kept[0] for each in tensors), True)
    expect(len(nodes) < 10_000, True)


def compare_looks(kept: list[object]) -> None:
    growth = HeapGrowth()
    for step in range(2):
        kept.append(torch.zeros(1))
        with unobserved(), closing(Heap()) as heap:
            growth.look(step, heap)
    del kept[1:]


def open_window(kept: list[object]) -> None:
    """Trace lines and look at the heap, as is done of a training that leaks."""
    window = Window({"tensors": 1.0})
    window.open()
    for _ in range(WINDOW_STEPS):
        kept.append(torch.zeros(1))
        window.step()
    suspects = window.close().suspects
    expect([suspect.kind for suspect in suspects][:1], ["tensor"])
    del kept[1:]


LOOKS = (
    look_at_heap,
    look_for_holders,
    look_at_names,
    look_by_kind,
    look_through_sieve,
    compare_looks,
    open_window,
)


@dataclass
class Tally:
    """What was done and what went wrong, by who did it."""

    looks: Counter[str] = field(default_factory=Counter)
    rounds: Counter[str] = field(default_factory=Counter)
    collections: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    looking: str = ""  # how the heap is being looked at

    def note_error(self, who: str) -> None:
        """Count the exception being handled, with where it was raised."""
        last = traceback.format_exc().splitlines()
        place = next((line.strip() for line in reversed(last) if line.startswith("  File")), "")
        self.errors[f"{who} during {self.looking}: {last[-1]:.300} ({place})"] += 1

    def listen(self, phase: str, _: dict[str, int]) -> None:
        """Count collections, as the collector's other listeners do."""
        self.collections[phase] += 1


def work(who: str, tally: Tally, stop: threading.Event) -> None:
    """Do a thread's rounds until told to stop."""
    for make in cycle(THREADS[who]):
        if stop.is_set():
            return
        try:
            make()
        except BaseException:
            tally.note_error(make.__name__)
        tally.rounds[who] += 1


def look(tally: Tally, seconds: float, most: int) -> None:
    """Look at the heap in every way, over and over."""
    until_s = time.monotonic() + seconds
    intervals = cycle(SWITCH_INTERVALS_S)
    kept: list[object] = [torch.zeros(3)]
    for number in count():
        if number == most or time.monotonic() > until_s:
            return
        if number % len(LOOKS) == 0:
            sys.setswitchinterval(next(intervals))
        each = LOOKS[number % len(LOOKS)]
        tally.looking = each.__name__
        try:
            each(kept)
        except BaseException:
            tally.note_error(each.__name__)
            del kept[1:]
        tally.looks[each.__name__] += 1


def stress(seconds: float, most: int) -> Tally:
    """Look at the heap for so long, or so often, beside the threads."""
    tally, stop = Tally(), threading.Event()
    gc.callbacks.append(tally.listen)
    threads = [threading.Thread(target=work, args=(who, tally, stop)) for who in THREADS]
    for thread in threads:
        thread.start()
    look(tally, seconds, most)
    stop.set()
    for thread in threads:
        thread.join()
    gc.callbacks.remove(tally.listen)
    return tally


def main() -> int:
    """Stress, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--looks", type=int, default=-1, help="end after so many")
    options = parser.parse_args()
    tally = stress(options.seconds, options.looks)
    print(f"Python {sys.version.split()[0]}: {tally.looks.total()} looks, {dict(tally.looks)}")
    print(f"{tally.rounds.total()} rounds of the threads, {dict(tally.rounds)}")
    print(f"collections {dict(tally.collections)}")
    print(f"{tally.errors.total()} errors")
    for told, times in tally.errors.most_common(MOST_TOLD):
        print(f"{times} x {told}")
    return int(bool(tally.errors))


if __name__ == "__main__":
    sys.exit(main())
