"""The heap is searched, and who holds what is told, without a line of the program's being run."""

from __future__ import annotations

import sys
import types
from collections import OrderedDict, defaultdict, deque

import pytest
import torch

from leakcheck.runtime.attribution.window import Window
from leakcheck.runtime.readings.census import Census

STEPS = 24
_LEFT_ALONE = {"__new__", "__init__", "__init_subclass__", "__class_getitem__", "__subclasshook__"}
_LEFT_ALONE |= {"__dict__", "__weakref__", "__doc__", "__module__", "__slots__", "__class__"}
_LEFT_ALONE |= {"__qualname__", "__annotations__", "__reduce__", "__reduce_ex__", "__mro__"}
_MORE = ("__bool__", "__len__", "__getattr__", "__iter__", "__next__", "__contains__", "__index__")
_MORE += ("__getitem__", "__int__", "__float__", "__call__", "__length_hint__", "__fspath__")

called: list[str] = []


def _trap(name, plain):
    """A special method that notes who calls it from inside leakcheck, and fails there."""

    def method(self, *args, **named):
        frame = sys._getframe(1)
        while frame is not None:
            if "/leakcheck/" in frame.f_code.co_filename:
                called.append(f"{name} by {frame.f_code.co_name}, line {frame.f_lineno}")
                raise AssertionError(name)
            frame = frame.f_back
        if plain is None:
            raise AttributeError(name) if name == "__getattr__" else TypeError(name)
        return plain(self, *args, **named)

    return method


def _traps(base):
    special = {n for n in dir(base) if n.startswith("__") and n.endswith("__")} | {*_MORE}
    wanted = [n for n in special - _LEFT_ALONE if callable(getattr(base, n, None)) or n in _MORE]
    return {name: _trap(f"{base.__name__}.{name}", getattr(base, name, None)) for name in wanted}


def _property(name):
    return property(_trap(name, lambda self: type(self)))


Meta = type("Meta", (type,), _traps(type))


def hostile(base):
    """Return a class derived from `base` whose special methods, and its class's, are traps."""
    members = _traps(base) if base is object or base is torch.Tensor else {}
    if base is not object and base is not torch.Tensor:
        members = {n: m for n, m in _traps(base).items() if n not in ("__setattr__", "__del__")}
    members["shape"] = _property("shape")
    members["dtype"] = _property("dtype")
    members["device"] = _property("device")
    members["__class__"] = _property("__class__")
    meta = Meta if base is not torch.Tensor else type(torch.Tensor)
    return type.__new__(meta, f"Hostile{base.__name__}", (base,), members)


Plain = hostile(object)
List, Dict, Set, Deque = map(hostile, (list, dict, set, deque))
Ordered, Default = hostile(OrderedDict), hostile(defaultdict)
Module = hostile(types.ModuleType)
Tensor = hostile(torch.Tensor)


def _in_attribute(kept, loss):
    thing = object.__new__(Plain)
    object.__getattribute__(thing, "__dict__")["loss"] = loss
    kept.append(thing)


def _add_to_attribute(kept, loss):
    if not kept:
        thing = object.__new__(Plain)
        object.__getattribute__(thing, "__dict__")["losses"] = []
        kept.append(thing)
    object.__getattribute__(kept[0], "__dict__")["losses"].append(loss)


def _in_class(kept, loss):
    if not kept:
        kept.append(type.__new__(Meta, "Registry", (), {"losses": []}))
    type.__dict__["__dict__"].__get__(kept[0])["losses"].append(loss)


def _made_class(kept, loss):
    kept.append(type.__new__(Meta, "Made", (), {"loss": loss}))


def _as_key(kept, loss):
    if not kept:
        kept.append({})
    thing = object.__new__(Plain)
    object.__getattribute__(thing, "__dict__")["loss"] = loss
    kept[0][thing] = 1


def _in_container(kind, add):
    def keep(kept, loss):
        if not kept:
            kept.append(kind.__new__(kind))
        add(kept[0], loss)

    return keep


