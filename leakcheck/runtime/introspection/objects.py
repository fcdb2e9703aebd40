"""The Python heap: what is alive, of which kind, how long its containers are, what it weighs.

Foreign objects are only ever asked for their `type`: isinstance, ==, len() or an attribute of an
unknown class may run the program's own code.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from io import BytesIO, StringIO
from itertools import compress, filterfalse, repeat
from types import BuiltinMethodType, CellType, CodeType, FrameType, FunctionType, MethodType
from typing import Any

from leakcheck.runtime.introspection import frames
from leakcheck.runtime.introspection.buffers import Buffers, large, size_readers
from leakcheck.runtime.introspection.kinds import (
    ByKind,
    array_type,
    attribute_of_class,
    attributes_of,
    bases_of,
    derives_from,
    entries_of,
    is_of,
    module_of,
    name_of,
    namespace_of,
)
from leakcheck.runtime.introspection.tables import FEWEST_PLACES
from leakcheck.tracked import UNFINISHED, referents_but_for, sifted

LruCache = type(lru_cache(lambda: None))
# kind of container -> its length, read past any override of the program's
LENGTHS = ByKind[Callable[[Any], int]](
    {
        list: list.__len__,
        dict: dict.__len__,
        OrderedDict: dict.__len__,
        defaultdict: dict.__len__,
        set: set.__len__,
        deque: deque.__len__,
        LruCache: lambda cache: cache.cache_info().currsize,
    }
)
_SIMPLE = (len, None)
_FLAGS = type.__dict__["__flags__"].__get__
_HEAP_TYPE, _TYPE_SUBCLASS = 1 << 9, 1 << 31  # Py_TPFLAGS_*: made by a class statement; a class
_HOLDERS = ByKind(dict.fromkeys((dict, list, CellType)))
_FILES = (BytesIO, StringIO)  # that are kept in memory
_NOWHERE: deque[Any] = deque(maxlen=0)
_OF_NODES = ("next_functions", "_sequence_nr")
DEEPLY_WRAPPED = 100  # functions, of which more are not counted
# kinds that follow from others: what holds them is the lead
NO_LEADS = ByKind(
    dict.fromkeys(
        (tuple, FrameType, CellType, MethodType, BuiltinMethodType, CodeType, weakref.ref)
    )
)


def tensor_type() -> type | None:
    """Return torch.Tensor if the program has imported torch."""
    found: type | None = getattr(sys.modules.get("torch"), "Tensor", None)
    return found


def unobserved() -> AbstractContextManager[object]:
    """Return a context in which reading a tensor calls no `__torch_function__` of the program's."""
    core = getattr(sys.modules.get("torch"), "_C", None)
    context: AbstractContextManager[object] = getattr(core, "DisableTorchFunction", nullcontext)()
    return context


