"""What a class says of itself, past its metaclass.

To compare classes, to look one up in a dictionary or a set, and to ask for its name may each run a
method of its metaclass, which is the program's: so classes are known by identity alone, and asked
by the descriptors of `type`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from types import (
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_NAME = type.__dict__["__name__"].__get__
_BASES = type.__dict__["__mro__"].__get__
_NAMESPACE = type.__dict__["__dict__"].__get__
_OF_PYTHON = (GetSetDescriptorType, MemberDescriptorType)
_generic_dictionary = ctypes.PyDLL(None)["PyObject_GenericGetDict"]
_generic_dictionary.argtypes = [ctypes.py_object, ctypes.c_void_p]
_generic_dictionary.restype = ctypes.py_object
_OF_MODULE: Any = type.__dict__["__dict__"].__get__(ModuleType)["__dict__"].__get__


def name_of(kind: type) -> str:
    """Return the name of a class."""
    return str(_NAME(kind))


def bases_of(kind: type) -> tuple[type, ...]:
    """Return a class and its bases, in the order in which attributes are looked for."""
    found: tuple[type, ...] = _BASES(kind)
    return found


def namespace_of(kind: type) -> Mapping[str, Any]:
    """Return the attributes of a class itself."""
    found: Mapping[str, Any] = _NAMESPACE(kind)
    return found


def entries_of(names: Mapping[Key, Value]) -> list[tuple[Key, Value]]:
    """Return the entries of a dictionary of any class, or of a class's namespace, at one moment.

    `list(dict.items(names))` makes a tuple for each entry while it reads. Up to Python 3.11 this
    may start a collection, in which another thread changes what is read: an error. To read keys
    alone, or values alone, makes nothing that a collection would be started for.
    """
    reader: Any = dict if issubclass(type(names), dict) else MappingProxyType
    keys, values = list(reader.keys(names)), list(reader.values(names))
    return list(zip(keys, values, strict=False))  # unequal where a thread came between the two


def attribute_of_class(kind: type, name: str) -> Any:
    """Return an attribute of a class as it or the nearest of its bases has it, None if none has."""
    having = (namespace_of(base) for base in bases_of(kind))
    return next((names[name] for names in having if name in names), None)


def attributes_of(thing: Any) -> dict[str, Any]:
    """Return the dictionary of an object, {} if it has none.

    Past a `__getattribute__` and a `__dict__` of its class: those are the program's code.
    """
    descriptor = attribute_of_class(type(thing), "__dict__")
    if descriptor is None:
        return {}
    its_own = type(descriptor) in _OF_PYTHON
    try:
        found = descriptor.__get__(thing) if its_own else _generic_dictionary(thing, None)
    except (AttributeError, TypeError):  # it has slots alone, or another class's descriptor
        return {}
    return found if type(found) is dict else {}


def attribute_holding(holder: Any, child: Any) -> str:
    """Return the attribute or slot by which an object holds another, "" if there is none."""
    for name, value in entries_of(attributes_of(holder)):
        if value is child:
            return name
    for base in bases_of(type(holder)):
        for name, slot in entries_of(namespace_of(base)):
            if any(each is child for each in in_slot(slot, holder)):
                return name
    return ""


def in_slot(slot: Any, thing: Any) -> list[Any]:
    """Return what an object has in a slot; nothing if that is empty, or is no slot."""
    try:
        return [slot.__get__(thing)] if type(slot) is MemberDescriptorType else []
    except Exception:
        return []


def module_of(kind: type) -> str:
    """Return the name of the module that made a class, "" if it does not say."""
    module = namespace_of(kind).get("__module__")
    return module if type(module) is str else ""


def globals_of(module: ModuleType) -> dict[str, Any]:
    """Return the globals of a module, past a `__getattr__` of its own."""
    found: dict[str, Any] = _OF_MODULE(module)
    return found


def types_named(name: str) -> list[type]:
    """Return the classes of a name that modules have as globals."""
    modules = [each for each in tuple(sys.modules.values()) if is_of(each, ModuleType)]
    found: list[Any] = [globals_of(module).get(name) for module in modules]
    kinds = {id(kind): kind for kind in found if is_of(kind, type)}
    return [kind for kind in kinds.values() if name_of(kind) == name]


def defined_in(kind: type) -> str:
    """Return the file of a class's methods: its module may be a package that only hands it on."""
    methods = (each for each in namespace_of(kind).values() if type(each) is FunctionType)
    return next((method.__code__.co_filename for method in methods), "")


def is_of(thing: Any, *kinds: type) -> bool:
    """Say whether an object is of one of these types or derived from it.

    `isinstance` asks an object for its `__class__`, too.
    """
    return issubclass(type(thing), kinds)


def derives_from(kind: type, base: type) -> bool:
    """Say whether a class is another or derived from it, as only an abstract base says otherwise.

    `issubclass` asks the metaclass of `base`, and an `ABCMeta` looks `kind` up in a set.
    """
    return any(each is base for each in bases_of(kind))


def array_type() -> Any:
    """Return numpy.ndarray if the program has imported numpy, else None."""
    return getattr(sys.modules.get("numpy"), "ndarray", None)


def is_exactly(thing: Any, *kinds: type) -> bool:
    """Say whether an object is of one of these types, and not of one derived from it."""
    return any(type(thing) is kind for kind in kinds)


class ByKind(Generic[Value]):
    """A table by class, which are known by identity; it lives as long as they do."""

    def __init__(self, values: Mapping[type, Value]) -> None:
        self._values = {id(kind): value for kind, value in values.items()}
        self.kinds = tuple(values)

    def __contains__(self, kind: type) -> bool:
        return id(kind) in self._values

    def __iter__(self) -> Iterator[type]:
        return iter(self.kinds)

    def get(self, kind: type) -> Value | None:
        """Return what stands for a class, None if nothing does."""
        return self._values.get(id(kind))
