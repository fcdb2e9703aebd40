"""A container is found again by its way: nothing refers to it, and no code of the program runs."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from enum import Enum
from types import ModuleType, SimpleNamespace

import pytest

from leakcheck.runtime.attribution.holders import Roots
from leakcheck.runtime.attribution.way import Way, way_of
from leakcheck.runtime.introspection.objects import Heap


class Slotted:
    __slots__ = ("kept",)


class Hostile:
    """Everything that could be asked of it fails."""

    def __init__(self):
        object.__setattr__(self, "kept", [])

    def __getattribute__(self, name):
        raise AssertionError(name)

    def __len__(self):
        raise AssertionError

    def __eq__(self, other):
        raise AssertionError

    __hash__ = None  # type: ignore[assignment]


class Own(list):
    def __len__(self):
        raise AssertionError

    def __getitem__(self, at):
        raise AssertionError


def way_to(wanted: int):
    """Return the way to the container with this id, which nothing here refers to."""
    heap = Heap()
    roots, target = Roots(heap), heap.containers({wanted})
    heap.close()
    chain = roots.chain_to(target.pop())
    return way_of(chain, len(chain.objects) - 1)


def hooked(kept):
    def hook():
        return kept

    return hook


MAKERS = {
    "local": lambda kept: kept,
    "attribute": lambda kept: SimpleNamespace(kept=kept),
    "key": lambda kept: {"kept": kept},
    "number": lambda kept: OrderedDict({3: kept}),
    "position": lambda kept: ([], (kept,)),
    "closure": hooked,
    "default": lambda kept: lambda given=kept: given,
}


@pytest.mark.parametrize("maker", MAKERS)
def test_a_container_is_found_again_by_names_keys_positions_and_cells(maker):
    kept = [1, 2]
    owner, wanted = MAKERS[maker](kept), id(kept)
    del kept

    assert way_to(wanted).length() == 2
    assert owner is not None


KINDS = ([[]], deque([[]]), {"a": []}, {(1,)}, OrderedDict(a=[]), defaultdict(list, a=[]))


@pytest.mark.parametrize("at", range(len(KINDS)))
def test_every_kind_of_container_has_a_length(at):
    owner = SimpleNamespace(kept=KINDS[at].copy())

    assert way_to(id(owner.kept)).length() == 1


def test_a_global_a_slot_and_a_class_attribute_are_found(monkeypatch):
    module = ModuleType("made_now")  # what was there before pytest froze it is in no heap
    exec("class Log:\n    kept = [1]\n\nkept = [1, 2]\n", module.__dict__)
    monkeypatch.setitem(sys.modules, "made_now", module)
    slotted = Slotted()
    slotted.kept = [1, 2, 3]

    assert way_to(id(module.Log.kept)).length() == 1
    assert way_to(id(module.kept)).length() == 2
    assert way_to(id(slotted.kept)).length() == 3


def test_no_code_of_the_program_runs():
    hostile = Hostile()
    own = Own([1, 2])

    assert way_to(id(object.__getattribute__(hostile, "kept"))).length() == 0
    assert way_to(id(own)).length() == 2


def test_what_takes_its_place_is_read_instead_and_nothing_if_it_has_no_length():
    owner = SimpleNamespace(kept=[1, 2])
    way = way_to(id(owner.kept))

    owner.kept = [1]
    assert way.length() == 1
    owner.kept = 5
    assert way.length() is None
    del owner.kept
    assert way.length() is None


class Stage(str, Enum):
    FIT = "fit"


class Watched:
    def __eq__(self, other):
        raise AssertionError("no code of the program runs")

    __hash__ = object.__hash__


@pytest.mark.parametrize("key", [Stage.FIT, Watched()], ids=["enumeration", "object"])
def test_an_entry_with_another_key_is_found_by_the_very_key(key):
    owner = SimpleNamespace(kept={key: [1, 2]})
    way = way_to(id(owner.kept[key]))

    assert way.length() == 2
    del owner.kept[key]
    assert (way.length(), way.length_at_end()) == (None, 0)


def test_an_entry_whose_key_is_gone_is_none():
    class Key:
        pass

    owner = SimpleNamespace(kept={Key(): [1, 2]})
    way = way_to(id(next(iter(owner.kept.values()))))
    assert way.length() == 2

    owner.kept.clear()
    owner.kept[Key()] = [3]
    assert way.length() is None


class Store:
    def __init__(self):
        self.kept = {0: [1, 2]}


def way_from_a_local() -> tuple[Store, Way]:
    store = Store()
    return store, way_to(id(store.kept[0]))


def test_what_its_holder_holds_no_more_is_empty_at_the_end_also_after_the_function():
    store, way = way_from_a_local()

    assert way.root.kind == "local"
    assert (way.length(), way.length_at_end()) == (None, 2)
    del store.kept[0]
    assert way.length_at_end() == 0
    store.kept = None
    assert way.length_at_end() == 0
    del store
    assert way.length_at_end() is None


def test_it_keeps_nothing_alive():
    class Kept(list):
        pass

    owner = SimpleNamespace(kept=Kept())
    known, way = weakref.ref(owner.kept), way_to(id(owner.kept))
    assert way is not None

    owner.kept = None
    gc.collect()

    assert known() is None
