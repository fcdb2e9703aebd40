"""Does this container only grow? Every use of a name in a module, sorted by what it does.

A container is known by its last word, whatever it is reached through: `self.cache`, `other.cache`
and `Cls.cache` count as one. That errs on the side of silence.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

import libcst as cst

from leakcheck.static import shape
from leakcheck.static.module import Module
from leakcheck.static.syntax import bindings, dotted, walk

UseRole = Literal["bind", "slot", "grow", "drop", "measure", "read"]
T = TypeVar("T")

_CONSTRUCTORS = frozenset(["__init__", "__new__", "__post_init__", "__setstate__", "setup"])
_RESTORES = ("load", "restore", "deserialize", "from_")


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """One occurrence of a container: the node that names it, and the node that acts on it."""

    role: UseRole
    node: cst.CSTNode
    act: cst.CSTNode


def per_module(answer: Callable[[Module], T]) -> Callable[[Module], T]:
    """Keep a function's answer for as long as its module lives."""
    kept: WeakKeyDictionary[Module, T] = WeakKeyDictionary()

    def ask(module: Module) -> T:
        if module not in kept:
            kept[module] = answer(module)
        return kept[module]

    return ask


@per_module
def _by_last_word(module: Module) -> dict[str, list[cst.CSTNode]]:
    words: dict[str, list[cst.CSTNode]] = defaultdict(list)
    for attribute in module.nodes(cst.Attribute):
        words[attribute.attr.value].append(attribute)
    for name in module.nodes(cst.Name):
        above = module.parent(name)
        if not (isinstance(above, cst.Attribute) and above.attr is name):
            words[name.value].append(name)
    return words


def uses(module: Module, name: str) -> Iterator[ContainerUse]:
    """Yield what the module does with a name or attribute of this last word."""
    for node in _by_last_word(module).get(name, ()):
        above = module.parent(node)
        if not isinstance(above, (cst.Arg, cst.Param, cst.AsName)) or _is_value(above, node):
            yield _use(module, node)


def _is_value(above: cst.CSTNode, node: cst.CSTNode) -> bool:
    return isinstance(above, cst.Arg) and above.value is node


def _use(module: Module, node: cst.CSTNode) -> ContainerUse:
    above = module.parent(node)
    match above:
        case cst.AssignTarget() | cst.AnnAssign() if above.target is node:
            return ContainerUse("bind", node, module.parent(above) if _plain(above) else above)  # type: ignore[arg-type]
        case cst.AugAssign() if above.target is node:
            return ContainerUse("grow", node, above)
        case cst.Del():
            return ContainerUse("drop", node, above)
        case cst.Element() | cst.Tuple():
            return _element_use(module, node, above)
        case cst.Subscript() if above.value is node:
            return _slot_use(module, node, above)
        case cst.Attribute() if above.value is node:
            return _method_use(module, node, above)
        case cst.Arg():
            call = module.parent(above)
            if isinstance(call, cst.Call) and dotted(call.func) == "len":
                return ContainerUse("measure", node, call)
    return ContainerUse("read", node, above or node)


def _plain(target: cst.CSTNode) -> bool:
    return isinstance(target, cst.AssignTarget)


def _element_use(module: Module, node: cst.CSTNode, above: cst.CSTNode) -> ContainerUse:
    around = module.parent(module.parent(above) or above)
    if isinstance(around, cst.Del):
        return ContainerUse("drop", node, around)
    if isinstance(around, cst.AssignTarget):
        return ContainerUse("bind", node, module.parent(around) or around)
    return ContainerUse("read", node, above)


def _slot_use(module: Module, node: cst.CSTNode, slot: cst.Subscript) -> ContainerUse:
    above = module.parent(slot)
    match above:
        case cst.AssignTarget():
            whole = isinstance(slot.slice[0].slice, cst.Slice)
            return ContainerUse("drop" if whole else "slot", node, module.parent(above) or above)
        case cst.AugAssign() if above.target is slot:
            return ContainerUse("slot", node, above)
        case cst.Del():
            return ContainerUse("drop", node, above)
        case cst.Attribute() if above.value is slot:
            inner = _method_use(module, node, above)
            return inner if inner.role in ("grow", "drop") else ContainerUse("read", node, slot)
    return ContainerUse("read", node, slot)


def _method_use(module: Module, node: cst.CSTNode, method: cst.Attribute) -> ContainerUse:
    call = module.parent(method)
    if not isinstance(call, cst.Call) or call.func is not method:
        return ContainerUse("read", node, method)
    name = method.attr.value
    if name in shape.api("container-drops"):
        return ContainerUse("drop", node, call)
    return ContainerUse("grow" if name in shape.api("container-grows") else "read", node, call)