class Heap:
    """What the collector tracks at one moment, sorted by type; close it soon, it is all strong.

    It is in itself, so it would keep all until the next collection. Plain tuples and frozensets are
    not in it.
    """

    def __init__(self) -> None:
        nowhere = {id(kind): _NOWHERE for kind in UNFINISHED}
        alike = defaultdict[int, deque[Any]](deque, nowhere)

        def sort(things: Iterator[Any], same: Iterator[Any]) -> Iterable[None]:
            return map(deque.append, map(alike.__getitem__, map(id, map(type, things))), same)

        # 60 ms for 850,000, half of what a loop took; each search of them all takes 30
        sifted(sort, into=any)  # each append returns None
        found = ((key, list(things)) for key, things in alike.items() if things)
        self._alike = defaultdict[int, list[Any]](list, found)
        alike.clear()
        self.kinds: dict[int, type] = {key: type(each[0]) for key, each in self._alike.items()}
        self.buffers: Buffers = {}  # once `add_untracked` has looked for them
        self.around_buffers: dict[int, list[Any]] = {}  # by id, the untracked dictionaries

    def __len__(self) -> int:
        """Return how many objects there are."""
        return sum(map(len, self._alike.values()))

    def add_untracked(self, local_values: Iterable[Any]) -> Heap:
        """Add dictionaries and buffers that the collector passes over (90 ms); returns the heap.

        A cache of numbers, bytes or arrays is one up to CPython 3.13: nothing in it can be in a
        cycle. Those are found that a local, module, class, object, closure, list or other
        dictionary refers to.
        """
        # without a call of ours for each kind: while lines are traced each cost 20 us
        holders = {
            key
            for key, kind in self.kinds.items()
            if kind in _HOLDERS or _FLAGS(kind) & (_HEAP_TYPE | _TYPE_SUBCLASS) == _HEAP_TYPE
        }
        holders -= set(map(id, _FILES))  # they are the buffers, not the bytes seen inside from 3.12
        # an array refuses to be resized, as by another thread, while anyone else refers to it
        shared = {id(array_type())} if array_type() and frames.own_codes_elsewhere() else set[int]()
        parts = _parts_of(self.pick(holders), shared)
        parts.extend(each for each in local_values if id(type(each)) not in shared)
        untracked = list(filterfalse(gc.is_tracked, parts))
        parts.clear()
        wanted = {id(kind) for kind in (dict, *size_readers()) if id(kind) not in shared}
        found = _by_kind(untracked, wanted)
        for kind in _FILES:  # tracked, and held by files of C's
            found[kind] = self._alike.get(id(kind), [])
        dictionaries = list({id(part): part for part in found.pop(dict, ())}.values())
        self._alike[id(dict)] += dictionaries
        self.kinds[id(dict)] = dict
        self.buffers = large(found)
        self._add_inner(dictionaries, wanted - {id(dict)}, shared)
        return self

    def _add_inner(self, dictionaries: list[Any], wanted: Set[int], shared: Set[int]) -> None:
        """Add the buffers in dictionaries that the collector passes over (15 ms)."""
        inner = large(_by_kind(_parts_of(dictionaries, shared), wanted))
        self.buffers |= inner
        for names in dictionaries if inner else ():
            for key in inner.keys() & set(map(id, _parts_of([names], shared))):
                self.around_buffers.setdefault(key, []).append(names)

    def close(self) -> None:
        """Let go of every object."""
        self._alike.clear()
        self.buffers.clear()
        self.around_buffers.clear()

    def pick(self, kinds: Set[int]) -> list[Any]:
        """Return the objects whose type has one of these ids."""
        return [thing for kind in kinds for thing in self._alike.get(kind, ())]

    def sort(self, *tests: Callable[[type], bool]) -> list[list[Any]]:
        """Return the objects whose type passes each test."""
        passed = [{key for key, kind in self.kinds.items() if test(kind)} for test in tests]
        return [self.pick(keys) for keys in passed]

    def containers(self, ids: Set[int]) -> list[Any]:
        """Return the containers with these ids."""
        containers = self.pick({key for key, kind in self.kinds.items() if length_reader(kind)})
        return list(compress(containers, map(ids.__contains__, map(id, containers))))

    def counts(self) -> Counter[int]:
        """Return how many objects of each type there are, by the type's id."""
        return Counter({key: len(alike) for key, alike in self._alike.items()})

    def tensors(self) -> list[Any]:
        """Return the tensors; none if the program has not imported torch."""
        return self.sort(is_tensor)[0]

    def nodes(self) -> list[Any]:
        """Return the graph Nodes that Python objects refer to."""
        return self.sort(is_node)[0]

    def tables(self) -> list[Any]:
        """Return what may be made before it is filled: long lists, and arrays of any size."""
        lists = self._alike.get(id(list), [])
        long = compress(lists, map(FEWEST_PLACES.__le__, map(len, lists)))  # of 260,000 a few
        return [*long, *(thing for thing, _ in self.buffers.values())]

    def lengths(self) -> dict[int, int]:
        """Return id -> length of every container (30 ms for 290,000 objects)."""
        readers = {key: length_reader(kind) for key, kind in self.kinds.items()}
        plain = self.pick({key for key, reader in readers.items() if reader is len})
        found = dict(zip(map(id, plain), map(len, plain), strict=True))
        for thing in self.pick({key for key, reader in readers.items() if reader not in _SIMPLE}):
            found[id(thing)] = readers[id(type(thing))](thing)  # type: ignore[misc]
        return found


def is_ours(kind: type) -> bool:
    """Say whether a class is leakcheck's own."""
    return module_of(kind).startswith("leakcheck.")


def _is_ours(thing: Any) -> bool:
    return type(thing) is FunctionType and _is_made_by_us(thing)


def _is_made_by_us(function: Any) -> bool:
    module = function.__module__
    return type(module) is str and module.startswith("leakcheck.")


def our_caches(heap: Heap) -> list[Any]:
    """Return the lru_caches of leakcheck's own functions."""
    return [each for each in heap.pick({id(LruCache)}) if _is_made_by_us(each)]


def inside(*observers: object) -> set[int]:
    """Return the ids of what leakcheck itself keeps while it looks, two levels deep."""
    values = [*observers, *(value for each in observers for value in vars(each).values())]
    return {id(part) for part in (*values, *gc.get_referents(*values))}