def _in_module(kept, loss):
    if not kept:
        module = Module("hostile_module")
        types.ModuleType.__dict__["__dict__"].__get__(module)["losses"] = []
        sys.modules["hostile_module"] = module
        kept.append(module)
    types.ModuleType.__dict__["__dict__"].__get__(kept[0])["losses"].append(loss)


def _in_lazy_module(kept, loss):
    if not kept:
        module = types.ModuleType("lazy_module")
        module.losses = []
        module.__getattr__ = _trap("module.__getattr__", None)
        del module.__dict__["__loader__"]
        sys.modules["lazy_module"] = module
        kept.append(True)
    sys.modules["lazy_module"].__dict__["losses"].append(loss)


def _in_slot(kept, loss):
    thing = Slotted()
    thing.loss = loss
    kept.append(thing)


class Slotted:
    __slots__ = ("loss",)
    __len__ = _trap("Slotted.__len__", None)
    __eq__ = _trap("Slotted.__eq__", None)
    __hash__ = _trap("Slotted.__hash__", None)


def _tensor(kept, loss):
    kept.append(loss.as_subclass(Tensor))


class Unlisted:
    __dict__ = _property("__dict__")  # type: ignore[assignment]


def _in_unlisted_attribute(kept, loss):
    thing = Unlisted()
    thing.loss = loss
    kept.append(thing)


WAYS = {
    "attribute of what hides its dictionary": _in_unlisted_attribute,
    "tensors of a class": _tensor,
    "attribute": _in_attribute,
    "list in an attribute": _add_to_attribute,
    "class attribute": _in_class,
    "classes made anew": _made_class,
    "keys": _as_key,
    "list": _in_container(List, list.append),
    "deque": _in_container(Deque, deque.append),
    "dict": _in_container(Dict, lambda kept, loss: dict.__setitem__(kept, id(loss), loss)),
    "set": _in_container(Set, set.add),
    "OrderedDict": _in_container(
        Ordered, lambda kept, loss: OrderedDict.__setitem__(kept, id(loss), loss)
    ),
    "module": _in_module,
    "lazy module": _in_lazy_module,
    "slots": _in_slot,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("graph", [True, False], ids=["graph", "detached"])
def test_no_method_of_the_programs_is_called(way, graph):
    kept: list[object] = []
    weight = torch.ones(3, requires_grad=True)
    called.clear()
    window = Window(dict.fromkeys(("graph.nodes", "tensors") if graph else ("tensors",), 0.0))
    census = Census()
    for step in range(2 * STEPS):
        if step == STEPS:
            window.open()
        loss = (weight * step).sum()
        WAYS[way](kept, loss if graph else loss.detach())
        del loss
        if step >= STEPS:
            window.step()
    suspects = window.close().suspects
    census.take(STEPS, totals={"host": 1})
    for name in ("hostile_module", "lazy_module"):
        sys.modules.pop(name, None)

    assert called == []
    assert [suspect.kind for suspect in suspects] == ["graph" if graph else "tensor"]
    assert suspects[0].holder


def _objects_in_list(kept):
    kept.append(object.__new__(Plain))


def _objects_as_keys(kept):
    dict.__setitem__(kept[0], object.__new__(Plain), [object.__new__(Plain)])


def _objects_linked(kept):
    thing = object.__new__(Plain)
    object.__getattribute__(thing, "__dict__")["before"] = kept[0]
    kept[0] = thing


@pytest.mark.parametrize("keep", [_objects_in_list, _objects_as_keys, _objects_linked])
def test_no_method_of_plain_objects_is_called(keep):
    kept: list[object] = [{}]
    called.clear()
    window = Window({"python.blocks": 2.0})
    for step in range(2 * STEPS):
        if step == STEPS:
            window.open()
        keep(kept)
        if step >= STEPS:
            window.step()
    suspects = window.close().suspects

    assert called == []
    assert [suspect.kind for suspect in suspects] == ["object"]
    assert str(suspects[0].holder) == "local `kept` in test_no_method_of_plain_objects_is_called()"