def bounded(module: Module, name: str, *, but_in: str = "") -> bool:
    """Tell whether anything in the file empties, replaces, limits or measures the container.

    `but_in`: a function that is not asked.
    """
    for use in uses(module, name):
        function = module.function_of(use.node) if but_in else None
        if function is not None and function.name.value == but_in:
            continue
        if _in_uncalled_clearer(module, name, use):
            continue
        if use.role == "drop" or (use.role == "measure" and _is_guard(module, use.act)):
            return True
        if use.role == "bind" and _empties(module, use):
            return True
    return False


def _in_uncalled_clearer(module: Module, name: str, use: ContainerUse) -> bool:
    """A module-level cache with a `clear()` beside it that nothing in the file ever calls."""
    function = module.function_of(use.node)
    if name not in module_containers(module) or function is None or shape.is_method(function):
        return False
    own = function.name.value
    if own.startswith("_") or not re.search("clear|reset|empty|flush", own):
        return False
    return not any(isinstance(n, cst.Name) and n.value == own for n in _named(module, own))


def _named(module: Module, word: str) -> Iterator[cst.CSTNode]:
    for node in _by_last_word(module).get(word, ()):
        if not isinstance(module.parent(node), cst.FunctionDef):
            yield node


def _is_guard(module: Module, measured: cst.CSTNode) -> bool:
    comparison = module.enclosing(measured, cst.Comparison)
    return comparison is not None and not isinstance(comparison, cst.Assert)


def _empties(module: Module, use: ContainerUse) -> bool:
    function = module.function_of(use.node)
    if any(_limited(value) for target, value in bindings(use.act) if target is use.node):
        return True
    if function is None:
        return False
    name = function.name.value
    return name not in _CONSTRUCTORS and not name.lstrip("_").startswith(_RESTORES)


def _limited(value: cst.CSTNode | None) -> bool:
    """A deque with a maxlen, a weak container, or a cache class that has a limit of its own."""
    if not isinstance(value, cst.Call):
        return False
    called = shape.last_name(value)
    if called == "deque":
        return shape.keyword_value(value, "maxlen", 1) is not None
    return "Weak" in called or "LRU" in called or "TTL" in called or "Ring" in called


def named_in_text(module: Module, name: str) -> bool:
    """Tell whether the file spells the name as a string, as delattr and setattr do."""
    return f'"{name}"' in module.source or f"'{name}'" in module.source


def starts_empty(value: cst.BaseExpression | None) -> bool:
    """Tell whether a container is made here without entries: `[]`, `{}`, `defaultdict(list)`."""
    match value:
        case cst.List() | cst.Dict():
            return not value.elements
        case cst.Call(args=[cst.Arg(value=factory)]) if shape.last_name(value) == "defaultdict":
            return dotted(factory) in ("list", "set", "dict")
        case cst.Call():
            return shape.last_name(value) in shape.api("empty-containers") and not value.args
    return False


@per_module
def module_containers(module: Module) -> dict[str, cst.CSTNode]:
    """Map the names of containers that are made empty at module level to where they are made."""
    found: dict[str, cst.CSTNode] = {}
    for node in shape.own_nodes(module.tree):
        for target, value in bindings(node):
            if isinstance(target, cst.Name) and starts_empty(value):
                found[target.value] = node
    return found


def class_containers(module: Module, owner: cst.ClassDef) -> dict[str, cst.CSTNode]:
    """Map attributes that a class makes as empty containers, on itself or on `self`."""
    found: dict[str, cst.CSTNode] = {}
    for node in walk(owner.body):
        for target, value in bindings(node):
            spelled = dotted(target) if starts_empty(value) else ""
            at_class = module.enclosing(node, cst.FunctionDef, cst.ClassDef) is owner
            if spelled.startswith("self.") and spelled.count(".") == 1:
                found[spelled[5:]] = node
            elif at_class and spelled and "." not in spelled:
                found[spelled] = node
    return found


def cache_decorator(module: Module, function: cst.FunctionDef) -> cst.Decorator | None:
    """Return the functools cache on a function, bare or called."""
    for decorator in function.decorators:
        named = decorator.decorator
        called = named.func if isinstance(named, cst.Call) else named
        if module.qualified(called) in shape.api("caches"):
            return decorator
    return None


def unlimited(module: Module, decorator: cst.Decorator) -> bool:
    """Tell whether a cache has no limit: `cache`, or `lru_cache(maxsize=None)`."""
    named = decorator.decorator
    if not isinstance(named, cst.Call):
        return module.qualified(named) == "functools.cache"
    size = shape.keyword_value(named, "maxsize", 0)
    return isinstance(size, cst.Name) and size.value == "None"


def limit(decorator: cst.Decorator) -> int | None:
    """Return the number of entries that a cache is given room for: `lru_cache(maxsize=8)`."""
    named = decorator.decorator
    size = shape.keyword_value(named, "maxsize", 0) if isinstance(named, cst.Call) else None
    return size.evaluated_value if isinstance(size, cst.Integer) else None


def at_most_one(decorator: cst.Decorator) -> bool:
    """Tell whether a cache keeps one entry or none: `lru_cache(maxsize=1)`."""
    size = limit(decorator)
    return size is not None and size <= 1