class Sieve:
    """Finds the living objects of wanted kinds, again and again, in one pass over the heap.

    Kinds once found to be unwanted are passed over without a call (55 ms for 290,000 objects, of
    which listing them takes 20). They are known by id, as their hash may be the program's code, and
    only weakly: another kind may come to have the id of one that died. Without a callback, which
    would be three blocks a kind that count as the program's.
    """

    def __init__(self, *tests: Callable[[type], bool]) -> None:
        self._tests = tests
        self._unwanted = dict.fromkeys(map(id, UNFINISHED), False)  # id of a kind -> False
        self._known: dict[int, weakref.ref[type]] = {}

    def sort(self) -> list[list[Any]]:
        """Return the objects whose type passes each test."""
        for key in [key for key, kind in self._known.items() if kind() is None]:
            del self._known[key], self._unwanted[key]
        found = sifted(self._pass_over)
        kinds = dict(zip(map(id, map(type, found)), map(type, found), strict=True))
        passed = [{key for key, kind in kinds.items() if test(kind)} for test in self._tests]
        wanted = set().union(*passed)
        if not _torch_is_being_imported():  # until then a kind's bases may not be known
            for key in kinds.keys() - wanted:
                self._unwanted[key], self._known[key] = False, weakref.ref(kinds[key])
        sought = list(compress(found, map(wanted.__contains__, map(id, map(type, found)))))
        found.clear()  # of the first time: it may be one of its own objects
        return [[thing for thing in sought if id(type(thing)) in each] for each in passed]

    def _pass_over(self, things: Iterator[Any], same: Iterator[Any]) -> Iterable[Any]:
        keys = map(id, map(type, same))  # kept in a list they took 30 ms more
        return compress(things, map(self._unwanted.get, keys, repeat(True)))


def _torch_is_being_imported() -> bool:
    return bool(getattr(getattr(sys.modules.get("torch"), "__spec__", None), "_initializing", True))


def length_reader(kind: type) -> Callable[[Any], int] | None:
    """Return how to read the length of a container of this kind, None for other objects.

    It is `len` unless the kind has a `__len__` of its own: that is the program's code.
    """
    bases = bases_of(kind)
    base = next((base for base in bases if base in LENGTHS), None)
    if base is None:
        return None
    namesake = next((each for each in bases if "__len__" in namespace_of(each)), None)
    return len if namesake is not None and namesake in LENGTHS else LENGTHS.get(base)


def length_of(container: Any) -> int:
    """Return the length of a container, read past any override of the program's."""
    return (length_reader(type(container)) or len)(container)


def content_reader(kind: type) -> Callable[[Any], int] | None:
    """Return how to read how much is in a container or a buffer, None for other objects."""
    return ByKind(size_readers()).get(kind) or length_reader(kind)


def is_tensor(kind: type) -> bool:
    """Say whether a type is a tensor's; False as long as the program has not imported torch."""
    tensor = tensor_type()
    return tensor is not None and issubclass(kind, tensor)


def is_node(kind: type) -> bool:
    """Say whether a type is that of graph Nodes as Python sees them."""
    name = name_of(kind)
    if not name.endswith("Backward") and not name[-1:].isdigit():
        return False
    found = {part for base in bases_of(kind) for part in _OF_NODES if part in namespace_of(base)}
    return len(found) == len(_OF_NODES)


def limit_of(container: Any) -> int | None:
    """Return the most a container holds (deque maxlen, lru_cache maxsize), None if unlimited."""
    if is_of(container, deque):
        return deque.maxlen.__get__(container)  # type: ignore[no-any-return]
    if type(container) is LruCache:
        limit: int | None = container.cache_info().maxsize
        return limit
    return None


def capacity_of(owner: Any, container: Any) -> int | None:
    """Return how much an object keeps at most in a container of its own, None if it doesn't say.

    A dataset of torch's keeps one of each sample that it reads, by index; a queue, a handler of
    logging's that collects records and a temporary file that begins in memory know their sizes, as
    does an optimizer that keeps a history.
    """
    kind = type(container)
    for module, name, kept_in, capacity in _CAPACITIES:
        cls = getattr(sys.modules.get(module), name, None)
        if cls is not None and derives_from(type(owner), cls) and issubclass(kind, kept_in):
            try:
                limit = capacity(owner) or None
                return limit if kept_in is not dict or _is_by_index(container, limit) else None
            except Exception:  # an iterable dataset, or one not yet set up
                return None
    return None


def _is_by_index(kept: dict[Any, Any], limit: int | None) -> bool:
    """Say whether every key is an index below a limit: of (index, seed) there is no end."""
    return all(type(key) is int and 0 <= key < (limit or 0) for key in list(dict.keys(kept)))


def length_of_dataset(dataset: Any) -> int:
    """Return the length of a dataset, 0 if it takes a method of the user's to say it."""
    method = attribute_of_class(type(dataset), "__len__")
    own = type(method) is FunctionType and frames.is_own(method.__code__.co_filename)
    return 0 if own else len(dataset)


def _attribute(name: str) -> Callable[[Any], int]:
    def read(owner: Any) -> int:
        value = attributes_of(owner).get(name)
        return max(0, value) if type(value) is int else 0

    return read


def _history_size(optimizer: Any) -> int:
    """Read how many steps LBFGS keeps of its past, in three lists for the first parameter."""
    groups = attributes_of(optimizer).get("param_groups")
    first = next(iter(groups), None) if type(groups) is list else None
    size = first.get("history_size") if type(first) is dict else None
    return max(0, size) if type(size) is int else 0


_CAPACITIES: tuple[tuple[str, str, type, Callable[[Any], int]], ...] = (
    ("torch.utils.data", "Dataset", dict, length_of_dataset),
    ("queue", "Queue", deque, _attribute("maxsize")),
    ("asyncio", "Queue", deque, _attribute("_maxsize")),
    ("logging.handlers", "BufferingHandler", list, _attribute("capacity")),
    ("torch.optim.lbfgs", "LBFGS", list, _history_size),
    ("tempfile", "SpooledTemporaryFile", BytesIO, _attribute("_max_size")),
    ("tempfile", "SpooledTemporaryFile", StringIO, _attribute("_max_size")),
)


def _parts_of(holders: list[Any], shared: Set[int]) -> list[Any]:
    """Return what some objects refer to, but for what is of the types with these ids."""
    return referents_but_for(shared, holders) if shared else gc.get_referents(*holders)


def _by_kind(things: list[Any], wanted: Set[int]) -> defaultdict[type, list[Any]]:
    """Sort those whose type has one of these ids."""
    found: defaultdict[type, list[Any]] = defaultdict(list)
    for thing in compress(things, map(wanted.__contains__, map(id, map(type, things)))):
        found[type(thing)].append(thing)
    return found


def elements_of(container: Any) -> list[Any]:
    """Return the elements of a list or a set, of a dictionary the keys; none of another kind."""
    kind = next((kind for kind in (list, dict, set) if is_of(container, kind)), None)
    if kind is dict:
        return list(dict.keys(container))
    return list(kind.__iter__(container)) if kind is not None else []


def newest(container: Any, count: int) -> list[Any]:
    """Return up to `count` of the elements added last, in their order; any ones of a set."""
    if type(container) is LruCache:
        entries = (part for part in gc.get_referents(container) if type(part) is dict and part)
        return newest(next(entries, {}), count)
    if is_of(container, dict):
        return [part for entry in entries_of(container)[-count:] for part in entry]
    if is_of(container, list):
        return list.__getitem__(container, slice(-count, None))
    kind = set if is_of(container, set) else deque
    return list(kind.__iter__(container))[-count:]


def first_held(alike: list[Any]) -> Any:
    """Return one of the objects that none of the others holds: the head of a list linked by hand.

    One of the last if there is no such object, or all are such: the very last may be in use.
    """
    parts = gc.get_referents(*alike)
    # thousands of functions share the names of a module
    inside = {id(part): part for part in parts if type(part) is dict}.values()
    closures = gc.get_referents(*(part for part in parts if type(part) is tuple))
    cells = (part for part in closures if type(part) is CellType)
    held = {id(part) for part in (*parts, *gc.get_referents(*inside), *gc.get_referents(*cells))}
    heads = [thing for thing in alike if id(thing) not in held and not _is_ours(thing)] or alike
    if type(heads[0]) is FunctionType:  # there are thousands, and few are wrapped so often
        deepest = max(heads, key=_wraps)
        return deepest if _wraps(deepest) > 1 else heads[-2:][0]
    return heads[-2:][0]


def _wraps(function: FunctionType) -> int:
    """Count the functions inside one another through closures, up to a few."""
    depth, inner = 0, [function]
    while inner and depth < DEEPLY_WRAPPED:
        cells = inner[0].__closure__ or ()
        contents = gc.get_referents(*cells)
        inner = [each for each in contents if type(each) is FunctionType]
        depth += bool(inner)
    return depth


def all_weak(things: list[Any]) -> bool:
    """Say whether objects are weak references, or numbers and text that are keys to such."""
    kinds = [kind for kind in map(type, things) if kind is not int and kind is not str]
    return bool(kinds) and all(issubclass(kind, weakref.ref) for kind in kinds)
